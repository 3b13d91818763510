// The port of a call whose far end is a socket in the main thread: a page or a hosted carrier.
import type { LegQuality } from "#providers/carriers/port.ts";
import type { Pcm } from "#providers/speech/port.ts";
import type { EndReason } from "./records/records.ts";
import type { Said, VoiceState } from "./voice/brain.ts";
import type { PeerReport } from "./voice/protocol.ts";

/** The far end of a call whose socket is in the main thread. */
export interface Face {
  frame(pcm: Pcm): void;
  clear(): void;
  /** The end of something that was said. */
  mark(): void;
  transcript(speaker: Said["speaker"], text: string, isFinal: boolean): void;
  state(state: VoiceState): void;
  functionCall(name: string, phase: "start" | "end"): void;
  /** What becomes of the page's offer of WebRTC. */
  peer(report: PeerReport): void;
  over(reason: EndReason): void;
  /** For how long nothing has come from it; absent: nobody has measured it. */
  silentMs?(): number;
  /** How the customer's sound came to the socket; absent: nobody has measured it. */
  quality?(): LegQuality | null;
  /** Null: no telephone is behind it. */
  line: { dtmf(digits: string): void; transfer(to: string): void } | null;
}
