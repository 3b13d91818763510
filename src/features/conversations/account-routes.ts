// What the owner does with conversations: list them, switch their AI on or off, and generate
// replies on behalf of another system (generate-reply).
import { Type } from "@sinclair/typebox";
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import { variablesFrom } from "#core/variables.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { rateLimitFault } from "#http/errors.ts";
import {
  dataOf, FunctionCallSchema, IDEMPOTENCY_KEY, listOf, PLAIN_TIMES, replayHeaders, Uuid,
} from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { dayQuery, dayRange, PER_PAGE_DEFAULT } from "#http/pagination.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { readIdempotencyKey } from "#http/validation.ts";
import type { SharedRateLimiter } from "#core/rate-limit.ts";
import type { Author } from "#events/events.ts";
import type { Conversations } from "./conversations.ts";
import { DeskFields } from "./desk/wire.ts";
import type { Handover } from "./desk/handover.ts";
import { isReplayed } from "./outcomes.ts";
import type { ConversationFilter } from "./records.ts";
import {
  lastItem, LastMessageField, OF_OWNER, SatisfactionField, SearchField, searchOf, summaryItem,
  VariablesField,
} from "./wire.ts";
import { LIMITS } from "#core/limits.ts";

interface AccountConversationOptions {
  conversations: Conversations;
  handover: Handover;
  authorOf(caller: Caller): Promise<Author>;
  findAssistant(accountId: number, assistantId: number): Promise<Assistant | null>;
  /** Generated replies per key; null: no limit. */
  replyLimiter: SharedRateLimiter | null;
}

const LIST = Type.Object({
  type: Type.Optional(OneOf(
    ["test", "widget", "whatsapp", "api"], about("Only those of this type."))),
  assistant_id: Type.Optional(Type.Integer(about("Only conversations with this assistant.", 1))),
  customer_phone: Type.Optional(Type.String(about(
    "Only conversations with this number. Text conversations have none, so nothing matches.",
    "+4915112345678"))),
  whatsapp_sender_phone: Type.Optional(Type.String(about(
    "Only conversations over this number. Text conversations have none, so nothing matches.",
    "+4930123456"))),
  external_identifier: Type.Optional(Type.String(about(
    "Only the conversation with this customer of yours.", "cust-4711"))),
  search: SearchField,
  ...dayQuery,
  per_page: Type.Optional(Type.Integer({
    minimum: 1, maximum: LIMITS.pageSizeMax, default: PER_PAGE_DEFAULT,
    ...about("Rows per page."),
  })),
  cursor: Type.Optional(Type.String(about("The `next_cursor` of the previous page.", "YzE3"))),
});

const CUSTOMER = Type.String({
  maxLength: 255,
  ...about("The customer's id in your system. Each has one conversation.", "cust-4711"),
});
const Cursor = (description: string) => Nullable(Type.String(about(description, "YzE3")));
export const SUMMARY = Type.Object({
  id: Uuid("The conversation's uuid. It is a secret: anyone who has it can read and write the "
    + "conversation."),
  assistant_id: Uuid("The assistant's uuid."),
  assistant_name: Type.String(about("The assistant's name.", "Front desk")),
  type: Type.String(about("Where it takes place: widget, test or api.", "widget")),
  variables: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()], about(
    "Variables the conversation started with; null if none.", { first_name: "Ada" })),
  message_count: Type.Integer(about("The number of messages.", 6)),
  total_cost: Type.Number(about("Its cost, in USD.", 0.03)),
  ai_enabled: Type.Boolean(about("Whether the AI answers; if not, messages are only stored.")),
  ...DeskFields,
  external_identifier: Type.Optional(Type.String(about(
    "The customer's id in your system; only for type api.", "cust-4711"))),
  page: Nullable(Type.String(about(
    "The page the visitor was on when it started; null if not given.",
    "https://shop.example/bikes"))),
  visitor_id: Nullable(Type.String(about(
    "The visitor's id, signed by your site; null if not signed.", "user-42"))),
  evaluation: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], about(
    "The evaluation made when the conversation last ended, by the fields of post_call_schema; null "
    + "if it has not ended or none is configured.",
    { satisfied: true })),
  evaluation_error: Nullable(Type.String(about(
    "Why the evaluation failed; null if it did not, or there is none.",
    "The model could not be reached."))),
  satisfaction: SatisfactionField,
  ...PLAIN_TIMES,
}, named("Conversation", "A conversation, as in lists."));

