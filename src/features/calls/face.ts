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
  /** Marks the end of an utterance in the sound that is sent. */
  mark(): void;
  transcript(speaker: Said["speaker"], text: string, isFinal: boolean): void;
  state(state: VoiceState): void;
  functionCall(name: string, phase: "start" | "end"): void;
  /** Reports what becomes of the page's WebRTC offer. */
  peer(report: PeerReport): void;
  over(reason: EndReason): void;
  /** For how long nothing has come from the far end; absent: it is not measured. */
  silentMs?(): number;
  /** How well the customer's sound arrived at the socket; absent: it is not measured. */
  quality?(): LegQuality | null;
  /** Null: there is no telephone line behind it. */
  line: { dtmf(digits: string): void; transfer(to: string): void } | null;
}
