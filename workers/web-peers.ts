// The thread of web calls' packets: one UDP port, encryption, Opus. Started by peer-thread.ts.
import { parentPort, workerData } from "node:worker_threads";
import { createLogger, type LogLevel } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import type { FromPeers, PeersWorkerData, ToPeers } from "#providers/carriers/web/peer-thread.ts";
import { openPeers } from "#providers/carriers/web/peers.ts";
import type { PeerEvent, WebPeer } from "#providers/carriers/web/port.ts";

const port = parentPort;
if (!port) throw new Error("workers/web-peers.ts runs as a worker thread");
const { peers: config, logLevel } = workerData as PeersWorkerData;
const system = createSystem();
const log = createLogger(logLevel as LogLevel);
/** Null: the port could not be opened, and calls use their WebSockets. */
const peers = await openPeers(config, { system, log }).catch((error: unknown) => {
  log.warn({ err: error, port: config.port }, "no UDP port for web calls: their audio goes over"
    + " the WebSocket");
  return null;
});
const open = new Map<number, WebPeer>();

function publish(peer: number, event: PeerEvent): void {
  if (event.kind === "refused" || event.kind === "lost") open.delete(peer);
  const transfer = event.kind === "audio" ? [event.pcm.buffer as ArrayBuffer] : [];
  port?.postMessage({ peer, event } satisfies FromPeers, transfer);
}

port.on("message", (message: ToPeers) => {
  const { peer } = message;
  switch (message.kind) {
    case "open":
      if (!peers) return publish(peer, { kind: "lost" });
      return void open.set(peer, peers.open(message.offer, (event) => publish(peer, event)));
    case "frame":
      return open.get(peer)?.send(message.pcm);
    case "close":
      open.get(peer)?.close();
      return void open.delete(peer);
  }
});
