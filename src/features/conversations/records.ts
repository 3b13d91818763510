// Records and the store port of text conversations. The rules are in conversations.ts.
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type {
  AttachmentBody, Author, Away, CommittedEvent, DeskReason, FailureClass, FunctionCall, Rating,
  Refused,
  ReplyFailure,
} from "#events/events.ts";
import type { ModelUsage } from "#providers/models/port.ts";
import type { Desk, MoveDesk } from "./desk/desk.ts";
import type { Satisfaction } from "./visitors/ratings.ts";

const CONVERSATION_TYPES = ["widget", "test", "api"] as const;
export type ConversationType = (typeof CONVERSATION_TYPES)[number];

/** Price of one answered user message where such messages cost `micros`. */
export const messagePrice = (type: ConversationType, micros: Micros): Micros =>
  type === "test" ? 0 : micros;

export interface Conversation {
  id: number;
  uuid: string;
  accountId: number;
  assistantId: number;
  type: ConversationType;
  state: "open" | "ended";
  desk: Desk;
  variables: Record<string, string>;
  externalIdentifier: string | null;
  /** Who it is with at the site that signed it; null: nobody has. */
  visitorId: string | null;
  /** Where the visitor was when it began; null: nobody said. */
  page: string | null;
  createdAt: Instant;
}

/** A row of the account's list. */
export interface ConversationSummary extends Conversation {
  assistantUuid: string;
  assistantName: string;
  messageCount: number;
  totalCostMicros: Micros;
  /** Values after the assistant's schema, as of the last end; null: there are none. */
  evaluation: Record<string, unknown> | null;
  /** Why it has no values. */
  evaluationError: string | null;
  /** What the visitor said of it in the end; null: nothing. */
  satisfaction: Satisfaction | null;
  updatedAt: Instant;
}

export interface Message {
  role: "user" | "assistant" | "operator";
  content: string;
  /** Who of the account wrote it; null: the visitor or the assistant. */
  author: Author | null;
  functionCalls: FunctionCall[];
  stopped: boolean;
  /** The reply ended at its bound. */
  truncated: boolean;
  /** What the models counted for the reply; null: they counted nothing, or it is none. */
  usage: ModelUsage | null;
  attachments: AttachmentBody[];
  /** What the visitor thought of the reply; null: nothing was said of it, or it is none. */
  rating: Rating | null;
  createdAt: Instant;
}

/** What a client brings with its message where the talk so far is the client's to know. */
export interface Given {
  /** Said behind the assistant's own prompt, as it is. */
  system: string;
  /** Oldest first; the last is the user's and is what the turn answers. */
  messages: { role: "user" | "assistant"; content: string }[];
  /** Null: the assistant's own. */
  temperature: number | null;
  /** Null: as many as the server allows. */
  tokensMax: number | null;
}

/** A reply that failed and has not been had since, as its owner sees it. */
export interface FailedReply {
  turnId: number;
  failure: FailureClass | null;
  error: string;
  failedAt: Instant;
}

export interface NewConversation {
  uuid: string;
  accountId: number;
  assistant: { id: number; uuid: string };
  type: ConversationType;
  variables: Record<string, string>;
  externalIdentifier: string | null;
  visitor: NewVisitor | null;
  page?: string | null;
  initialMessage: string;
  priceMicros: Micros;
  inactivityMinutes: number;
  /** Most the assistant may spend on the day; null: no cap, or the first message comes later. */
  dailyCapMicros: Micros | null;
  day: string;
  now: Instant;
}

export interface NewVisitor {
  id: string;
  /** Goes on with the visitor's newest conversation with the assistant, where there is one. */
  continues: boolean;
}

export type CreateOutcome =
  | { kind: "created"; conversation: Conversation; events: CommittedEvent[] }
  /** The customer's or visitor's existed; its variables were merged with the new ones. */
  | { kind: "found"; conversation: Conversation }
  | { kind: "daily_cap_reached" }
  | { kind: "balance_too_low" };

