// The two UDP sockets of a call: RTP on an even port, RTCP on the next one. Used by rtp-session.ts,
// and by web/peers.ts for a single socket.
import { createSocket, type Socket } from "node:dgram";
import { isIP, isIPv6 } from "node:net";
import { ProviderError } from "#core/faults.ts";
import type { System } from "#core/system.ts";

const PORT_TRIES = 200;

export interface PairOptions {
  /** Address to bind. */
  host: string;
  /** Null for any port. */
  ports: { min: number; max: number } | null;
  system: System;
}

/** Rejects when no pair of ports is free. */
export async function openPair(
  { host, ports, system }: PairOptions,
): Promise<{ rtp: Socket; rtcp: Socket }> {
  const first = ports ? ports.min + (ports.min % 2) : 0;
  const pairs = ports ? Math.floor((ports.max - first + 1) / 2) : PORT_TRIES;
  // It starts at random: the lowest free port may still receive packets of the call that had it.
  const start = system.randomBytes(4).readUInt32BE(0);
  for (let tried = 0; tried < Math.min(pairs, PORT_TRIES); tried += 1) {
    const port = ports ? first + 2 * ((start + tried) % pairs) : await evenPort(host);
    const rtp = await bind(host, port);
    const rtcp = rtp && await bind(host, port + 1);
    if (rtcp) return { rtp, rtcp };
    rtp?.close();
  }
  throw new ProviderError("no pair of UDP ports is free for a call", { retryable: true });
}

/** An even port next to one that was free a moment ago. */
async function evenPort(host: string): Promise<number> {
  const socket = await bind(host, 0);
  const port = socket?.address().port ?? 0;
  socket?.close();
  return port - (port % 2);
}

/** Null when the port is taken; any other error is an error in the configuration. */
const bind = (host: string, port: number): Promise<Socket | null> =>
  openMediaSocket(host, port).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EADDRINUSE") return null;
    throw new ProviderError("could not open a media port", { retryable: false, cause: error });
  });

/** Rejects when the port cannot be bound. */
export function openMediaSocket(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({
      type: isIPv6(host) ? "udp6" : "udp4",
      // Only addresses come here; asking the resolver about each packet costs more than sending it.
      lookup: (address, _options, done) => done(null, address, isIP(address)),
    });
    socket.once("error", (error) => {
      socket.close();
      reject(error);
    });
    socket.bind({ port, address: host, exclusive: true }, () => {
      socket.removeAllListeners("error");
      resolve(socket);
    });
  });
}
