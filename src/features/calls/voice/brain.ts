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
   * The customer has said `text`: answer with `replyText` and `replyEnd`. `language`: what the
   * recogniser took it for, `iso_2`; null: it does not say. `ahead`: not all may be said yet, so
   * functions wait for `goAhead`, and `cancel` may come instead; it is what of `text` was not
   * reported as `said`. Null: nothing is ahead of its time.
   */
  reply(turn: number, text: string, language: string | null, ahead: string | null): void;
  /** The reply that was asked for ahead of its time is being heard; its words were `said`. */
  goAhead(turn: number): void;
  /** The customer has been silent: say something, as a reply to nothing. */
  reengage(turn: number): void;
  /** A colleague has given a hint, or the call back: say something, as a reply to that. */
  speakUp(turn: number, why: SpeakUp): void;
  /** Nothing more of this reply is wanted. */
  cancel(turn: number): void;
  /** A model that speaks by itself calls a function of the assistant's; answer `toolResult`. */
  functionCall(turn: number, call: { callId: string; name: string; argumentsJson: string }): void;
  said(said: Said): void;
  /** What is being said just now. */
  delta(speaker: Exclude<Speaker, "operator">, text: string): void;
  state(state: VoiceState): void;
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
    Channel, "callMs" | "hangUp" | "join" | "listen" | "mute" | "rate" | "scribe" | "sendDtmf"
  >;
  /** Words of an operator: said as soon as nobody else speaks. False: they cannot be. */
  say(text: string): boolean;
  /** What a person of the account does beside the assistant or in its place. */
  takePart(event: PersonEvent): void;
  /** Is silent once what is being said has been heard; `then` runs at that moment. */
  standAside(then: () => void): void;
  /** Goes on; from its answer the call may last so long. */
  comeBack(durationMaxMs: number): void;
  become(successor: Successor): void;
  /** Ends the call once what is being said is over; `to`: by handing it on. */
  endAfterSpeech(reason: EndReason, to: string | null): void;
}

export interface CallSummary {
  reason: EndReason;
  /** Why the leg ended, when it did so by itself. */
  cause: LegEndCause | null;
  /** How long nothing had been heard of the customer, where that ended it. */
  silentMs?: number;
  /** What failed, where something did: an engine's or a carrier's words. */
  detail?: string | null;
  turns: readonly TurnLatency[];
  /** How the leg's sound came through. */
  quality?: LegQuality | null;
}

export interface SessionOptions {
  settings: VoiceSettings;
  /** The money's bound on the length of the call. */
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
  /** Frames for where nobody speaks; null: silence. */
  comfort: (() => Pcm) | null;
  record: ((customer: Pcm, assistant: Pcm) => void) | null;
  /** Calls `onBeep` when the customer's side plays a voicemail's beep; null: it is not detected. */
  beeps: ((rate: number, onBeep: () => void) => { push(pcm: Pcm): void }) | null;
  clock: MediaClock;
  system: System;
  log: Logger;
  brain: Brain;
}
