// Records and the store port of calls. The states are in status.ts, the rules in calls.ts, what
// happens while people talk in voice/.
import type { By } from "#features/accounts/audit.ts";
import type { Warning } from "#features/assistants/warnings.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { Desk } from "#features/conversations/desk/desk.ts";
import type { Author, CommittedEvent, DeskActor, DeskReason, FunctionCall } from "#events/events.ts";
import type { DialRules } from "#features/phone-numbers/dial-guard.ts";
import type { LegQuality } from "#providers/carriers/port.ts";
import type { Charge } from "./failures.ts";
import type { AnsweredStatus, CallStatus } from "./status.ts";
import type { LineTransfer, Transfer } from "./transfers.ts";
import type { TransferOutcome, WarmStage } from "./warm-stages.ts";

export const CALL_TYPES = ["inbound", "outbound", "web"] as const;
export type CallType = (typeof CALL_TYPES)[number];
export type AnsweredBy = "human" | "machine" | "unknown";

/**
 * Who understands the customer: a recogniser of this server, a realtime model, the caller's own
 * browser; nobody has to where they type or are a script.
 */
export const HEARINGS = ["server", "model", "browser", "typed", "script"] as const;
export type Hearing = (typeof HEARINGS)[number];

/** Why the media of a call ended, finer than its status. */
const END_REASONS = [
  "customer_hung_up", "assistant_ended", "silence", "no_first_words", "max_duration", "voicemail",
  "balance", "transferred", "operator", "rejected", "busy", "no_answer", "carrier_failed",
  "speech_failed", "model_failed", "server_restarted", "media_timeout",
] as const;
export type EndReason = (typeof END_REASONS)[number];

export interface Call {
  id: number;
  accountId: number;
  assistantId: number;
  assistantUuid: string;
  assistantName: string;
  type: CallType;
  status: CallStatus;
  /** Null: no campaign's, or one that was deleted; so is the lead. */
  campaignId: number | null;
  campaignName: string | null;
  leadId: number | null;
  /** The conversation a web call was opened from. */
  conversationUuid: string | null;
  assistantPhone: string | null;
  customerPhone: string | null;
  /** Given before the call; what was collected is in `evaluation`. */
  variables: Record<string, string>;
  answeredBy: AnsweredBy;
  /** Null until it is answered. */
  hearing: Hearing | null;
  /** Settings of the assistant that did not act; empty until the call is answered. */
  warnings: readonly Warning[];
  answeredAt: Instant | null;
  /** When the media ended. */
  endedAt: Instant | null;
  endReason: EndReason | null;
  /** In words for the owner, with what to do about it; null: nothing failed. */
  failureReason: string | null;
  /** Whole seconds from answer to end; while live, 0. */
  durationS: number;
  /** Whole minutes begun, at the rate known when it was answered. */
  carrierCostMicros: Micros;
  /** The carrier's cost and the account's charge together; the ledger has the charge alone. */
  totalCostMicros: Micros;
  /** Values by the names of the assistant's post_call_schema; empty until evaluated. */
  evaluation: Record<string, unknown>;
  /** Why there is no evaluation although one was due. */
  evaluationError: string | null;
  webhookResponse: Record<string, unknown>;
  /** File name below the recordings folder; null when nothing was recorded or it was deleted. */
  recordingFile: string | null;
  turns: readonly TurnLatency[];
  /** Null: not over, never answered, or not known. */
  quality: LegQuality | null;
  /** In the order they were asked for. */
  transfers: readonly Transfer[];
  /** Who has it while it is talked on. */
  desk: Desk;
  /** Sequence of the newest event of topic `call:<id>`. */
  eventSequence: number;
  createdAt: Instant;
  updatedAt: Instant;
}

/** `operator`: a person of the account who took part. */
export type Speaker = "assistant" | "customer" | "operator";

/** One thing said, in the words really heard; times in milliseconds since the answer. */
export interface TranscriptEntry {
  /** 1, 2, 3 … per call. */
  number: number;
  speaker: Speaker;
  /** Who of the account it was; only of operators. */
  author?: Author;
  /** Empty with the speaker operator: a voice that nothing here could understand. */
  text: string;
  startMs: number;
  endMs: number;
  /** The customer spoke over it: `text` holds only what was played. */
  interrupted: boolean;
  functionCalls: FunctionCall[];
  /**
   * The number of the warm transfer on whose leg it was said: by the assistant to the colleague, or
   * by the colleague, who has the customer's place there. Absent: between assistant and customer.
   */
  transfer?: number;
}

/** How long each stage of one reply took, in milliseconds since the customer stopped speaking. */
export interface TurnLatency {
  /** When that was, in milliseconds since the answer; absent: the record is older. */
  atMs?: number;
  endpointMs: number | null;
  finalTranscriptMs: number | null;
  firstTokenMs: number | null;
  firstAudioMs: number | null;
  /** When the first audio frame of the reply was handed to the carrier. */
  heardMs: number | null;
}