export interface BeginTurn {
  accountId: number;
  conversationUuid: string;
  text: string;
  attachments?: AttachmentBody[];
  /** Null: every send is a turn of its own. */
  idempotencyKey: string | null;
  /** One key stands for one request. */
  requestHash: string;
  /** Price of an answered message; 0: none is billed. */
  messagePriceMicros: Micros;
  /** Most the assistant may spend in a UTC day; null: no cap. */
  dailyCapMicros: Micros | null;
  day: string;
  messagesMax: number;
  asks?: AsksForPerson | null;
  now: Instant;
}

/** A turn that asks for a person, in its own transaction. */
export interface AsksForPerson {
  by: "assistant" | "rule";
  reason: DeskReason;
  /** For whoever comes; null: none. */
  note: string | null;
  away?: Away | null;
}

export type BeginOutcome =
  /** `baseSequence`: newest event of the conversation, from which a watcher reads the reply. */
  | { kind: "started"; turnId: number; priceMicros: Micros; baseSequence: number; events: CommittedEvent[] }
  /** A person has it: the message was stored, nothing is charged, the assistant is silent. */
  | { kind: "stored"; events: CommittedEvent[] }
  /** The key has been used for the same body and succeeded. `reply` is null when none was due. */
  | { kind: "repeated"; turnId: number; userSequence: number; stored: boolean; reply: Message | null }
  /** The key's first send is still being answered; a watcher reads it after `baseSequence`. */
  | { kind: "running"; turnId: number; baseSequence: number; nodeId: number }
  /** Another node answers an earlier message of the conversation. */
  | { kind: "busy"; nodeId: number }
  | { kind: "key_reused" }
  | { kind: "balance_too_low" }
  | { kind: "daily_cap_reached" }
  | { kind: "conversation_full" }
  | { kind: "not_found" };

/** A conversation as far as its turns need to know it. */
interface ConversationRef {
  id: number;
  uuid: string;
  accountId: number;
  assistantId: number;
}

export interface CompleteTurn {
  turnId: number;
  conversation: ConversationRef;
  text: string;
  functionCalls: FunctionCall[];
  /** The client pressed stop; `text` is what had been delivered. */
  stopped: boolean;
  truncated: boolean;
  usage: ModelUsage | null;
  /** The assistant ended the conversation with this reply. */
  ends: boolean;
  asks?: AsksForPerson | null;
  now: Instant;
}

/** How a turn ended, as every face reports it. */
export type TurnResult =
  | {
      kind: "completed"; text: string; functionCalls: FunctionCall[]; stopped: boolean;
      truncated: boolean; usage: ModelUsage | null;
    }
  | {
      kind: "failed"; reason: ReplyFailure;
      /** For whoever asked: a class of failure, never a vendor's words. */
      error: string;
      /** For the owner; null: `error` says it all. */
      cause: FailureCause | null;
    };

export interface FailureCause {
  failure: FailureClass;
  error: string;
}

export interface FailTurn {
  turnId: number;
  conversation: ConversationRef;
  reason: ReplyFailure;
  error: string;
  cause: FailureCause | null;
  asks?: AsksForPerson | null;
  now: Instant;
}

export interface ConversationFilter {
  type?: string;
  assistantId?: number;
  externalIdentifier?: string;
  /** In messages, variables and identifiers. */
  search?: string;
  /** Begun between these instants; `to` is exclusive. */
  from?: Instant;
  to?: Instant;
}

/** What was written last in a conversation. */
export interface LastMessage {
  role: "user" | "assistant" | "operator";
  content: string;
  at: Instant;
}

/** A row of the account's list with what was written last; null: nothing. */
interface ListedConversation extends ConversationSummary {
  last: LastMessage | null;
}

/** What a turn is about to begin from. */
export interface Outlook {
  conversation: Conversation;
  messageCount: number;
  /** What the account has beyond what is set aside. */
  freeMicros: Micros;
  /** A turn of the key is there already. */
  isRepeat: boolean;
}

