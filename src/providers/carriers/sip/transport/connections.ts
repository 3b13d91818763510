// TCP and TLS connections, ours and theirs, bounded in number, idle time, bytes waiting and the
// time a message may take to arrive whole. A response goes out over the connection its request
// came in on, and so does what follows in that dialog, because nobody behind a NAT can be reached
// in another way.
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
  /** PEM of who is trusted in place of the well-known authorities. */
  tlsCa: string | undefined;
  /** The address outgoing connections leave from; undefined: any. */
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
      // An address may not stand in SNI; the certificate is checked against it all the same.
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
        // Without a listener an error in its last moments would end the process.
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
  /** What was handed over and is not known to have left. */
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
    // Somebody who does not read what is sent is not waited for.
    if (this.#socket.writableLength > LIMITS.connectionBufferBytesMax) this.close();
  }

  /** Once a minute: keeps ours alive through NATs, ends what nobody uses. */
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
      this.#parts.log.info({ host: this.peer.host }, "SIP connection sends no SIP");
      this.close();
    }
  }

  /** Bytes alone do not put this off, only a whole message does. */
  #demandMessage(): void {
    this.#unfinished ??= this.#parts.system.after(LIMITS.messageMs, () => {
      this.#parts.log.info({ host: this.peer.host }, "SIP connection sends no whole message");
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
