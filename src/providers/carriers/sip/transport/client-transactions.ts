// Client transactions (RFC 3261 section 17): a request is retransmitted until a response comes, a
// refused INVITE is acknowledged here, and a 2xx to an INVITE is passed on every time it arrives
// (RFC 6026), because acknowledging that is up to the dialog.
import type { System, Timer } from "#core/system.ts";
import { parseCseq, parseVia, SipHeaders } from "#providers/carriers/sip/grammar/headers.ts";
import {
  serialise, type SipRequest, type SipResponse,
} from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "./peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

/** Never throws; `onFailed` at most once, when it is known that the bytes will not arrive. */
export type Send = (peer: Peer, bytes: Buffer, onFailed: () => void) => void;

export interface ClientHandlers {
  /** Receives each provisional response and the final one once, a 2xx to an INVITE every time. */
  response(response: SipResponse, peer: Peer): void;
  /** No final response will come. Nothing follows. */
  failed(why: "timeout" | "transport"): void;
}

export interface ClientTransaction {
  readonly request: SipRequest;
  readonly peer: Peer;
  /** Stops retransmitting and reports no failure; responses within `forMs` are still passed on. */
  hush(forMs: number): void;
  /** Ends it silently: no more retransmissions, no more events. */
  stop(): void;
}

export interface ClientTransactions {
  /** The request has its Via with a branch of its own. */
  start(request: SipRequest, peer: Peer, handlers: ClientHandlers): ClientTransaction;
  /** False when the response belongs to nothing. */
  receive(response: SipResponse, peer: Peer): boolean;
  /** Resolves when no request waits for its final response. */
  settled(): Promise<void>;
  size(): number;
  close(): void;
}

const keyOf = (branch: string, method: string): string => `${branch}|${method}`;

