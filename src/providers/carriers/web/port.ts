// The port of web calls over WebRTC: a page's audio in packets, beside the WebSocket that signals
// the call. The adaptor is peer-thread.ts; without one all audio goes over the WebSocket.
import type { LegQuality } from "#providers/carriers/port.ts";
import type { Pcm } from "#providers/speech/port.ts";

/** Nothing follows `refused` and `lost`. */
export type PeerEvent =
  | { kind: "answer"; sdp: string }
  /** The offer cannot be accepted; the reason is a sentence for the client. */
  | { kind: "refused"; reason: string }
  /** 20 ms, once per `send`; gaps are concealed. */
  | { kind: "audio"; pcm: Pcm }
  /** The quality of the audio so far. */
  | { kind: "quality"; quality: LegQuality }
  /** The page cannot be reached by packets, or no longer. */
  | { kind: "lost" };

export interface WebPeer {
  /** Takes 20 ms, every 20 ms; with null nothing is sent, but received audio is still published. */
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
  /** 0 for any free port. */
  port: number;
  /** Addresses at which pages reach the port; empty for those it is bound to. */
  publicHosts: string[];
}
