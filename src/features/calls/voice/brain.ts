// What a session needs and what it reports: the port to the main thread, where models, tools and
// records are, and everything a call is made of.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { Leg, LegEndCause, LegEvent, LegQuality } from "#providers/carriers/port.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type {
  NoiseFilter, Pcm, Synthesizer, Transcriber, TurnEndModel, Vad,
} from "#providers/speech/port.ts";
import type {
  AnsweredBy, EndReason, Speaker, TranscriptEntry, TurnLatency,
} from "#features/calls/records/records.ts";
import type { Channel } from "./channel.ts";
import type { MediaClock } from "./clock.ts";
import type { VoiceSettings } from "./settings.ts";
import type { PersonEvent, SpeakUp } from "./turns/taking-part.ts";

/** Something that was said, before it is on record. */
export interface Said
  extends Pick<
    TranscriptEntry, "speaker" | "author" | "text" | "startMs" | "endMs" | "interrupted"
  > {
  /** The turn a reply belongs to; null for what was said unasked. */
  turn: number | null;
  /** False: for the record only, the model does not get to see it. */
  counts: boolean;
}

export type VoiceState = "listening" | "thinking" | "speaking";

/** What the session reports to the main thread. Nothing follows `over`. */
export interface Brain {
  ringing(): void;
  answered(): void;
  answeredBy(by: AnsweredBy): void;
  /**
   * The customer has said `text`: answer with `replyText` and `replyEnd`. `language`: as the
   * recogniser detected it, `iso_2`; null: it reports none. `ahead`: the customer may go on, so
   * functions wait for `goAhead`, and `cancel` may come instead; it is the part of `text` that was
   * not reported as `said`. Null: the turn is over.
   */
  reply(turn: number, text: string, language: string | null, ahead: string | null): void;
  /** A reply that was requested early is being heard; the words it answers were `said`. */
  goAhead(turn: number): void;
  /** The customer has been silent: say something, as a reply to nothing. */
  reengage(turn: number): void;
  /** A colleague has given a hint, or handed the call back: say something, as a reply to that. */
  speakUp(turn: number, why: SpeakUp): void;
  /** Nothing more of this reply is wanted. */
  cancel(turn: number): void;
  /** A model that speaks by itself calls a function; answer with `functionResult`. */
  functionCall(turn: number, call: { callId: string; name: string; argumentsJson: string }): void;
  said(said: Said): void;
  /** What is being said at the moment. */
  delta(speaker: Exclude<Speaker, "operator">, text: string): void;
  state(state: VoiceState): void;
  /** `over` waits for `then`: the words of everybody but the customer are on record. */
  ending(reason: EndReason, then: () => void): void;
  over(summary: CallSummary): void;
}

/** Another assistant, which goes on with a call. */
export interface Successor {
  settings: VoiceSettings;
  greeting: string;
  synthesizer: Synthesizer | null;
  transcriber: Transcriber | null;
  /** For models that speak by themselves. */
  instructions: string;
  functions: ModelFunction[];
}

/** What can be done to a call of any kind while it lasts. */
export interface CallSession {
  readonly channel: Pick<
    Channel,
    "callMs" | "hangUp" | "isOver" | "join" | "listen" | "mute" | "rate" | "scribe" | "sendDtmf"
  >;
  /** Words of an operator: said as soon as nobody else speaks. False: they cannot be. */
  say(text: string): boolean;
  /** What a person of the account does beside the assistant or in its place. */
  takePart(event: PersonEvent): void;
  /** Silences the assistant once its current utterance was heard; `then` runs at that moment. */
  standAside(then: () => void): void;
  /** Lets the assistant go on; `durationMaxMs`: how long the call may last from its answer. */
  comeBack(durationMaxMs: number): void;
  become(successor: Successor): void;
  /** Ends the call after the current utterance; `to`: by transferring it there. */
  endAfterSpeech(reason: EndReason, to: string | null): void;
}

export interface CallSummary {
  reason: EndReason;
  /** Why the leg ended, when it did so by itself. */
  cause: LegEndCause | null;
  /**
   * How long nobody has talked: nothing had come from the customer, which ended the call, or it
   * was over and their last words were waited for. Absent: not at all.
   */
  silentMs?: number;
  /** What failed, if anything, in the words of an engine or a carrier. */
  detail?: string | null;
  turns: readonly TurnLatency[];
  /** How the leg's sound came through. */
  quality?: LegQuality | null;
}

export interface SessionOptions {
  settings: VoiceSettings;
  /** How long the reserved money lasts. */
  durationMaxMs: number;
  greeting: string;
  /** Creates the leg; its events go to `publish`. */
  connect(publish: (event: LegEvent) => void): Leg;
  synthesizer: Synthesizer;
  transcriber: Transcriber;
  vad: Vad;
  noiseFilter: NoiseFilter | null;
  turnEnds: TurnEndModel | null;
  ambience: { next(samples: number): Pcm; gain: number } | null;
  /** Makes frames of comfort noise for when nobody speaks; null: silence. */
  comfort: (() => Pcm) | null;
  record: ((customer: Pcm, assistant: Pcm) => void) | null;
  /** Calls `onBeep` when the customer's side plays a voicemail's beep; null: it is not detected. */
  beeps: ((rate: number, onBeep: () => void) => { push(pcm: Pcm): void }) | null;
  clock: MediaClock;
  system: System;
  log: Logger;
  brain: Brain;
}