export interface NewCall {
  accountId: number;
  assistant: { id: number; uuid: string };
  type: CallType;
  conversationUuid: string | null;
  assistantPhone: string | null;
  customerPhone: string | null;
  variables: Record<string, string>;
  /** Absent: no campaign's call. */
  origin?: { campaignId: number; leadId: number };
  /** Price of a second of talk, as a fraction kept exact: micros per minute. */
  priceMicrosPerMinute: Micros;
  /** Least that must be free: the shortest billed call. */
  reserveMinMicros: Micros;
  /** Worst case; as much of it as is free is set aside. */
  reserveMaxMicros: Micros;
  /** Most calls of the account live at a time. */
  parallelMax: number;
  /** What bounds it when it is outbound. */
  dialling: DialRules;
  now: Instant;
}

/** A call somebody asks for; under a key of theirs it is made once. */
export type AskedNewCall = NewCall & { idempotencyKey: string | null };

export type CreateCallOutcome =
  /** `reservedMicros` bounds what the call may cost, and so how long it may last. */
  | { kind: "created"; call: Call; reservedMicros: Micros; events: CommittedEvent[] }
  | { kind: "balance_too_low" }
  | { kind: "too_many_calls" }
  /** The account has dialled as often as it may in a minute. */
  | { kind: "too_fast"; until: Instant }
  /** The number of an outbound call is one that nobody may dial: why, for people. */
  | { kind: "barred"; reason: string }
  /** The number of an outbound call is on the account's do-not-call list. */
  | { kind: "blocked" };

export interface BeginTransfer {
  accountId: number;
  callId: number;
  type: LineTransfer;
  to: string;
  /** What the carrier charges for a minute of the leg. */
  carrierMicrosPerMinute: Micros;
  dialling: DialRules;
  /** The longest the two may talk. */
  secondsMax: number;
  /** The call's own clock has it so. */
  at: Instant;
  now: Instant;
}

export type BeginTransferOutcome =
  /**
   * `secondsMax`: how long what is set aside lasts for both legs; `afterwardsS`: for the call from
   * its answer, when nobody takes it.
   */
  | {
      kind: "begun"; number: number; secondsMax: number; afterwardsS: number;
      recordingFile: string | null; events: CommittedEvent[];
    }
  /** Why not, as a sentence; it is on the call's record. */
  | { kind: "refused"; reason: string; events: CommittedEvent[] }
  /** It talks no more. */
  | { kind: "over" };

type DeleteCallOutcome =
  /** `recordings`: files, which nothing names any more. */
  | { kind: "deleted"; recordings: string[]; events: CommittedEvent[] }
  | { kind: "not_found" }
  /** It has not ended, or the work after it runs. */
  | { kind: "live" };

export interface DeletedCalls {
  deleted: number[];
  /** Those that have not ended: they stay. */
  live: number[];
  /** Files, which nothing names any more. */
  recordings: string[];
  events: CommittedEvent[];
}

export interface CallFilter {
  status?: CallStatus;
  type?: CallType;
  phoneNumber?: string;
  assistantId?: number;
  campaignId?: number;
  /** Instants; `to` is exclusive. */
  from?: Instant;
  to?: Instant;
  /** In what was said, numbers and variables. */
  search?: string;
}

export interface CallSnapshot {
  call: Call;
  entries: TranscriptEntry[];
}

/** A call and whose it is: the calls of others are not changed. */
export type CallRef = Pick<Call, "id" | "accountId">;

/** `at`: until when it is known to last, by the clock of its answer; absent: now. */
export type CallBeat = CallRef & { at?: Instant };

export type CallDeskOutcome =
  | { kind: "moved"; desk: Desk; events: CommittedEvent[] }
  | { kind: "held"; holder: Author }
  /** Nobody is being talked with. */
  | { kind: "not_live" };

