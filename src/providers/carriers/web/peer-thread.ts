// The media thread's handle to the thread that processes web calls' packets. They have a thread of
// their own because encryption and Opus would delay other calls' frames; it starts with the first
// offer and runs workers/web-peers.ts.
import { Worker } from "node:worker_threads";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import type { Pcm } from "#providers/speech/port.ts";
import type { PeerEvent, PeersConfig, WebPeers } from "./port.ts";

export interface PeersWorkerData {
  peers: PeersConfig;
  logLevel: string;
}

export type ToPeers =
  | { kind: "open"; peer: number; offer: string }
  | { kind: "frame"; peer: number; pcm: Pcm | null }
  | { kind: "close"; peer: number };

export interface FromPeers {
  peer: number;
  event: PeerEvent;
}

const WORKER_FILE = workerFile("web-peers");

export function createPeerThread(data: PeersWorkerData, log: Logger): WebPeers {
  const open = new Map<number, (event: PeerEvent) => void>();
  let newest = 0;
  let worker: Worker | null = null;
  const start = (): Worker => {
    if (worker) return worker;
    const started = new Worker(WORKER_FILE, { workerData: data });
    started.on("message", ({ peer, event }: FromPeers) => {
      const publish = open.get(peer);
      if (event.kind === "refused" || event.kind === "lost") open.delete(peer);
      publish?.(event);
    });
    started.on("error", (error) => log.error({ err: error }, "the WebRTC thread failed"));
    started.on("exit", () => {
      worker = null;
      const left = [...open.values()];
      open.clear();
      for (const publish of left) publish({ kind: "lost" });
    });
    started.unref();
    worker = started;
    return started;
  };
  return {
    open: (offer, publish) => {
      const peer = (newest += 1);
      const thread = start();
      const post = (message: ToPeers, transfer: ArrayBuffer[] = []): void =>
        thread.postMessage(message, transfer);
      open.set(peer, publish);
      post({ kind: "open", peer, offer });
      return {
        send: (frame) => {
          if (!open.has(peer)) return;
          const pcm = frame && frame.slice();
          post({ kind: "frame", peer, pcm }, pcm ? [pcm.buffer] : []);
        },
        close: () => {
          if (open.delete(peer)) post({ kind: "close", peer });
        },
      };
    },
  };
}