/** What a person writes. */
export interface Say {
  accountId: number;
  uuid: string;
  author: Author;
  text: string;
  attachments: AttachmentBody[];
  /** Null: every message is one of its own. */
  idempotencyKey: string | null;
  messagesMax: number;
  now: Instant;
}

export type SayOutcome =
  | { kind: "said" | "repeated"; message: Message; events: CommittedEvent[] }
  /** The author does not have the conversation, but may take it. */
  | { kind: "not_taken" }
  | { kind: "held"; holder: Author }
  | { kind: "key_reused" }
  | { kind: "conversation_full" }
  | { kind: "not_found" };

export type MoveOutcome =
  /** No events: it was so already. */
  | { kind: "moved"; desk: Desk; events: CommittedEvent[] }
  | { kind: "held"; holder: Author }
  | { kind: "not_found" };

/** What people at the desk do; as ConversationStore keeps its promises. */
export interface DeskStore {
  moveDesk(args: MoveDesk): Promise<MoveOutcome>;
  say(args: Say): Promise<SayOutcome>;
  /** Null: the account has no such conversation. None: it had ended. */
  end(args: {
    accountId: number; uuid: string; by: Author; now: Instant;
  }): Promise<CommittedEvent[] | null>;
}

/**
 * Each method is one use case and one transaction; writes resolve once they are durable, and the
 * events they return are in the log. Methods taking an account see that account's rows only.
 */
export interface ConversationStore {
  create(args: NewConversation): Promise<CreateOutcome>;
  find(uuid: string): Promise<Conversation | null>;
  hasOfVisitor(assistantId: number, type: ConversationType, visitorId: string): Promise<boolean>;
  /** Null when there is no such conversation. */
  outlook(uuid: string, idempotencyKey: string | null): Promise<Outlook | null>;
  /** Oldest first, the whole conversation. */
  history(conversationId: number): Promise<Message[]>;
  /** Newest first, those that failed and were not had since, at most `rows`. */
  failedReplies(conversationId: number, rows: number): Promise<FailedReply[]>;
  /** How many of the newest `rows` turns that are over failed one after the other. */
  failedInARow(conversationId: number, rows: number): Promise<number>;
  /** Newest first, at most `rows`. */
  recent(conversationId: number, rows: number): Promise<Message[]>;
  /** As lists show it; null: the account has no such conversation. */
  summary(accountId: number, uuid: string): Promise<ConversationSummary | null>;
  /** Newest first; `before` is the id to continue below, 0 to start. */
  list(
    accountId: number,
    filter: ConversationFilter,
    before: number,
    rows: number,
  ): Promise<ListedConversation[]>;
  beginTurn(args: BeginTurn): Promise<BeginOutcome>;
  /** Whether another node that lives answers in the conversation. */
  isAnsweredElsewhere(conversationId: number): Promise<boolean>;
  /** Null while the turn is open. */
  turnEnd(turnId: number): Promise<TurnResult | null>;
  /** Stores the reply and posts the price. Throws when the turn is not open. */
  completeTurn(args: CompleteTurn): Promise<CommittedEvent[]>;
  /** Keeps the user message, gives the reserved money back. No-op when the turn is not open. */
  failTurn(args: FailTurn): Promise<CommittedEvent[]>;
  /** Notes that a visitor was not answered as the account's newest trouble, and logs it. */
  publishRefused(args: {
    accountId: number;
    assistantUuid: string;
    conversationUuid: string | null;
    reason: Refused;
    now: Instant;
  }): Promise<CommittedEvent[]>;
  /** Ends conversations that have gone quiet; returns how many were looked at, too. */
  endInactive(args: {
    now: Instant;
    rows: number;
  }): Promise<{ looked: number; events: CommittedEvent[] }>;
  /** Closes every turn that a process which is gone left open; may run again at any time. */
  recover(args: { now: Instant }): Promise<CommittedEvent[]>;
}
