// The union of all events and the names of the topics they are read from. Committed events are
// rows of the log; live ones exist only while a reply is being written.

import type { Instant } from "#core/system.ts";

export type Topic =
  | `conversation:${string}` | `call:${number}` | `account:${number}` | `audit:${number}`;

export const conversationTopic = (uuid: string): Topic => `conversation:${uuid}`;
export const callTopic = (callId: number): Topic => `call:${callId}`;
/** Who did what in an account: a log of its own, with numbers of its own. */
export const auditTopic = (accountId: number): Topic => `audit:${accountId}`;
export const accountTopic = (accountId: number): Topic => `account:${accountId}`;

export interface FunctionCall {
  name: string;
  arguments: Record<string, unknown>;
  result: Record<string, unknown>;
}

/** Who of the account wrote or did something, as everybody reads it. */
export interface Author {
  id: string;
  name: string;
}

/** Who has a conversation. `waiting`: still the assistant, but a person has been asked for. */
export type DeskState = "assistant" | "waiting" | "person";

/** Who changed that. `rule`: the assistant's own settings asked for a person, or time did. */
export type DeskActor =
  | { role: "visitor" | "assistant" | "rule" }
  | ({ role: "operator" } & Author);

export type DeskReason =
  | "asked" | "tool_failures" | "unanswered" | "words" | "callback" | "taken_over" | "assigned"
  | "handed_back" | "ended"
  /** The person's connection to the call was lost for too long, or they may no longer answer. */
  | "lost";

/** What somebody who asks for a person outside office hours is told. */
export interface Away {
  message: string;
  /** When the office opens next; null: on none of the days that are checked. */
  opens_at: string | null;
  /** Whether the visitor may leave contact details for a callback. */
  callback: boolean;
}

export interface CallbackBody {
  id: number;
  name: string;
  phone: string | null;
  email: string | null;
  wish: string | null;
  time: string | null;
  created_at: string;
  done_at: string | null;
}

/** What a visitor thought of a reply. */
export type Rating = "up" | "down";

/** A file of a message, read at `/conversations/{uuid}/attachments/{id}`. */
export interface AttachmentBody {
  id: string;
  name: string;
  /** A media type. */
  type: string;
  bytes: number;
}

export interface MessageBody {
  role: "user" | "assistant" | "operator";
  content: string;
  /** Who of the account wrote it; only with the role operator. */
  author?: Author;
  function_calls?: FunctionCall[];
  attachments?: AttachmentBody[];
  /** Present and true when the client pressed stop before the reply was complete. */
  stopped?: true;
  /** Present and true when the reply ended at its bound and not by itself. */
  truncated?: true;
  created_at: string;
}