export interface CallStore {
  create(call: AskedNewCall): Promise<CreateCallOutcome | { kind: "repeated"; call: Call }>;
  find(accountId: number, callId: number): Promise<Call | null>;
  findById(callId: number): Promise<Call | null>;
  /** Whether another node than this one has the call, which is not over. */
  isElsewhere(callId: number, nodeId: number): Promise<boolean>;
  /**
   * Calls of that node that are `ended` and were not a moment ago, nor in the moment to come: the
   * clock may have been set back since.
   */
  toFinish(nodeId: number, now: Instant): Promise<number[]>;
  list(accountId: number, filter: CallFilter, offset: number, rows: number): Promise<Call[]>;
  count(accountId: number, filter: CallFilter): Promise<number>;
  /** Live calls of the account, oldest first. */
  live(accountId: number): Promise<Call[]>;
  transcript(callId: number): Promise<TranscriptEntry[]>;
  /** Those of at most a page of calls, by call; a call nothing was said in is missing. */
  transcripts(callIds: readonly number[]): Promise<Map<number, TranscriptEntry[]>>;
  /** Call and transcript as of one moment. */
  snapshot(callId: number): Promise<CallSnapshot | null>;
  /** Live calls of the account as of one moment, with the account's newest event number. */
  liveSnapshot(accountId: number): Promise<{ sequence: number; calls: CallSnapshot[] }>;
  /**
   * One transition; no events when the table of status.ts has none from where the call is. A call
   * that ends unanswered gives its reservation back in the same transaction.
   */
  change(args: {
    accountId: number;
    callId: number;
    to: CallStatus;
    answeredBy?: AnsweredBy;
    reason?: EndReason;
    failureReason?: string | null;
    /** Being written from now on. */
    recordingFile?: string | null;
    hearing?: Hearing;
    warnings?: readonly Warning[];
    carrierMicrosPerMinute?: Micros;
    now: Instant;
  }): Promise<CommittedEvent[]>;
  setVariables(args: {
    accountId: number; callId: number; variables: Record<string, string>;
  }): Promise<void>;
  addTransfer(args: { accountId: number; callId: number; transfer: Transfer }): Promise<void>;
  /** The beginning of a warm transfer: what two legs may cost is set aside. */
  beginTransfer(args: BeginTransfer): Promise<BeginTransferOutcome>;
  /** One step of a warm transfer; no events where the table of warm-stages.ts has none. */
  stepTransfer(args: {
    accountId: number;
    callId: number;
    /** Its place among the call's transfers, counted from 1. */
    number: number;
    stage: WarmStage;
    outcome: TransferOutcome | null;
    failureReason: string | null;
    now: Instant;
  }): Promise<CommittedEvent[]>;
  /** The newest transfer to a line has failed; done also after the end of the call. */
  failTransfer(args: {
    accountId: number; callId: number; failureReason: string; now: Instant;
  }): Promise<void>;
  /** One change of the table in conversations/desk/desk.ts, while the call is talked on. */
  moveDesk(args: {
    accountId: number; callId: number; move: "take" | "hand_back"; by: DeskActor;
    reason: DeskReason; holder: Author | null; now: Instant;
  }): Promise<CallDeskOutcome>;
  /** Null: the call is not talked on. */
  whisper(args: {
    accountId: number; callId: number; by: Author; text: string; now: Instant;
  }): Promise<CommittedEvent[] | null>;
  /** Numbers the entry, appends it and its event. */
  addTranscript(args: {
    accountId: number; callId: number; entry: Omit<TranscriptEntry, "number">; now: Instant;
  }): Promise<CommittedEvent[]>;
  /**
   * The media is over: in-progress → ended (or failed), duration fixed, transfers settled, cost
   * posted to the ledger and the rest of the reservation released, all in one transaction.
   * `finalStatus` is what `finish` will make of it, kept so that a restart can finish too.
   */
  end(args: {
    accountId: number;
    callId: number;
    finalStatus: AnsweredStatus | "failed";
    reason: EndReason;
    failureReason?: string | null;
    /** Absent: all of it. */
    charge?: Charge;
    /** When it was over for the customer, who pays until then; absent: now. */
    endedAt?: Instant;
    turns: readonly TurnLatency[];
    /** Absent: nothing is known of it. */
    quality?: LegQuality | null;
    /** False: nothing was recorded after all. */
    hasRecording: boolean;
    /** Files of legs in which nothing is either; absent: none. */
    silent?: readonly string[];
    now: Instant;
  }): Promise<CommittedEvent[]>;
  /** ended → its final status, with what the work after the call gave. */
  finish(args: {
    accountId: number;
    callId: number;
    evaluation: Record<string, unknown>;
    evaluationError: string | null;
    now: Instant;
  }): Promise<CommittedEvent[]>;
  /** These calls are still in progress: what a crash would cost them is counted up to then. */
  beat(args: { calls: readonly CallBeat[]; now: Instant }): Promise<void>;
  /**
   * What processes that are gone have left: calls not yet answered and calls in progress become
   * failed; those that talked are charged up to their last beat. Calls `ended` are this node's to
   * `finish` from then on.
   * `silent`: files among `cutRecordings` in which nothing is.
   */
  recover(args: { silent: readonly string[]; now: Instant }): Promise<CommittedEvent[]>;
  /** Files of calls that `recover` would close, which were not closed either. */
  cutRecordings(): Promise<string[]>;
  /** False: no call has this recording, of itself or a leg, or has it any more. */
  hasRecording(file: string): Promise<boolean>;
  /** Record, transcript and what its events said go; its ledger entry stays. */
  delete(args: { accountId: number; callId: number; now: Instant }): Promise<DeleteCallOutcome>;
  /** Each is noted; calls the account has not are passed over. */
  deleteMany(args: { accountId: number; callIds: number[]; by: By; now: Instant }):
    Promise<DeletedCalls>;
  /** Recordings older than `before`: their files' names, forgotten by the records. */
  expireRecordings(args: { before: Instant; rows: number; now: Instant }): Promise<string[]>;
}