const LISTED = Type.Object({
  ...SUMMARY.properties, last_message: LastMessageField,
}, named("ListedConversation", "A conversation, as in the list."));

const GENERATE = Type.Object({
  assistant_id: Type.Integer(about("The assistant that answers: its `id`.", 1)),
  customer_identifier: CUSTOMER,
  message: Type.String({
    maxLength: LIMITS.messageCharsMax, ...about("The customer's message.", "When are you open?"),
  }),
  variables: Type.Optional(VariablesField),
});
const GENERATED = Type.Object({
  success: Type.Literal(true, about("Always true.")),
  conversation_id: Uuid("The conversation the message belongs to."),
  customer_identifier: CUSTOMER,
  reply: Type.String(about("The reply to the customer; empty if there is nothing to say.",
    "From 9 to 5.")),
  function_calls: listOf(FunctionCallSchema, "Functions the model called for this reply."),
  ai_disabled: Type.Boolean(about(
    "True if the AI is switched off: the message was stored and not answered.", false)),
});

export function accountConversationRoutes(options: AccountConversationOptions): Route[] {
  return [
    listRoute(options),
    summaryRoute(options),
    toggleRoute(options, "enable-ai", true),
    toggleRoute(options, "disable-ai", false),
    generateRoute(options),
  ];
}

const encodeCursor = (id: number): string => Buffer.from(`c${id}`).toString("base64url");

function decodeCursor(text: string | undefined): number {
  if (text === undefined) return 0;
  const match = /^c(\d{1,15})$/.exec(Buffer.from(text, "base64url").toString("utf8"));
  if (match) return Number(match[1]);
  const message = "The selected cursor is invalid.";
  throw new Fault(422, message, { errors: { cursor: [message] } });
}

function listRoute({ conversations }: AccountConversationOptions): Route {
  return keyRoute({
    method: "GET",
    path: "/user/conversations",
    tag: "Conversations",
    summary: "List the account's conversations, newest first",
    errorShape: "message",
    query: LIST,
    responses: {
      200: {
        description: "A page of conversations",
        schema: Type.Object({
          data: listOf(LISTED, "Newest first."),
          path: Type.String(about(
            "URL of the list, without a query.",
            "https://talk.example.com/api/user/conversations")),
          per_page: Type.Integer(about("Rows per page.", 15)),
          next_cursor: Cursor("Value for the next page; null on the last page."),
          prev_cursor: Type.Null(about("Always null: pages only go forward.", null)),
        }),
      },
    },
    handle: async ({ caller, query, baseUrl }) => {
      const perPage = query.per_page ?? PER_PAGE_DEFAULT;
      const before = decodeCursor(query.cursor);
      const filter: ConversationFilter = {
        ...(query.type === undefined ? {} : { type: query.type }),
        ...(query.assistant_id === undefined ? {} : { assistantId: query.assistant_id }),
        ...(query.external_identifier === undefined
          ? {}
          : { externalIdentifier: query.external_identifier }),
        ...searchOf(query.search),
        ...dayRange(query),
      };
      // Conversations here have no phone number, so these filters match nothing.
      const byPhone = query.customer_phone ?? query.whatsapp_sender_phone;
      const rows = byPhone === undefined
        ? await conversations.list(caller.accountId, filter, before, perPage + 1)
        : [];
      const page = rows.slice(0, perPage);
      const last = page.at(-1);
      return json(200, {
        data: page.map((row) => ({ ...summaryItem(row), last_message: lastItem(row.last) })),
        path: `${baseUrl}/user/conversations`,
        per_page: perPage,
        next_cursor: rows.length > perPage && last ? encodeCursor(last.id) : null,
        prev_cursor: null,
      });
    },
  });
}

function summaryRoute({ conversations }: AccountConversationOptions): Route {
  return keyRoute({
    ...OF_OWNER,
    method: "GET",
    path: "/user/conversations/{uuid}",
    summary: "Read a conversation of the account",
    responses: { 200: { description: "The conversation", schema: dataOf(SUMMARY) } },
    handle: async ({ caller, uuid }) =>
      json(200, { data: summaryItem(await conversations.summary(caller.accountId, uuid)) }),
  });
}