export function createClientTransactions(system: System, send: Send): ClientTransactions {
  const live = new Map<string, Client>();
  let waiting: (() => void)[] = [];
  const settle = () => {
    if ([...live.values()].some(({ isOpen }) => isOpen)) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  return {
    start(request, peer, handlers) {
      const branch = parseVia(request.headers.get("Via") ?? "")?.branch ?? "";
      const key = keyOf(branch, request.method);
      const client = new Client({ system, send, request, peer, handlers }, (isGone) => {
        if (isGone && live.get(key) === client) live.delete(key);
        settle();
      });
      live.set(key, client);
      client.begin();
      return client;
    },
    receive(response, peer) {
      const branch = parseVia(response.headers.get("Via") ?? "")?.branch;
      const method = parseCseq(response.headers.get("CSeq"))?.method;
      const client = branch && method ? live.get(keyOf(branch, method)) : undefined;
      client?.receive(response, peer);
      return client !== undefined;
    },
    settled: () => new Promise((resolve) => {
      waiting.push(resolve);
      settle();
    }),
    size: () => live.size,
    close() {
      for (const client of [...live.values()]) client.stop();
    },
  };
}

interface ClientParts {
  system: System;
  send: Send;
  request: SipRequest;
  peer: Peer;
  handlers: ClientHandlers;
}

class Client implements ClientTransaction {
  readonly request: SipRequest;
  readonly peer: Peer;
  readonly #parts: ClientParts;
  /** `isGone`: the transaction has ended; otherwise it has just got its final response. */
  readonly #changed: (isGone: boolean) => void;
  readonly #isInvite: boolean;
  readonly #isReliable: boolean;
  readonly #bytes: Buffer;
  #state: "trying" | "proceeding" | "accepted" | "completed" | "gone" = "trying";
  #again: Timer | null = null;
  #end: Timer | null = null;
  #ack: Buffer | null = null;
  #isHushed = false;

  constructor(parts: ClientParts, changed: (isGone: boolean) => void) {
    this.#parts = parts;
    this.request = parts.request;
    this.peer = parts.peer;
    this.#changed = changed;
    this.#isInvite = parts.request.method === "INVITE";
    this.#isReliable = parts.peer.transport !== "udp";
    this.#bytes = serialise(parts.request);
  }

  get isOpen(): boolean {
    return this.#state === "trying" || this.#state === "proceeding";
  }

  begin(): void {
    // Timers B and F.
    this.#end = this.#parts.system.after(LIMITS.transactionMs, () => this.#fail("timeout"));
    if (!this.#isReliable) this.#repeat(LIMITS.t1Ms);
    this.#transmit();
  }

  receive(response: SipResponse, peer: Peer): void {
    if (response.status < 200) this.#provisional(response, peer);
    else if (this.#isInvite && response.status < 300) this.#accepted(response, peer);
    else this.#final(response, peer);
  }

  hush(forMs: number): void {
    if (!this.isOpen) return;
    this.#isHushed = true;
    this.#again?.cancel();
    this.#goneAfter(forMs);
  }

  stop(): void {
    this.#end?.cancel();
    this.#again?.cancel();
    if (this.#state === "gone") return;
    this.#state = "gone";
    this.#changed(true);
  }

  #provisional(response: SipResponse, peer: Peer): void {
    if (!this.isOpen) return;
    if (this.#state === "trying" && this.#isInvite) {
      // The caller decides how long it may ring.
      this.#again?.cancel();
      this.#end?.cancel();
    }
    this.#state = "proceeding";
    this.#parts.handlers.response(response, peer);
  }

  #accepted(response: SipResponse, peer: Peer): void {
    if (this.isOpen) {
      this.#again?.cancel();
      this.#goneAfter(LIMITS.transactionMs);
      this.#state = "accepted";
      this.#changed(false);
    }
    if (this.#state === "accepted") this.#parts.handlers.response(response, peer);
  }

  #final(response: SipResponse, peer: Peer): void {
    if (this.#state === "completed" && this.#ack) return this.#sendAck();
    if (!this.isOpen) return;
    this.#again?.cancel();
    this.#state = "completed";
    if (this.#isInvite) {
      this.#ack = serialise(acknowledgementOf(this.request, response));
      this.#sendAck();
    }
    // Timers D and K: long enough to swallow what was sent twice.
    if (this.#isReliable) this.stop();
    else this.#goneAfter(this.#isInvite ? LIMITS.transactionMs : LIMITS.t4Ms);
    this.#changed(false);
    this.#parts.handlers.response(response, peer);
  }

  #goneAfter(delayMs: number): void {
    this.#end?.cancel();
    this.#end = this.#parts.system.after(delayMs, () => this.stop());
  }

  /** Timers A and E. */
  #repeat(delayMs: number): void {
    this.#again = this.#parts.system.after(delayMs, () => {
      const nextMs = this.#isInvite ? delayMs * 2 : Math.min(delayMs * 2, LIMITS.t2Ms);
      this.#repeat(this.#state === "proceeding" ? LIMITS.t2Ms : nextMs);
      this.#transmit();
    });
  }

  #transmit(): void {
    this.#parts.send(this.peer, this.#bytes, () => this.#fail("transport"));
  }

  #sendAck(): void {
    // A lost ACK needs no retry: the refusal is retransmitted and acknowledged again.
    if (this.#ack) this.#parts.send(this.peer, this.#ack, () => undefined);
  }

  #fail(why: "timeout" | "transport"): void {
    if (!this.isOpen || this.#isHushed) return;
    this.#parts.handlers.failed(why);
    // The handler may have hushed the transaction to receive late responses.
    if (!this.#isHushed) this.stop();
  }
}

/** The ACK to a refusal has the same branch and route as the INVITE (RFC 3261 17.1.1.3). */
function acknowledgementOf(request: SipRequest, response: SipResponse): SipRequest {
  const acknowledgement = sameTransaction(request, "ACK");
  const to = response.headers.get("To");
  if (to) acknowledgement.headers.set("To", to);
  return acknowledgement;
}

/** An ACK or CANCEL with the headers it shares with its INVITE. */
export function sameTransaction(request: SipRequest, method: "ACK" | "CANCEL"): SipRequest {
  const headers = new SipHeaders();
  const copy = (name: string, value: string | null) => {
    if (value !== null) headers.add(name, value);
  };
  copy("Via", request.headers.get("Via"));
  for (const route of request.headers.all("Route")) copy("Route", route);
  headers.add("Max-Forwards", "70");
  for (const name of ["From", "To", "Call-ID"]) copy(name, request.headers.get(name));
  const number = parseCseq(request.headers.get("CSeq"))?.number ?? 1;
  headers.add("CSeq", `${number} ${method}`);
  return { kind: "request", method, uri: request.uri, headers, body: Buffer.alloc(0) };
}
