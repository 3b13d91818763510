// The wire over NATS. It exists at once, and is down until a server answers. Link reconnects it for
// ever, not the library, whose own reconnecting was seen to hang. Messages published while it is
// down are dropped, not queued. Loaded when PARLEY_NATS_URL is set.
import {
  connect, errors, type ConnectionOptions, type NatsConnection, type Status, type Subscription,
} from "@nats-io/transport-node";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import { WireFault, type Wire } from "#cluster/wire.ts";

interface NatsWireOptions {
  /** `nats://` or `tls://` addresses, separated by commas; they may hold names and passwords. */
  url: string;
  /** The name of the cluster, with which all subjects begin. */
  cluster: string;
  system: System;
  log: Logger;
}

type Hear = Parameters<Wire["subscribe"]>[1];

interface Heard {
  subject: string;
  hear: Hear;
  /** Null until there is a connection. */
  subscription: Subscription | null;
}

/** The connection while there is one, and the listeners notified when it comes and goes. */
class Link {
  connection: NatsConnection | null = null;
  state: "up" | "down" = "down";
  isClosed = false;
  readonly told = new Set<(state: "up" | "down") => void>();
  /** Reject the requests that wait for an answer. */
  readonly waiting = new Set<(fault: WireFault) => void>();
  readonly #options: NatsWireOptions;
  readonly #onConnection: (connection: NatsConnection) => void;
  #retry: Timer | null = null;
  /** Why it is down: each reason of an outage is logged once. */
  readonly #reasons = new Set<string>();

  constructor(options: NatsWireOptions, onConnection: (connection: NatsConnection) => void) {
    this.#options = options;
    this.#onConnection = onConnection;
  }

  /** Never rejects. */
  async open(): Promise<void> {
    const { url, cluster } = this.#options;
    try {
      const connection = await connect({
        ...optionsOf(url), name: `parley ${cluster}`,
        // A publisher knows its own messages, and a node asks itself by a function call.
        noEcho: true,
        // A user who may use only the cluster's subjects gets answers too.
        inboxPrefix: `${cluster}.inbox`,
        reconnect: false,
        pingInterval: LIMITS.wirePingMs, timeout: LIMITS.wireConnectMs, noAsyncTraces: true,
      });
      if (this.isClosed) return await connection.close();
      this.connection = connection;
      this.#onConnection(connection);
      this.#change("up");
      void this.#follow(connection);
    } catch (error) {
      this.#failed(error as Error);
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#retry?.cancel();
    this.#change("down");
    this.told.clear();
    await this.connection?.close();
  }

  /** Abandons a broken connection: a new one is made, and all subjects are subscribed anew. */
  async #follow(connection: NatsConnection): Promise<void> {
    let last: Status | null = null;
    for await (const status of connection.status()) {
      if (status.type === "disconnect" || status.type === "close") break;
      last = status;
    }
    if (this.isClosed) return;
    this.connection = null;
    this.#change("down");
    this.#failed(reasonOf(last));
  }

  #failed(error: Error): void {
    if (this.isClosed) return;
    const { system, log } = this.#options;
    if (!this.#reasons.has(String(error))) log.warn({ err: error }, "NATS is unreachable");
    this.#reasons.add(String(error));
    this.#retry = system.after(LIMITS.wireRetryMs, () => void this.open());
  }

  #change(to: "up" | "down"): void {
    if (this.state === to) return;
    this.state = to;
    if (to === "up") {
      this.#reasons.clear();
      this.#options.log.info("NATS is reachable");
    }
    if (to === "down") for (const give of [...this.waiting]) give(new WireFault("down"));
    for (const told of [...this.told]) told(to);
  }
}

/** The library gives no reason when a connection ends; what it said just before is one. */
function reasonOf(last: Status | null): Error {
  if (last?.type === "error") return last.error;
  return new Error(last?.type === "staleConnection"
    ? "NATS has stopped answering" : "NATS has ended the connection");
}

