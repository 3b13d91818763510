// TCP and TLS connections, outgoing and incoming, bounded in number, idle time, buffered bytes and
// the time that a message may take to arrive completely. A response, and every later request of the
// dialog, goes out over the connection the request came in on, because a peer behind a NAT cannot
// be reached in any other way.
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import { createFramer } from "#providers/carriers/sip/grammar/message.ts";
import { isAddress, peerKey, plainHost, type Peer } from "./peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

interface ConnectionsOptions {
  system: System;
  log: Logger;
  tlsVerify: boolean;
  /** PEM of the authorities to trust instead of the well-known ones. */
  tlsCa: string | undefined;
  /** The address that outgoing connections are bound to; undefined for any. */
  localAddress: string | undefined;
  onFrame(bytes: Buffer, peer: Peer): void;
}

export interface Connections {
  adopt(socket: Socket, transport: "tcp" | "tls"): void;
  /** Over the open connection to this peer, else over a new one. */
  send(peer: Peer, bytes: Buffer, onFailed: () => void): void;
  has(peer: Peer): boolean;
  /** Our address on the connection to this peer, while there is one. */
  localAddress(peer: Peer): string | null;
  size(): number;
  close(): void;
}

const PING = Buffer.from("\r\n\r\n");

interface Parts extends ConnectionsOptions {
  socket: Socket;
  peer: Peer;
  isOurs: boolean;
  gone(): void;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const { system, log } = options;
  const open = new Map<string, Connection>();
  const hasRoom = (host: string) => open.size < LIMITS.connectionsMax
    && [...open.values()].filter(({ peer }) => peer.host === host).length
      < LIMITS.connectionsPerHostMax;

  function add(socket: Socket, peer: Peer, isOurs: boolean): Connection {
    const key = peerKey(peer);
    const connection = new Connection({
      ...options, socket, peer, isOurs,
      gone: () => {
        if (open.get(key) === connection) open.delete(key);
      },
    });
    open.set(key, connection);
    return connection;
  }

  function dial(peer: Peer): Connection | null {
    if (!hasRoom(peer.host)) return null;
    const { localAddress } = options;
    const to = { host: peer.host, port: peer.port, ...(localAddress ? { localAddress } : {}) };
    if (peer.transport !== "tls") return add(connectTcp(to), peer, true);
    const name = peer.serverName ?? peer.host;
    const socket = connectTls({
      ...to,
      rejectUnauthorized: options.tlsVerify,
      // SNI may not contain an IP address; the certificate is still checked against it.
      ...(isAddress(name) ? {} : { servername: name }),
      ...(options.tlsCa === undefined ? {} : { ca: options.tlsCa }),
    });
    return add(socket, peer, true);
  }

  const sweeping = system.every(LIMITS.keepaliveMs, () => {
    for (const connection of [...open.values()]) connection.sweep();
  });
  return {
    adopt(socket, transport) {
      const host = plainHost(socket.remoteAddress ?? "");
      const port = socket.remotePort;
      if (host === "" || port === undefined || !hasRoom(host)) {
        // Without a listener, an error while the socket closes would end the process.
        socket.on("error", () => undefined).destroy();
        log.warn({ host, connections: open.size }, "SIP connection refused");
        return;
      }
      add(socket, { host, port, transport }, false);
    },
    send(peer, bytes, onFailed) {
      const connection = open.get(peerKey(peer)) ?? dial(peer);
      if (connection) connection.send(bytes, onFailed);
      else queueMicrotask(onFailed);
    },
    has: (peer) => open.has(peerKey(peer)),
    localAddress: (peer) => open.get(peerKey(peer))?.localAddress ?? null,
    size: () => open.size,
    close() {
      sweeping.cancel();
      for (const connection of [...open.values()]) connection.close();
    },
  };
}

class Connection {
  readonly peer: Peer;
  readonly #parts: Parts;
  readonly #socket: Socket;
  readonly #framer = createFramer();
  /** Failure handlers of writes that have not completed yet. */
  readonly #waiting = new Set<() => void>();
  #usedMs: number;
  #connecting: Timer | null = null;
  #unfinished: Timer | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.peer = parts.peer;
    this.#socket = parts.socket;
    this.#usedMs = parts.system.monotonicMs();
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (bytes) => this.#read(bytes));
    this.#socket.on("error", (error) => {
      parts.log.info({ host: this.peer.host, cause: error.message }, "SIP connection failed");
    });
    this.#socket.on("close", () => this.#closed());
    if (parts.isOurs) this.#awaitConnection();
    else this.#demandMessage();
  }

  get localAddress(): string | null {
    const address = this.#socket.localAddress;
    return address ? plainHost(address) : null;
  }

  send(bytes: Buffer, onFailed: () => void): void {
    if (this.#socket.destroyed) return queueMicrotask(onFailed);
    this.#usedMs = this.#parts.system.monotonicMs();
    this.#waiting.add(onFailed);
    this.#socket.write(bytes, (error) => {
      if (!this.#waiting.delete(onFailed)) return;
      if (error) onFailed();
    });
    // A peer that does not read what we send is disconnected.
    if (this.#socket.writableLength > LIMITS.connectionBufferBytesMax) this.close();
  }

  /** Runs once a minute: keeps outgoing connections alive through NATs and closes idle ones. */
  sweep(): void {
    const idleMs = this.#parts.system.monotonicMs() - this.#usedMs;
    if (idleMs > LIMITS.connectionIdleMs) this.close();
    else if (this.#parts.isOurs && idleMs >= LIMITS.keepaliveMs) this.#socket.write(PING);
  }

  close(): void {
    this.#socket.destroy();
  }

  #awaitConnection(): void {
    this.#connecting = this.#parts.system.after(LIMITS.connectMs, () => this.close());
    const event = this.peer.transport === "tls" ? "secureConnect" : "connect";
    this.#socket.once(event, () => this.#connecting?.cancel());
  }

  #read(bytes: Buffer): void {
    this.#usedMs = this.#parts.system.monotonicMs();
    const { frames, isBad } = this.#framer.push(bytes);
    const isPing = frames.some((frame) => frame.equals(PING));
    if (isPing && !this.#parts.isOurs) this.#socket.write("\r\n");
    if (frames.length > 0) {
      this.#unfinished?.cancel();
      this.#unfinished = null;
    } else if (bytes.some((byte) => byte !== 13 && byte !== 10)) {
      this.#demandMessage();
    }
    for (const frame of frames) {
      if (!frame.equals(PING)) this.#parts.onFrame(frame, this.peer);
    }
    if (isBad) {
      this.#parts.log.info({ host: this.peer.host }, "a SIP connection sent something other than SIP");
      this.close();
    }
  }

  /** Starts the time limit for a message; only a whole message stops it, single bytes do not. */
  #demandMessage(): void {
    this.#unfinished ??= this.#parts.system.after(LIMITS.messageMs, () => {
      this.#parts.log.info({ host: this.peer.host }, "a SIP connection sent no complete message");
      this.close();
    });
  }

  #closed(): void {
    this.#connecting?.cancel();
    this.#unfinished?.cancel();
    this.#parts.gone();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const onFailed of waiting) onFailed();
  }
}
