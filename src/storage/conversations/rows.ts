// Rows of conversations and messages, and the records made from them.
import type {
  Conversation, ConversationSummary, ConversationType, LastMessage, Message,
} from "#features/conversations/records.ts";
import type { Desk } from "#features/conversations/desk/desk.ts";
import type {
  AttachmentBody, Author, DeskReason, DeskState, FunctionCall, Rating,
} from "#events/events.ts";

export interface ConversationRow {
  id: number;
  uuid: string;
  account_id: number;
  assistant_id: number;
  type: ConversationType;
  state: "open" | "ended";
  desk: DeskState;
  desk_holder: string | null;
  desk_holder_name: string | null;
  desk_reason: DeskReason | null;
  desk_at: number | null;
  variables: string;
  external_identifier: string | null;
  visitor_id: string | null;
  page: string | null;
  created_at: number;
}

export interface SummaryRow extends ConversationRow {
  assistant_uuid: string;
  assistant_name: string;
  message_count: number;
  total_cost_micros: number;
  evaluation: string | null;
  evaluation_error: string | null;
  score: number | null;
  score_comment: string | null;
  scored_at: number | null;
  updated_at: number;
}

export interface MessageRow {
  role: "user" | "assistant";
  content: string;
  function_calls: string | null;
  stopped: number;
  truncated: number;
  input_tokens: number | null;
  output_tokens: number | null;
  author: string | null;
  rating: number | null;
  attachments: string | null;
  created_at: number;
}

export const DESK = "desk, desk_holder, desk_holder_name, desk_reason, desk_at";
export const CONVERSATION = `id, uuid, account_id, assistant_id, type, state, ${DESK}, variables,
  external_identifier, visitor_id, page, created_at`;
/** The type of the emptied row that a deleted conversation leaves; no list shows it. */
export const DELETED = "deleted";
/** The same columns, qualified for joins. */
export const OF_CONVERSATION = CONVERSATION.replace(/\w+/g, "c.$&");
/** Rows as lists show them, with further columns when given. */
export const SUMMARIES = (more?: string): string => `
    SELECT ${OF_CONVERSATION}, c.message_count, c.total_cost_micros, c.updated_at,
      c.evaluation, c.evaluation_error, c.score, c.score_comment, c.scored_at, a.uuid AS assistant_uuid, a.name AS assistant_name
      ${more === undefined ? "" : `, ${more}`}
    FROM conversations c
    JOIN assistants a ON a.id = c.assistant_id AND c.type <> '${DELETED}'`;
export const MESSAGE =
  "role, content, function_calls, stopped, truncated, input_tokens, output_tokens, author, rating, attachments, created_at";
export const OF_MESSAGE = MESSAGE.replace(/\w+/g, "m.$&");

export type DeskRow = Pick<
  ConversationRow, "desk" | "desk_holder" | "desk_holder_name" | "desk_reason" | "desk_at">;

export const deskFromRow = (row: DeskRow): Desk => ({
  state: row.desk,
  holder: row.desk_holder === null
    ? null
    : { id: row.desk_holder, name: row.desk_holder_name ?? "" },
  reason: row.desk_reason,
  at: row.desk_at,
});

export function conversationFromRow(row: ConversationRow): Conversation {
  return {
    id: row.id,
    uuid: row.uuid,
    accountId: row.account_id,
    assistantId: row.assistant_id,
    type: row.type,
    state: row.state,
    desk: deskFromRow(row),
    variables: JSON.parse(row.variables) as Record<string, string>,
    externalIdentifier: row.external_identifier,
    visitorId: row.visitor_id,
    page: row.page,
    createdAt: row.created_at,
  };
}

export const ratingFrom = (value: number | null): Rating | null =>
  value === null ? null : value > 0 ? "up" : "down";

export function messageFromRow(row: MessageRow): Message {
  return {
    role: row.author === null ? row.role : "operator",
    content: row.content,
    author: row.author === null ? null : (JSON.parse(row.author) as Author),
    functionCalls: row.function_calls === null
      ? []
      : (JSON.parse(row.function_calls) as FunctionCall[]),
    stopped: row.stopped === 1,
    truncated: row.truncated === 1,
    usage: row.input_tokens === null || row.output_tokens === null
      ? null
      : { inputTokens: row.input_tokens, outputTokens: row.output_tokens },
    rating: ratingFrom(row.rating),
    attachments: row.attachments === null
      ? []
      : (JSON.parse(row.attachments) as AttachmentBody[]),
    createdAt: row.created_at,
  };
}

export function summaryFromRow(row: SummaryRow): ConversationSummary {
  return {
    ...conversationFromRow(row),
    assistantUuid: row.assistant_uuid,
    assistantName: row.assistant_name,
    messageCount: row.message_count,
    totalCostMicros: row.total_cost_micros,
    evaluation: row.evaluation === null
      ? null
      : (JSON.parse(row.evaluation) as Record<string, unknown>),
    evaluationError: row.evaluation_error,
    satisfaction: row.score === null || row.scored_at === null
      ? null
      : { score: row.score, comment: row.score_comment, at: row.scored_at },
    updatedAt: row.updated_at,
  };
}

/** The newest message `m` beside the conversation. */
export const LAST = `m.role AS last_role, m.author AS last_author, m.content AS last_content,
      m.created_at AS last_at`;

export interface LastRow {
  last_role: "user" | "assistant" | null;
  last_author: string | null;
  last_content: string | null;
  last_at: number | null;
}

export function lastFromRow(row: LastRow): LastMessage | null {
  const { last_role: role, last_content: content, last_at: at, last_author: author } = row;
  return role === null || content === null || at === null
    ? null
    : { role: author === null ? role : "operator", content, at };
}