/** NATS reads login and TLS from its own options, not from an address. */
function optionsOf(url: string): ConnectionOptions {
  const urls = url.split(",").map((one) => new URL(one.trim()));
  const servers = urls.map(({ host }) => host);
  // Without this option the library would send the login in the clear to a server without TLS.
  const tls = urls.some(({ protocol }) => protocol === "tls:") ? { tls: {} } : {};
  const { username, password } = urls[0] ?? { username: "", password: "" };
  const [user, pass] = [username, password].map(decodeURIComponent);
  if (!user) return { servers, ...tls };
  return { servers, ...tls, ...(pass ? { user, pass } : { token: user }) };
}

function faultOf(error: unknown): WireFault {
  const causes = [error, (error as Error).cause];
  const isA = (kind: new (...given: never[]) => Error): boolean =>
    causes.some((cause) => cause instanceof kind);
  if (isA(errors.NoRespondersError)) return new WireFault("nobody", { cause: error });
  return new WireFault(isA(errors.TimeoutError) ? "late" : "down", { cause: error });
}

/** What is thrown to the library's reader ends it, and with it all that this node hears. */
function give(
  { subject, hear }: Heard, log: Logger, data: Uint8Array, reply: Parameters<Hear>[1],
): void {
  try {
    hear(data, reply);
  } catch (error) {
    log.error({ err: error, subject }, "a message from another node could not be handled");
  }
}

export function openNatsWire(options: NatsWireOptions): Wire {
  const { cluster, log } = options;
  const all = new Set<Heard>();
  const subjectOf = (subject: string): string => `${cluster}.${subject}`;
  /** NATS closes the connection of a client that sends more than the server is set to take. */
  const fits = (subject: string, data: Uint8Array): boolean => {
    const serversMax = link.connection?.info?.max_payload ?? Infinity;
    if (data.byteLength <= Math.min(serversMax, LIMITS.wireMessageBytesMax)) return true;
    log.warn({ subject, bytes: data.byteLength }, "a message exceeds the NATS server's max_payload");
    return false;
  };
  const begin = (connection: NatsConnection, heard: Heard): void => {
    heard.subscription = connection.subscribe(subjectOf(heard.subject), {
      callback: (error, message) => {
        if (error) return log.warn({ err: error, subject: heard.subject }, "NATS refused a subject: check this user's permissions");
        const reply = message.reply
          ? (data: Uint8Array) => void (fits(heard.subject, data) && message.respond(data))
          : null;
        if (reply || all.has(heard)) give(heard, log, message.data, reply);
      },
    });
  };
  const link = new Link(options, (connection) => {
    for (const heard of all) begin(connection, heard);
  });
  void link.open();

  return {
    publish: (subject, data) => {
      if (link.state === "down" || !fits(subject, data)) return;
      link.connection?.publish(subjectOf(subject), data);
    },
    subscribe: (subject, hear) => {
      const heard: Heard = { subject, hear, subscription: null };
      all.add(heard);
      if (link.connection && !link.isClosed) begin(link.connection, heard);
      return () => {
        if (!all.delete(heard) || link.isClosed) return;
        // Drained, so that a request in flight is still answered: its sender would wait in vain.
        if (link.connection) heard.subscription?.drain().catch(() => undefined);
      };
    },
    request: (subject, data, timeoutMs) => new Promise((resolve, reject) => {
      const { connection } = link;
      if (link.state === "down" || !connection || !fits(subject, data)) {
        return reject(new WireFault("down"));
      }
      const fail = (fault: WireFault): void => {
        link.waiting.delete(fail);
        reject(fault);
      };
      link.waiting.add(fail);
      connection.request(subjectOf(subject), data, { timeout: Math.max(1, timeoutMs) }).then(
        (answer) => {
          link.waiting.delete(fail);
          resolve(answer.data);
        },
        (error: unknown) => fail(faultOf(error)));
    }),
    state: () => link.state,
    onState: (changed) => {
      link.told.add(changed);
      return () => void link.told.delete(changed);
    },
    close: () => link.close(),
  };
}
