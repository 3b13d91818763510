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
 * browser; nobody has to when they type or are a script.
 */
export const HEARINGS = ["server", "model", "browser", "typed", "script"] as const;
export type Hearing = (typeof HEARINGS)[number];

/** Why the media of a call ended, finer than its status. */
export type EndReason =
  | "customer_hung_up" | "assistant_ended" | "silence" | "no_first_words" | "max_duration"
  | "voicemail" | "balance" | "transferred" | "operator" | "rejected" | "busy" | "no_answer"
  | "carrier_failed" | "speech_failed" | "model_failed" | "server_restarted" | "media_timeout";

export interface Call {
  id: number;
  accountId: number;
  assistantId: number;
  assistantUuid: string;
  assistantName: string;
  type: CallType;
  status: CallStatus;
  /** Null: no campaign made the call, or it was deleted; the same holds for the lead. */
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
  /** Settings of the assistant that had no effect; empty until the call is answered. */
  warnings: readonly Warning[];
  answeredAt: Instant | null;
  /** When the media ended. */
  endedAt: Instant | null;
  endReason: EndReason | null;
  /** In words for the owner, with what to do about it; null: nothing failed. */
  failureReason: string | null;
  /** Whole seconds from answer to end; while live, 0. */
  durationS: number;
  /** Charged per started minute, at the rate known when the call was answered. */
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
  /** Who has the call while it is in progress. */
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
  /** The person of the account who said it; only for operators. */
  author?: Author;
  /** Empty for an operator whose voice nothing here could understand. */
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
  /** The most the call may cost; as much of it as is free is reserved. */
  reserveMaxMicros: Micros;
  /** Most calls of the account live at a time. */
  parallelMax: number;
  /** The rules for an outbound call. */
  dialling: DialRules;
  now: Instant;
}

/** A requested call; with an idempotency key it is made only once. */
export type AskedNewCall = NewCall & { idempotencyKey: string | null };

export type CreateCallOutcome =
  /** `reservedMicros` bounds what the call may cost, and so how long it may last. */
  | { kind: "created"; call: Call; reservedMicros: Micros; events: CommittedEvent[] }
  | { kind: "balance_too_low" }
  | { kind: "too_many_calls" }
  /** The account has dialled as often as it may in a minute. */
  | { kind: "too_fast"; until: Instant }
  /** Nobody may dial the number of the outbound call; `reason` says why, for people. */
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
  /** The time of the request, by the call's own steady clock. */
  at: Instant;
  now: Instant;
}

export type BeginTransferOutcome =
  /**
   * `secondsMax`: how long the reserved money lasts for both legs; `afterwardsS`: how long the call
   * may last from its answer when nobody takes it.
   */
  | {
      kind: "begun"; number: number; secondsMax: number; afterwardsS: number;
      recordingFile: string | null; events: CommittedEvent[];
    }
  /** Why not, as a sentence; it is on the call's record. */
  | { kind: "refused"; reason: string; events: CommittedEvent[] }
  /** The call is no longer in progress. */
  | { kind: "over" };

type DeleteCallOutcome =
  /** `recordings`: files that no record refers to any more. */
  | { kind: "deleted"; recordings: string[]; events: CommittedEvent[] }
  | { kind: "not_found" }
  /** It has not ended, or the work after it is still running. */
  | { kind: "live" };

export interface DeletedCalls {
  deleted: number[];
  /** Those that have not ended: they stay. */
  live: number[];
  /** Files that no record refers to any more. */
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
  /** Text to find in what was said, in numbers and in variables. */
  search?: string;
}

export interface CallSnapshot {
  call: Call;
  entries: TranscriptEntry[];
}

/** A call and its account: calls of other accounts are never changed. */
export type CallRef = Pick<Call, "id" | "accountId">;

/** `at`: until when the call is known to have lasted, by its own steady clock; absent: now. */
export type CallBeat = CallRef & { at?: Instant };

export type CallDeskOutcome =
  | { kind: "moved"; desk: Desk; events: CommittedEvent[] }
  | { kind: "held"; holder: Author }
  /** The call is not in progress. */
  | { kind: "not_live" };

