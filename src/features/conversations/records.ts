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

export type ConversationType = "widget" | "test" | "api";

/** Price of one answered user message, where billed types cost `micros`. */
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
  /** The visitor's id at the site, signed by the site; null: not signed. */
  visitorId: string | null;
  /** The page that the visitor was on when it began; null: not known. */
  page: string | null;
  createdAt: Instant;
}

/** A row of the account's list. */
export interface ConversationSummary extends Conversation {
  assistantUuid: string;
  assistantName: string;
  messageCount: number;
  totalCostMicros: Micros;
  /** Values by the assistant's schema, as of the last end; null: none. */
  evaluation: Record<string, unknown> | null;
  /** Why it has no values. */
  evaluationError: string | null;
  /** The visitor's rating of the conversation; null: none. */
  satisfaction: Satisfaction | null;
  updatedAt: Instant;
}

export interface Message {
  role: "user" | "assistant" | "operator";
  content: string;
  /** The person of the account who wrote it; null: the visitor or the assistant. */
  author: Author | null;
  functionCalls: FunctionCall[];
  stopped: boolean;
  /** The reply was cut off at its token limit. */
  truncated: boolean;
  /** The usage that models reported for the reply; null: none was reported, or it is no reply. */
  usage: ModelUsage | null;
  attachments: AttachmentBody[];
  /** The visitor's rating of the reply; null: not rated, or it is no reply. */
  rating: Rating | null;
  createdAt: Instant;
}

/** A whole conversation as of one moment, oldest message first. */
export interface History {
  messages: Message[];
  /** The turn that wrote each message; null: it is no reply. */
  turnIds: (number | null)[];
  /** The conversation's newest event then. */
  sequence: number;
}

/** What a client sends with its message where it keeps the history itself. */
export interface Given {
  /** Appended to the assistant's own prompt, unchanged. */
  system: string;
  /** Oldest first; the last is the user's and is what the turn answers. */
  messages: { role: "user" | "assistant"; content: string }[];
  /** Null: the assistant's own. */
  temperature: number | null;
  /** Null: as many as the server allows. */
  tokensMax: number | null;
}

/** A reply that failed and has not succeeded since, as its owner sees it. */
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
  /** The assistant's spending cap for the day; null: no cap, or the first message comes later. */
  dailyCapMicros: Micros | null;
  day: string;
  now: Instant;
}

export interface NewVisitor {
  id: string;
  /** Continues the visitor's newest conversation with the assistant, where there is one. */
  continues: boolean;
}

export type CreateOutcome =
  | { kind: "created"; conversation: Conversation; events: CommittedEvent[] }
  /** The customer or visitor already had one; its variables were merged with the new ones. */
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

/** Makes a turn ask for a person, in the turn's own transaction. */
export interface AsksForPerson {
  by: "assistant" | "rule";
  reason: DeskReason;
  /** A note for the person who takes over; null: none. */
  note: string | null;
  away?: Away | null;
}

export type BeginOutcome =
  /** `baseSequence`: newest event of the conversation, from which a watcher reads the reply. */
  | { kind: "started"; turnId: number; priceMicros: Micros; baseSequence: number; events: CommittedEvent[] }
  /** A person has the conversation: the message is stored and free, the assistant is silent. */
  | { kind: "stored"; events: CommittedEvent[] }
  /** The key's earlier send of the same body succeeded. `reply` is null when none was due. */
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

/** The part of a conversation that its turns need. */
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
      /** For the client: a class of failure, never a vendor's words. */
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
  /** Searches messages, variables and identifiers. */
  search?: string;
  /** Begun between these instants; `to` is exclusive. */
  from?: Instant;
  to?: Instant;
}

/** The last message of a conversation. */
export interface LastMessage {
  role: "user" | "assistant" | "operator";
  content: string;
  at: Instant;
}

/** A row of the account's list with its last message; null: there is none. */
interface ListedConversation extends ConversationSummary {
  last: LastMessage | null;
}

/** The state in which a turn is about to begin. */
export interface Outlook {
  conversation: Conversation;
  messageCount: number;
  /** The account's balance less what is reserved. */
  freeMicros: Micros;
  /** A turn with the idempotency key exists already. */
  isRepeat: boolean;
}

/** A message that a person writes. */
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
  /** No events: nothing had to change. */
  | { kind: "moved"; desk: Desk; events: CommittedEvent[] }
  | { kind: "held"; holder: Author }
  | { kind: "not_found" };

interface Abandoned {
  accountId: number;
  uuid: string;
  assistantId: number;
  holder: Author;
}

/** What people at the desk do, with the same guarantees as ConversationStore. */
export interface DeskStore {
  moveDesk(args: MoveDesk): Promise<MoveOutcome>;
  /** Conversations of people who may no longer answer, such as removed members; at most `rows`. */
  abandoned(args: { now: Instant; rows: number }): Promise<Abandoned[]>;
  say(args: Say): Promise<SayOutcome>;
  /** Null: the account has no such conversation. No events: it had ended already. */
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
  history(conversationId: number): Promise<History>;
  /** Replies that failed and have not succeeded since, newest first, at most `rows`. */
  failedReplies(conversationId: number, rows: number): Promise<FailedReply[]>;
  /** How many of the newest `rows` finished turns failed in a row. */
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
  /** Whether another living node is answering in the conversation. */
  isAnsweredElsewhere(conversationId: number): Promise<boolean>;
  /** Null while the turn is open. */
  turnEnd(turnId: number): Promise<TurnResult | null>;
  /** Stores the reply and posts the price. Throws when the turn is not open. */
  completeTurn(args: CompleteTurn): Promise<CommittedEvent[]>;
  /** Keeps the user message and refunds the reservation. No-op when the turn is not open. */
  failTurn(args: FailTurn): Promise<CommittedEvent[]>;
  /** Records an unanswered visitor as the account's newest trouble, with an event. */
  publishRefused(args: {
    accountId: number;
    assistantUuid: string;
    conversationUuid: string | null;
    reason: Refused;
    now: Instant;
  }): Promise<CommittedEvent[]>;
  /** Ends inactive conversations; also returns how many were examined. */
  endInactive(args: {
    now: Instant;
    rows: number;
  }): Promise<{ looked: number; events: CommittedEvent[] }>;
  /** Closes every turn that dead processes left open; may run again at any time. */
  recover(args: { now: Instant }): Promise<CommittedEvent[]>;
}
