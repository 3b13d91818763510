// The port of web calls over WebRTC: the sound of a page as packets, beside the socket that
// signals it. The adaptor is peer-thread.ts; without one all sound goes over the socket.
import type { LegQuality } from "#providers/carriers/port.ts";
import type { Pcm } from "#providers/speech/port.ts";

/** Nothing follows `refused` and `lost`. */
export type PeerEvent =
  | { kind: "answer"; sdp: string }
  /** Nothing came of the offer; the reason is a sentence for whoever sent it. */
  | { kind: "refused"; reason: string }
  /** 20 ms, once per `send`; gaps are concealed. */
  | { kind: "audio"; pcm: Pcm }
  /** How the sound has come through up to now. */
  | { kind: "quality"; quality: LegQuality }
  /** The page cannot be reached this way (any more). */
  | { kind: "lost" };

export interface WebPeer {
  /** 20 ms, every 20 ms; null: nothing is sent, and what came is still published. */
  send(frame: Pcm | null): void;
  /** Idempotent; nothing is published after it. */
  close(): void;
}

export interface WebPeers {
  /** Answers a page's offer (SDP); calls at 16 kHz. */
  open(offer: string, publish: (event: PeerEvent) => void): WebPeer;
}

export interface PeersConfig {
  /** Where the port is bound. */
  host: string;
  /** 0: any free one. */
  port: number;
  /** Addresses pages reach it at; empty: those it is bound to. */
  publicHosts: string[];
}