function toggleRoute(
  { handover, authorOf }: AccountConversationOptions,
  action: "enable-ai" | "disable-ai",
  enabled: boolean,
): Route {
  return keyRoute({
    method: "POST",
    path: `/automate/conversations/{uuid}/${action}`,
    ...OF_OWNER,
    summary: enabled ? "Let the AI answer again" : "Stop the AI from answering; messages are kept",
    description: enabled
      ? "Same as `hand-back`, whoever has the conversation."
      : "Same as `take-over`. Does nothing if a person already has the conversation.",
    errorShape: "conversation",
    responses: {
      200: {
        description: "The new state",
        schema: Type.Object({
          status: Type.Literal(true, about("Always true.")),
          ai_enabled: Type.Boolean(about("Whether the AI answers.")),
        }),
      },
    },
    handle: async ({ caller, uuid }) => {
      const author = await authorOf(caller);
      await handover.setAi({ accountId: caller.accountId, uuid, author }, enabled);
      return json(200, { status: true, ai_enabled: enabled });
    },
  });
}

function generateRoute(options: AccountConversationOptions): Route {
  const { conversations, replyLimiter } = options;
  return keyRoute({
    method: "POST",
    path: "/user/ai/generate-reply",
    aliases: ["/ai/generate-reply", "/ai-replies/generate"],
    tag: "Conversations",
    summary: "Generate a reply to a customer of another system",
    description: "Keeps one conversation per `customer_identifier`, so the assistant remembers "
      + "what was said.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    errorShape: "success",
    body: GENERATE,
    responses: {
      200: { description: "The reply", schema: GENERATED },
      400: { description: "The reply failed, or the body is not a JSON object" },
      402: { description: "Balance too low" },
      404: { description: "No such assistant" },
      409: { description: "An earlier message is still being answered" },
    },
    handle: async ({ caller, body, http }) => {
      const decision = await replyLimiter?.take(
        caller.member ? `user ${caller.member.userId}` : String(caller.keyId));
      if (decision && !decision.allowed) {
        const fault = rateLimitFault(decision.retryAfterMs, "success");
        throw new Fault(429, fault.message, {
          ...(fault.retryAfterS === undefined ? {} : { retryAfterS: fault.retryAfterS }),
          extra: { ...fault.extra, message: "Too Many Attempts." },
        });
      }
      const assistant = await options.findAssistant(caller.accountId, body.assistant_id);
      if (!assistant) {
        throw new Fault(404, "Assistant not found or does not belong to you", {
          code: "ASSISTANT_NOT_FOUND",
        });
      }
      const idempotencyKey = readIdempotencyKey(http.headers["idempotency-key"]);
      const reply = await generate(conversations, assistant, body, idempotencyKey);
      return json(200, reply.body, replayHeaders(reply.isReplay));
    },
  });
}

async function generate(
  conversations: Conversations,
  assistant: Assistant,
  body: { customer_identifier: string; message: string; variables?: unknown },
  idempotencyKey: string | null,
) {
  try {
    const conversation = await conversations.create({
      assistant,
      type: "api",
      variables: variablesFrom(body.variables),
      externalIdentifier: body.customer_identifier,
    });
    const { uuid } = conversation;
    const sent = await conversations.send({ uuid, text: body.message, idempotencyKey });
    const result = sent.kind === "stored" ? null : await sent.result;
    if (result?.kind === "failed" && result.reason !== "stopped") {
      throw new Fault(400, result.error, { code: "PROCESSING_FAILED" });
    }
    return {
      isReplay: isReplayed(sent),
      body: {
        success: true,
        conversation_id: uuid,
        customer_identifier: body.customer_identifier,
        reply: result?.kind === "completed" ? result.text : "",
        function_calls: result?.kind === "completed" ? result.functionCalls : [],
        ai_disabled: sent.kind === "stored",
      },
    };
  } catch (error) {
    // Public routes answer this refusal with 400; here it is a 402.
    if (error instanceof Fault && error.code === "INSUFFICIENT_BALANCE") {
      throw new Fault(402, error.message, { code: error.code });
    }
    throw error;
  }
}