/** What each committed event carries; `type` is its name. Keys are the wire's. */
export type CommittedData =
  | { type: "message_added"; conversation_id: string; turn_id: number | null; message: MessageBody }
  | { type: "reply_failed"; conversation_id: string; turn_id: number; reason: ReplyFailure; error: string }
  | {
      type: "conversation_failed"; conversation_id: string | null; assistant_id: string;
      reason: Refused; error: string;
    }
  /** In the account's stream alone: what visitors must not learn about a failed reply. */
  | {
      type: "reply_failure_explained"; conversation_id: string; turn_id: number;
      failure: FailureClass; error: string;
    }
  | { type: "conversation_created"; conversation_id: string; assistant_id: string; conversation_type: string }
  | {
      type: "conversation_evaluated"; conversation_id: string;
      evaluation: Record<string, unknown>; evaluation_error: string | null;
    }
  | {
      type: "conversation_ended"; conversation_id: string;
      reason: "inactivity" | "assistant" | "operator";
    }
  | {
      type: "desk_changed"; conversation_id: string; desk: DeskState; by: DeskActor;
      reason: DeskReason;
      /** The person who has it now. */
      holder: Author | null;
      /** With `waiting`, outside office hours. */
      away?: Away | null;
    }
  /** In both streams: everything written before was read. */
  | {
      type: "conversation_read"; conversation_id: string; read_at: string;
      by: { role: "visitor" } | ({ role: "operator" } & Author);
    }
  /** In the account's stream alone, because of the contact details. */
  | {
      type: "callback_requested" | "callback_done"; conversation_id: string; callback: CallbackBody;
    }
  /** In the account's stream alone, like the note itself. */
  | {
      type: "note_added"; conversation_id: string; note_id: number; author: Author | null;
      text: string;
    }
  /** Null: the rating was withdrawn. */
  | { type: "reply_rated"; conversation_id: string; turn_id: number; rating: Rating | null }
  | { type: "conversation_rated"; conversation_id: string; score: number; comment: string | null }
  /** The desk's change again, under the event's name from before there was a desk. */
  | { type: "ai_toggled"; conversation_id: string; ai_enabled: boolean }
  | {
      type: "document_status_changed"; knowledgebase_id: number; document_id: number;
      name: string; status: DocumentStatus; reason: string | null; knowledgebase_status: string;
    }
  | { type: "call_created"; call_id: number; call: Record<string, unknown> }
  | {
      type: "call_status_changed"; call_id: number; status: string; previous_status: string;
      answered_by: string; end_reason: string | null; at: string;
    }
  | { type: "transcript_added"; call_id: number; entry: TranscriptBody }
  | {
      type: "desk_changed"; call_id: number; desk: DeskState; by: DeskActor; reason: DeskReason;
      holder: Author | null; at: string;
    }
  /** For the assistant alone: nobody else hears it. */
  | { type: "call_whispered"; call_id: number; by: Author; text: string; at: string }
  | {
      type: "call_ended"; call_id: number; status: string; end_reason: string | null;
      failure_reason: string | null;
      duration: number; carrier_cost: number; total_cost: number;
      evaluation: Record<string, unknown>; evaluation_error: string | null; has_recording: boolean;
    }
  /** A step of a warm transfer. */
  | { type: "call_transfer_changed"; call_id: number; transfer: TransferBody }
  | { type: "call_deleted"; call_id: number }
  | { type: "conversation_deleted"; conversation_id: string }
  | {
      type: "lead_status_changed"; lead_id: number;
      /** The lead whose secondary contact this is; null: it is the lead itself. */
      main_lead_id: number | null;
      campaign_id: number; phone_number: string;
      status: string; previous_status: string; call_tries: number; call_id: number | null;
      next_try_at: string | null;
      /** How its last call ended; null: none is over. */
      last_outcome: string | null;
    }
  | {
      type: "campaign_status_changed"; campaign_id: number; name: string; status: string;
      previous_status: string; reason: CampaignReason; paused_until: string | null;
      /** The note of the person who stopped it, and that person; null: no note, or nobody did. */
      note: string | null; by: string | null;
    }
  | (PhoneNumberEvent & { phone_number_id: number; phone_number: string })
  | { type: "balance_changed"; balance: number; change: number; kind: string }
  /** The balance has come down to an amount that the account wants to be told of. */
  | { type: "balance_low"; balance: number; threshold: number };

/** Why a visitor was not answered before a reply was even begun. */
export type Refused = "balance_too_low" | "daily_cap_reached";

/** What happens to a number of the account. */
export type PhoneNumberEvent =
  | { type: "phone_number_purchased"; monthly_price: number; paid_until: string }
  | { type: "phone_number_renewed"; monthly_price: number; paid_until: string }
  | { type: "phone_number_grace"; grace_until: string }
  | { type: "phone_number_suspended"; release_at: string }
  | { type: "phone_number_released"; reason: "requested" | "unpaid" };

/** Why a campaign's state changed. `carrier_failures`: it goes on, but calls nobody for a while. */
export type CampaignReason =
  | "requested" | "balance_too_low" | "assistant_unavailable" | "no_leads" | "carrier_failures"
  | "deleted";

export interface TransferBody {
  /** Its place among the call's transfers. */
  id: number;
  /** The function that asked for it. */
  type: string;
  to: string;
  stage: string;
  /** Null: it is not over. */
  outcome: string | null;
  failure_reason: string | null;
  at: string;
}

interface TranscriptBody {
  number: number;
  sender: "bot" | "human" | "colleague" | "operator";
  /** Only with the sender operator. */
  author?: Author;
  /** The transfer on whose leg it was said. */
  transfer?: number;
  text: string;
  start_ms: number;
  end_ms: number;
  /** The customer spoke over it: the text is what was heard. */
  interrupted: boolean;
  function_calls?: FunctionCall[];
}

export type DocumentStatus = "processing" | "active" | "failed";

/** `interrupted`: the process died; `stopped`: stopped before any text; `failed`: anything else. */
export type ReplyFailure = "failed" | "interrupted" | "stopped";

/** The kind of failure, as far as it concerns those who did not get the reply. */
export type FailureClass = "model_failed" | "timeout" | "no_answer" | "internal_error";

/**
 * A row of the log. One row serves two topics: its conversation or call (when it has one) and its
 * account, each with a sequence number of its own that counts up by one without holes.
 */
export interface CommittedEvent {
  /** Commit order over the whole database; two events that one row stands for share it. */
  id: number;
  accountId: number;
  accountSequence: number;
  conversationId: string | null;
  callId: number | null;
  /** Sequence within the conversation or call; 0 when the event has neither. */
  sequence: number;
  type: CommittedData["type"] | "audit_added";
  /** The event's members as JSON text, `type` included, `id` not. */
  json: string;
  createdAt: Instant;
  /** Webhook deliveries were written with it; only set on an event that was just committed. */
  hasWebhooks?: true;
}
