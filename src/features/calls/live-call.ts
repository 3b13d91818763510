// What the main thread knows about a live call, and the ports it needs for it. Shared by the files
// that take a call from its beginning (calling.ts) through its replies to its end (ending.ts).
import type { Cluster } from "#cluster/cluster.ts";
import type { Logger } from "#core/logger.ts";
import type { Micros } from "#core/money.ts";
import type { CarrierLeg } from "#core/price-lists.ts";
import type { Instant, System, Timer } from "#core/system.ts";
import type { TurnLimits } from "#engine/drive.ts";
import type { FunctionSource, TurnFunctions } from "#engine/functions.ts";
import type { HistoryMessage } from "#engine/history.ts";
import type { Languages } from "#engine/prompt.ts";
import type { Author, FunctionCall } from "#events/events.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Warning } from "#features/assistants/warnings.ts";
import type { ResolveTurn, TurnContext } from "#features/assistants/turn-context.ts";
import type { RouteInbound } from "#features/phone-numbers/inbound-routing.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { Pcm } from "#providers/speech/port.ts";
import type { Summarise } from "./briefing.ts";
import type { Calls } from "./calls.ts";
import type { Capacity } from "./capacity.ts";
import type { Evaluate } from "./evaluation.ts";
import type { Face } from "./face.ts";
import type { SpokenLanguage } from "./languages.ts";
import type { Lines } from "./lines.ts";
import type { Recordings } from "./records/recordings.ts";
import type { Hearing } from "./records/records.ts";
import type { GivenWords, VoiceChoice } from "./voice-choice.ts";
import type { MediaThread } from "./voice/protocol.ts";

export interface CallingOptions extends VoiceChoice, Pick<Lines, "colleagueLineOf" | "lineOf"> {
  /** Summarises a call for a colleague before they take it. */
  summarise: Summarise;
  /** Lets other nodes reach the call until the result is called. */
  offer(callId: number): () => void;
  calls: Calls;
  /** Calls of this node that ended at least a moment ago and are not finished. */
  toFinish(now: Instant): Promise<number[]>;
  /** Whether this node may still place calls: it holds its lease. */
  holds: Cluster["holds"];
  onLost: Cluster["onLost"];
  media: MediaThread;
  capacity: Capacity;
  findAssistant(accountId: number, assistantId: number): Promise<Assistant | null>;
  resolveTurn: ResolveTurn;
  /** Looked up before a call is opened, because opening it is synchronous. */
  factsOf(assistant: Assistant): Promise<AssistantFacts>;
  /** Titles of the assistant's documents. */
  titlesOf(assistant: Assistant): Promise<string[]>;
  /** Functions of the assistant, for a model that speaks by itself. */
  sourcesOf(context: TurnContext): Promise<FunctionSource[]>;
  languagesOf(assistant: Assistant): Languages;
  /** What an assistant's inbound webhook says about a caller; never rejects. */
  askInbound(facts: {
    url: string; accountId: number; assistantId: number; callId: number;
    customerPhone: string | null; assistantPhone: string | null; variables: Record<string, string>;
  }): Promise<Record<string, string>>;
  routeInbound: RouteInbound;
  /** What the carrier charges per minute; 0: not known. */
  carrierRateOf(leg: CarrierLeg): Micros;
  evaluate: Evaluate;
  recordings: Pick<Recordings, "folder" | "keep" | "remove" | "repair">;
  /** Counts a reply that was begun early: heard, or dropped after so many of the model's tokens. */
  observeEager(outcome: "heard" | "dropped", tokens: number): void;
  system: System;
  log: Logger;
  limits: TurnLimits;
}

export interface AssistantFacts {
  /** Titles of its documents. */
  titles: string[];
  /** Its settings that have no effect on this server. */
  warnings: readonly Warning[];
  /** What a model that speaks by itself may call; empty for one that does not. */
  functions: readonly ModelFunction[];
}

/** Somebody who listens in. */
export interface Listener {
  /** Both sides mixed, frame by frame. */
  onAudio(pcm: Pcm, rate: number): void;
  over(): void;
}

/** A person's end of a call: their socket, wherever it is. */
interface Microphone {
  /** What they hear, frame by frame. */
  onAudio(pcm: Pcm): void;
  /** Called when this socket is no longer the person's microphone. */
  over(): void;
}

/** A person who takes part in a call. */
export interface Holding {
  author: Author;
  isAlone: boolean;
  /** Null: they cannot be heard at the moment. */
  microphone: Microphone | null;
  /** Runs while they are not connected; when it expires, the call goes back to the assistant. */
  absence: Timer | null;
}

/** Now by a clock that is steady since the answer: setting the clock makes no call longer. */
export const callNow = (
  { system }: Pick<CallingOptions, "system">, { answered }: Pick<LiveCall, "answered">,
): Instant => answered === null ? system.now() : answered();

/** What the main thread knows about a live call. */
export interface LiveCall {
  id: number;
  assistant: Assistant;
  accountId: number;
  variables: Record<string, string>;
  given: Record<string, string>;
  face: Face | null;
  isOutbound: boolean;
  /** There is a telephone line: the call can be transferred and keys can be pressed. */
  hasLine: boolean;
  carrierMicrosPerMinute: Micros;
  /** True: the line is the operator's, or there is none; false: it is an account's own trunk. */
  isOwnLine: boolean;
  isRealtime: boolean;
  hearing: Hearing;
  /** The recogniser's code; null: none is needed. */
  recogniser: string | null;
  warnings: readonly Warning[];
  words: GivenWords | null;
  spoken: SpokenLanguage;
  /** English name of the language spoken now, and the codes of all the call may change into. */
  language: { name: string; among: string[] };
  rate: number;
  /** A steady clock since the answer, by which the call is billed. Null: not answered yet. */
  answered: (() => Instant) | null;
  /** Nothing has been heard of the customer's side for some seconds. */
  isSilent: boolean;
  history: HistoryMessage[];
  /** The turn being answered. `goAhead`: its reply is heard now, and may take effect. */
  turn: { number: number; abort: AbortController; goAhead(): void } | null;
  /** What the newest turn of a model that speaks by itself may call. */
  resolved: { turn: number; assistant: Assistant; functions: Promise<TurnFunctions> } | null;
  /** The functions of turns whose words are not on record yet. */
  functionCalls: Map<number, FunctionCall[]>;
  recordingFile: string | null;
  /** When the last entry of the transcript ended. */
  saidMs: number;
  listeners: Set<Listener>;
  /** The person of the account who takes part; null: nobody. */
  person: Holding | null;
  /** Somebody of the account has said or whispered something in it. */
  hasColleagues: boolean;
  /** Colleagues' words that a model which hears by itself has not been told yet. */
  untold: string[];
  isOver: boolean;
  /** How many replies the model gave, and the message of its newest failure. */
  replies: { given: number; failure: string | null };
  done: PromiseWithResolvers<void>;
}
