// The sockets: UDP and TCP on one port, TLS on the next. Parses the messages, records where they
// came from (RFC 3581), and finds out which of this machine's addresses a peer sees.
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { createConnections, type Connections } from "./connections.ts";
import { formatVia, parseVia } from "#providers/carriers/sip/grammar/headers.ts";
import {
  parseMessage, type Parsed, type SipRequest,
} from "#providers/carriers/sip/grammar/message.ts";
import { forSocket, plainHost, type Peer } from "./peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";

interface TransportOptions {
  host: string;
  /** 0 for any. */
  port: number;
  publicHost: string | null;
  /** When set, TLS listens on the next port. */
  tls: { key: string; cert: string } | null;
  tlsVerify: boolean;
  tlsCa?: string | undefined;
  system: System;
  log: Logger;
  /** Requests have `received` and `rport` in their top Via. */
  onReceive(parsed: Parsed, peer: Peer): void;
}

export interface Transport {
  readonly port: number;
  readonly tlsPort: number | null;
  /** Never throws; `onFailed` when it is known that it will not arrive. */
  send(peer: Peer, bytes: Buffer, onFailed: () => void): void;
  /** Is there a connection to exactly this peer? */
  has(peer: Peer): boolean;
  /** The address to write into Via, Contact and SDP for this peer. */
  localHost(peer: Peer): Promise<string>;
  connections(): number;
  close(): Promise<void>;
}

interface Listening {
  udp: UdpSocket;
  tcp: Server;
  tls: Server | null;
  port: number;
}

const isWildcard = (host: string): boolean => host === "0.0.0.0" || host === "::" || host === "";
const familyOf = (host: string): "udp4" | "udp6" => (host.includes(":") ? "udp6" : "udp4");

export async function createTransport(options: TransportOptions): Promise<Transport> {
  const { host, log, onReceive, publicHost, system } = options;
  const receive = (bytes: Buffer, peer: Peer) => {
    const parsed = parseMessage(bytes);
    if (parsed.kind === "keepalive") return;
    const request = parsed.kind === "bad" ? parsed.answer : parsed.message;
    if (request?.kind === "request") noteSource(request, peer);
    if (parsed.kind === "bad") log.debug({ host: peer.host, why: parsed.reason }, "not SIP");
    onReceive(parsed, peer);
  };
  const connections = createConnections({
    system, log,
    tlsVerify: options.tlsVerify,
    tlsCa: options.tlsCa,
    localAddress: isWildcard(host) ? undefined : host,
    onFrame: receive,
  });
  const { udp, tcp, tls, port } = await listen(options, connections);
  udp.on("message", (bytes, from) => {
    receive(bytes, { host: plainHost(from.address), port: from.port, transport: "udp" });
  });
  // Errors of single datagrams are reported where they are sent.
  udp.on("error", (error) => log.warn({ cause: error.message }, "SIP socket failed"));
  const localHosts = new Map<string, Promise<string>>();
  let isClosed = false;
  return {
    port,
    tlsPort: tls ? port + 1 : null,
    send(peer, bytes, onFailed) {
      if (isClosed) return;
      if (peer.transport !== "udp") return connections.send(peer, bytes, onFailed);
      udp.send(bytes, peer.port, forSocket(host, peer.host), (error) => {
        if (!error) return;
        log.info({ host: peer.host, cause: error.message }, "could not send a SIP datagram");
        onFailed();
      });
    },
    has: (peer) => connections.has(peer),
    localHost(peer) {
      const fixed = publicHost ?? (isWildcard(host) ? connections.localAddress(peer) : host);
      if (fixed !== null) return Promise.resolve(fixed);
      const known = localHosts.get(peer.host) ?? findLocalHost(peer);
      // The whole cache is cleared when it is full: entries are cheap to find again, and a machine
      // whose network changes must not need a restart.
      if (localHosts.size >= LIMITS.localHostsMax) localHosts.clear();
      localHosts.set(peer.host, known);
      known.catch(() => localHosts.delete(peer.host));
      return known;
    },
    connections: () => connections.size(),
    async close() {
      if (isClosed) return;
      isClosed = true;
      connections.close();
      const closing = [udp, tcp, ...(tls ? [tls] : [])].map((socket) =>
        new Promise<void>((resolve) => void socket.close(() => resolve())));
      await Promise.all(closing);
    },
  };
}

/** Binds one port for UDP and TCP, and the next for TLS; retries with port 0 until all are free. */
async function listen(options: TransportOptions, connections: Connections): Promise<Listening> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await listenOnce(options, connections);
    } catch (error) {
      if (options.port !== 0 || attempt >= LIMITS.portAttemptsMax) {
        connections.close();
        throw error;
      }
    }
  }
}

async function listenOnce(
  { host, port: wanted, tls: certificate }: TransportOptions, connections: Connections,
): Promise<Listening> {
  const udp = createSocket(familyOf(host));
  const tcp = createServer((socket) => connections.adopt(socket, "tcp"));
  const tls = certificate
    ? createTlsServer(
      { ...certificate, handshakeTimeout: LIMITS.messageMs },
      (socket) => connections.adopt(socket, "tls"),
    )
    : null;
  // Until its TLS handshake is over, a connection is counted only by the server itself.
  for (const server of [tcp, tls]) if (server) server.maxConnections = LIMITS.connectionsMax;
  try {
    udp.bind(wanted, host);
    await once(udp, "listening");
    const { port } = udp.address();
    await bound(tcp, port, host);
    if (tls) await bound(tls, port + 1, host);
    return { udp, tcp, tls, port };
  } catch (error) {
    for (const server of [tcp, tls]) if (server?.listening) server.close();
    udp.close();
    throw error;
  }
}

async function bound(server: Server, port: number, host: string): Promise<AddressInfo> {
  server.listen(port, host);
  await once(server, "listening");
  return server.address() as AddressInfo;
}

/** Connecting a UDP socket sends nothing, but the system chooses the address it would send from. */
async function findLocalHost(peer: Peer): Promise<string> {
  const probe = createSocket(familyOf(peer.host));
  try {
    probe.connect(peer.port, peer.host);
    await once(probe, "connect");
    return plainHost(probe.address().address);
  } finally {
    probe.close();
  }
}

/** RFC 3581: records the real source of the request in its Via, whatever the sender wrote there. */
function noteSource(request: SipRequest, peer: Peer): void {
  const via = parseVia(request.headers.get("Via") ?? "");
  if (!via) return;
  const hasRport = via.params.has("rport");
  via.params.delete("received");
  if (hasRport) via.params.set("rport", String(peer.port));
  if (hasRport || plainHost(via.host) !== peer.host) via.params.set("received", peer.host);
  request.headers.removeFirst("Via");
  request.headers.prepend("Via", formatVia(via));
}
