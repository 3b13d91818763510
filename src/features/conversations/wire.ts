// Conversation records in the contract's JSON.
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { plainSeconds } from "#core/system.ts";
import { FunctionCallSchema, PlainMoment, Uuid } from "#http/answers.ts";
import type { ModelUsage } from "#providers/models/port.ts";
import { assistantAnswers } from "./desk/desk.ts";
import { AuthorSchema, deskItem } from "./desk/wire.ts";
import type { Satisfaction } from "./visitors/ratings.ts";
import type { ConversationSummary, LastMessage, Message, TurnResult } from "./records.ts";

/** Route options shared by a visitor's requests; the conversation's secret authorises them. */
export const OF_VISITOR = {
  tag: "Conversations", errorShape: "conversation", notFound: "Conversation not found",
  params: { uuid: Uuid("The conversation's `conversation_id`.") },
} as const;
/** Route options shared by the account's requests. */
export const OF_OWNER = {
  ...OF_VISITOR, errorShape: "message", params: { uuid: Uuid("The conversation's `id`.") },
} as const;

export const TruncatedSchema = Type.Optional(Type.Boolean({
  description: "Present and true if the reply was cut off at its length limit",
  examples: [true],
}));

export const AttachmentSchema = Type.Object({
  id: Type.String(about(
    "Its name in `GET /conversations/{uuid}/attachments/{attachment_id}`.",
    "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")),
  name: Type.String(about("The file name.", "bill.pdf")),
  type: Type.String(about("Its media type, detected from its first bytes.", "application/pdf")),
  bytes: Type.Integer(about("Its size in bytes.", 48213)),
}, named("Attachment", "A file attached to a message."));

export const HistoryItemSchema = Type.Object({
  role: OneOf(["assistant", "user", "operator"], about(
    "Who wrote it: the assistant, the visitor, or a member of the account (operator).")),
  content: Type.String(about("The text.", "Hello, how can I help?")),
  author: Type.Optional(AuthorSchema),
  function_calls: Type.Optional(Type.Array(FunctionCallSchema, about(
    "Functions the model called for this message; absent if none."))),
  attachments: Type.Optional(Type.Array(AttachmentSchema, about(
    "Files attached to the message; absent if none."))),
  stopped: Type.Optional(Type.Boolean(about(
    "True if the reply was stopped; the text is what had been shown by then."))),
  truncated: TruncatedSchema,
  rating: Type.Optional(OneOf(["up", "down"], about(
    "The visitor's rating of the reply; absent if not rated.", "up"))),
}, named("HistoryItem", "One message of a conversation."));

/** Values of other types are stored as text. */
export const VariablesField = Type.Unknown(about(
  "Values for `{{name}}` in prompt and messages, by name.", { first_name: "Ada" }));

const SEARCH_CHARS_MAX = 200;

export const SearchField = Type.Optional(Type.String({
  maxLength: SEARCH_CHARS_MAX,
  ...about("Only conversations with these words (or words that start so) in one message, or this "
    + "text in a variable or the customer identifier. Of the messages that match, only the newest "
    + "are considered.",
    "refund"),
}));

/** Blank text does not filter. */
export const searchOf = (text: string | undefined): { search?: string } => {
  const search = text?.trim() ?? "";
  return search === "" ? {} : { search };
};

const count = (description: string, example: number) =>
  Type.Integer({ description, examples: [example] });

export const UsageSchema = Type.Object({
  input_tokens: count("Input tokens", 812),
  output_tokens: count("Output tokens", 64),
});

export const usageItem = ({ inputTokens, outputTokens }: ModelUsage) =>
  ({ input_tokens: inputTokens, output_tokens: outputTokens });

export function historyItem(message: Message) {
  return {
    role: message.role,
    content: message.content,
    ...(message.author ? { author: message.author } : {}),
    ...(message.functionCalls.length > 0 ? { function_calls: message.functionCalls } : {}),
    ...(message.attachments.length > 0 ? { attachments: message.attachments } : {}),
    ...(message.stopped ? { stopped: true } : {}),
    ...(message.truncated ? { truncated: true } : {}),
    ...(message.rating ? { rating: message.rating } : {}),
  };
}

/** The JSON answer to a send; a failed turn throws the contract's 400, an interrupted one 503. */
export function replyBody(result: TurnResult) {
  if (result.kind === "failed") {
    // Stopped before the first text: the client asked for it, and nothing was charged.
    if (result.reason === "stopped") {
      return { status: true, message: "", function_calls: [], stopped: true };
    }
    throw new Fault(result.reason === "interrupted" ? 503 : 400, result.error, {
      ...(result.reason === "interrupted" ? { retryAfterS: 1 } : {}),
    });
  }
  return {
    status: true,
    message: result.text,
    function_calls: result.functionCalls,
    ...(result.stopped ? { stopped: true } : {}),
    ...(result.truncated ? { truncated: true } : {}),
  };
}

export const STORED_BODY = { status: true, message: "", function_calls: [], ai_disabled: true };

export const SatisfactionField = Nullable(Type.Object({
  score: Type.Integer(about("From 1 (bad) to 5 (very good).", 5)),
  comment: Nullable(Type.String(about("The visitor's comment; null if none.", "Quick."))),
  created_at: Type.String(about("When it was given, in UTC.", "2026-03-02 09:45:00")),
}), about("The visitor's rating of the conversation; null if not rated."));

const satisfactionItem = ({ score, comment, at }: Satisfaction) =>
  ({ score, comment, created_at: plainSeconds(at) });

export const LastMessageField = Nullable(Type.Object({
  role: Type.String(about("Who wrote it: user, assistant or operator.", "user")),
  content: Type.String(about("The text.", "Is anybody there?")),
  created_at: PlainMoment("When it was stored, in UTC."),
}), about("The last message; null if none."));

export const lastItem = (last: LastMessage | null) =>
  last && { role: last.role, content: last.content, created_at: plainSeconds(last.at) };

export function summaryItem(summary: ConversationSummary) {
  return {
    id: summary.uuid,
    assistant_id: summary.assistantUuid,
    assistant_name: summary.assistantName,
    type: summary.type,
    variables: Object.keys(summary.variables).length > 0 ? summary.variables : null,
    message_count: summary.messageCount,
    total_cost: dollarsFromMicros(summary.totalCostMicros),
    ai_enabled: assistantAnswers(summary.desk.state),
    ...deskItem(summary.desk),
    ...(summary.externalIdentifier === null
      ? {}
      : { external_identifier: summary.externalIdentifier }),
    visitor_id: summary.visitorId,
    page: summary.page,
    evaluation: summary.evaluation,
    evaluation_error: summary.evaluationError,
    satisfaction: summary.satisfaction && satisfactionItem(summary.satisfaction),
    created_at: plainSeconds(summary.createdAt),
    updated_at: plainSeconds(summary.updatedAt),
  };
}