export interface CallStore {
  create(call: AskedNewCall): Promise<CreateCallOutcome | { kind: "repeated"; call: Call }>;
  find(accountId: number, callId: number): Promise<Call | null>;
  findById(callId: number): Promise<Call | null>;
  /** Whether a node other than `nodeId` has the call, and the call is not over. */
  isElsewhere(callId: number, nodeId: number): Promise<boolean>;
  /**
   * Calls of that node that are `ended`, unless they changed within a moment before or after `now`.
   * Changes further in the future count, because the clock may have been set back since.
   */
  toFinish(nodeId: number, now: Instant): Promise<number[]>;
  list(accountId: number, filter: CallFilter, offset: number, rows: number): Promise<Call[]>;
  count(accountId: number, filter: CallFilter): Promise<number>;
  /** Live calls of the account, oldest first. */
  live(accountId: number): Promise<Call[]>;
  transcript(callId: number): Promise<TranscriptEntry[]>;
  /** Transcripts of up to a page of calls, by call; calls in which nothing was said are missing. */
  transcripts(callIds: readonly number[]): Promise<Map<number, TranscriptEntry[]>>;
  /** Call and transcript as of one moment. */
  snapshot(callId: number): Promise<CallSnapshot | null>;
  /** Live calls of the account as of one moment, with the account's newest event number. */
  liveSnapshot(accountId: number): Promise<{ sequence: number; calls: CallSnapshot[] }>;
  /**
   * One transition; no events when the table of status.ts does not allow it. A call that ends
   * unanswered gives its reservation back in the same transaction.
   */
  change(args: {
    accountId: number;
    callId: number;
    to: CallStatus;
    answeredBy?: AnsweredBy;
    reason?: EndReason;
    failureReason?: string | null;
    /** The file that is being written from now on. */
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
  /** Begins a warm transfer, and reserves what two legs may cost. */
  beginTransfer(args: BeginTransfer): Promise<BeginTransferOutcome>;
  /** One step of a warm transfer; no events when the table of warm-stages.ts does not allow it. */
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
  /** Marks the newest transfer to a line as failed, also after the end of the call. */
  failTransfer(args: {
    accountId: number; callId: number; failureReason: string; now: Instant;
  }): Promise<void>;
  /** One transition of the table in conversations/desk/desk.ts, while the call is in progress. */
  moveDesk(args: {
    accountId: number; callId: number; move: "take" | "hand_back"; by: DeskActor;
    reason: DeskReason; holder: Author | null; now: Instant;
  }): Promise<CallDeskOutcome>;
  /** Null: the call is not in progress. */
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
    /** Absent: `full`. */
    charge?: Charge;
    /** When it was over for the customer, who pays until then; absent: now. */
    endedAt?: Instant;
    turns: readonly TurnLatency[];
    /** Absent: nothing is known of it. */
    quality?: LegQuality | null;
    /** False: nothing was recorded after all. */
    hasRecording: boolean;
    /** Recordings of legs that are empty as well; absent: none. */
    silent?: readonly string[];
    now: Instant;
  }): Promise<CommittedEvent[]>;
  /** ended → its final status, with the results of the work after the call. */
  finish(args: {
    accountId: number;
    callId: number;
    evaluation: Record<string, unknown>;
    evaluationError: string | null;
    now: Instant;
  }): Promise<CommittedEvent[]>;
  /** Records that the calls are still in progress: after a crash they are charged up to then. */
  beat(args: { calls: readonly CallBeat[]; now: Instant }): Promise<void>;
  /**
   * Closes what gone processes left: calls not yet answered and calls in progress become failed;
   * those in progress are charged up to their last beat. Calls `ended` are this node's to `finish`
   * from then on.
   * `silent`: files among `cutRecordings` that are empty.
   */
  recover(args: { silent: readonly string[]; now: Instant }): Promise<CommittedEvent[]>;
  /** Recordings of calls that `recover` would close; nobody closed these files either. */
  cutRecordings(): Promise<string[]>;
  /** False: no call has this recording any more, as its own or as that of a leg. */
  hasRecording(file: string): Promise<boolean>;
  /** Deletes record, transcript and the content of the events; the ledger entry stays. */
  delete(args: { accountId: number; callId: number; now: Instant }): Promise<DeleteCallOutcome>;
  /** Each is recorded in the audit log; calls that are not the account's are skipped. */
  deleteMany(args: { accountId: number; callIds: number[]; by: By; now: Instant }):
    Promise<DeletedCalls>;
  /** Takes recordings older than `before` off the records; resolves to the names of their files. */
  expireRecordings(args: { before: Instant; rows: number; now: Instant }): Promise<string[]>;
}
