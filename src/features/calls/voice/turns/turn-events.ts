// The events the turn taker receives, the actions it answers with, and its state. The rules are in
// turn-taker.ts.
import type { EndReason } from "#features/calls/records/records.ts";
import type { TimerSettings, TimerState } from "./call-timers.ts";
import type { VoiceSettings } from "#features/calls/voice/settings.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { PersonEvent, SpeakUp, TakingPart } from "./taking-part.ts";
import type { FillerTone } from "./wording.ts";

export type TurnSettings = TimerSettings & Pick<
  VoiceSettings, "endpoint" | "interrupt" | "isEager" | "waitForCustomer" | "voicemail"
> & {
  hasFillers: boolean;
  hasGreeting: boolean;
  /** The recogniser reports the end of turns itself. */
  detectsTurns: boolean;
  /** Its words come with the leg and not from sound: they are exactly what was said. */
  wordsAreTold: boolean;
  /** An end-of-turn model judges by the sound of a turn whether it is over. */
  judgesEnds: boolean;
};

export type TurnEvent =
  | PersonEvent
  /** The assistant makes room for somebody on another line once its current utterance is heard. */
  | { kind: "stand_aside" }
  /** The assistant has the call again. */
  | { kind: "come_back" }
  | { kind: "answered" }
  /** Time passes; at least every 20 ms. */
  | { kind: "tick" }
  /**
   * One frame of voice activity, `frameMs` long; nothing was audible for `quietMs` at its end.
   * `periodicity`: from 0 to 1, how much it is like one voice; 0 where nobody speaks.
   */
  | { kind: "voice"; probability: number; frameMs: number; quietMs: number; periodicity: number }
  | { kind: "partial"; text: string }
  | { kind: "final"; text: string }
  | { kind: "end_of_turn" }
  | { kind: "end_of_turn_likely" }
  /** The answer to `judge_end`: from 0, the customer goes on, to 1, they have finished. */
  | { kind: "end_judged"; pause: number; probability: number }
  | { kind: "dtmf"; digit: string }
  /** The first audio of what the assistant says is queued. */
  | { kind: "audio_started" }
  /** Everything the assistant had to say has been played. */
  | { kind: "played_out" }
  /** The reply ended without anything to play. */
  | { kind: "reply_empty" }
  | { kind: "function"; running: boolean }
  /** Something is being said that is no reply: an operator's words, a farewell. */
  | { kind: "saying" }
  /** End the call once what is being said has been played. */
  | { kind: "end_after_speech"; reason: EndReason }
  /** The call could not be transferred: the talk goes on. */
  | { kind: "transfer_failed" }
  /** The customer has put the call on hold, or resumed it. */
  | { kind: "held"; isHeld: boolean }
  | { kind: "beep" }
  | { kind: "answered_by"; by: "human" | "machine" | "unknown" };

export type TurnAction =
  | { kind: "greet" }
  /** The recogniser is to give its final text for what was said. */
  | { kind: "finalize" }
  /** The end-of-turn model is to judge the pause after `spokenMs` of the turn. */
  | { kind: "judge_end"; pause: number; spokenMs: number }
  /**
   * The customer has said `text`; answer it. `hasVoice`: a voice said it after the assistant had
   * finished, so that the latency of the reply can be measured.
   */
  | { kind: "reply"; text: string; hasVoice: boolean }
  /** Request a reply early, unheard: `reply` with the same `text` may follow, or `discard`. */
  | { kind: "prepare"; text: string }
  /** The prepared reply is not wanted. */
  | { kind: "discard" }
  /** The reply under way is not wanted: the customer goes on talking. */
  | { kind: "cancel_reply" }
  /** Stop the audio but keep it: it may go on. */
  | { kind: "pause" }
  | { kind: "resume" }
  /** Drop what is not played, and the reply; what was played is what was said. */
  | { kind: "interrupt" }
  /** The customer said something that asks for no answer. */
  | { kind: "note"; text: string }
  | { kind: "filler"; tone: FillerTone }
  | { kind: "reengage" }
  /** Ask for a reply to what a colleague said or did. */
  | { kind: "speak_up"; why: SpeakUp }
  /** From now on the assistant is silent. */
  | { kind: "stands_aside" }
  | { kind: "leave_message" }
  | { kind: "say_goodbye"; reason: EndReason }
  | { kind: "answered_by"; by: "human" | "machine" | "unknown" }
  | { kind: "hang_up"; reason: EndReason };

/** `aside`: somebody else has the call, the assistant only listens. */
export type Phase =
  | "dialling" | "waiting" | "listening" | "thinking" | "speaking" | "aside" | "over";

export interface TurnState {
  readonly phase: Phase;
  readonly timers: TimerState;
  /** Run of voiced frames, and of unvoiced ones since the last voiced. */
  readonly voicedMs: number;
  readonly unvoicedMs: number;
  readonly isTalking: boolean;
  /** The customer has said something that is not answered yet. */
  readonly hasTurn: boolean;
  /** When the turn began. */
  readonly turnFromMs: number;
  /** The number of the pause that is judged, and what was judged; null: not yet. */
  readonly pause: number;
  readonly judged: number | null;
  /** When sound came last. */
  readonly frameMs: number;
  /** A voice was heard saying it, not only words recognised. */
  readonly hasVoice: boolean;
  /** When the customer was last audible, which is before the voice detector says so. */
  readonly lastVoiceMs: number;
  /** When the assistant last came to the end of what it said. */
  readonly playedOutMs: number;
  /** How much voice the turn under way has had. */
  readonly soundMs: number;
  /** How much of it was loud enough to judge, and how much of that was like one voice. */
  readonly audibleMs: number;
  readonly clearMs: number;
  readonly finals: string;
  readonly partial: string;
  /** When the final text that has not come yet was requested; null: none is due. */
  readonly finalAskedMs: number | null;
  /** How many final texts that were requested have not come. */
  readonly finalsDue: number;
  /** When the newest final text came. */
  readonly finalMs: number;
  /** How many words of the recogniser's open piece have been dealt with. */
  readonly spentWords: number;
  /** The text answered by the reply that was requested early; null: there is none. */
  readonly prepared: string | null;
  /** How often a reply was requested early in this turn. */
  readonly prepares: number;
  /** What the reply under way answers; joined with what follows when it is cancelled. */
  readonly answering: string;
  readonly isPaused: boolean;
  /** When what is being said was first heard. */
  readonly speakingMs: number;
  /** A reply began although the customer went on talking. */
  readonly wasCutOff: boolean;
  readonly thinkingMs: number;
  readonly fillerPlayed: boolean;
  readonly functionRunning: boolean;
  readonly ending: EndReason | null;
  readonly elsewhere: Elsewhere;
  readonly listener: "unknown" | "human" | "machine";
  /** How long the other end has spoken without a breath, for telling machines. */
  readonly runMs: number;
  readonly messageLeft: boolean;
  /** A person of the account who takes part; null: none does. */
  readonly person: TakingPart | null;
  /** A colleague's hint has not been acted on. */
  readonly isHinted: boolean;
}

export interface Reduced {
  state: TurnState;
  actions: readonly TurnAction[];
}
