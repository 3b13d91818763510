// What the owner does with conversations: list them, switch their AI, and answer on behalf of
// another system (generate-reply).
import { Type } from "@sinclair/typebox";
import type { Assistant } from "../assistants/assistants.ts";
import { Fault } from "../core/faults.ts";
import { variablesFrom } from "../core/variables.ts";
import { rateLimitFault } from "../http/errors.ts";
import { json } from "../http/exchange.ts";
import { keyRoute, type Route } from "../http/route.ts";
import { readIdempotencyKey } from "../http/validation.ts";
import type { RateLimiter } from "../core/rate-limit.ts";
import type { Conversations } from "./conversations.ts";
import type { ConversationFilter } from "./records.ts";
import { ErrorSchema, FunctionCallSchema, InvalidSchema, summaryItem } from "./wire.ts";
import { LIMITS } from "../core/limits.ts";

export interface AccountConversationOptions {
  conversations: Conversations;
  findAssistant(accountId: number, assistantId: number): Assistant | null;
  /** Replies per key; null switches the limit off. */
  replyLimiter: RateLimiter | null;
}

const PER_PAGE_DEFAULT = 15;

const LIST = Type.Object({
  type: Type.Optional(Type.Union(
    (["test", "widget", "whatsapp", "api"] as const).map((type) => Type.Literal(type)))),
  assistant_id: Type.Optional(Type.Integer()),
  customer_phone: Type.Optional(Type.String()),
  whatsapp_sender_phone: Type.Optional(Type.String()),
  external_identifier: Type.Optional(Type.String()),
  per_page: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, default: PER_PAGE_DEFAULT })),
  cursor: Type.Optional(Type.String()),
});

const NullableText = Type.Union([Type.String(), Type.Null()]);
const SUMMARY = Type.Object({
  id: Type.String(),
  assistant_id: Type.String(),
  assistant_name: Type.String(),
  type: Type.String(),
  variables: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
  message_count: Type.Integer(),
  total_cost: Type.Number(),
  ai_enabled: Type.Boolean(),
  external_identifier: Type.Optional(Type.String()),
  evaluation: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
    description: "What the model filled the assistant's post_call_schema with when the conversation "
      + "ended last; null where it did not end or nothing was to be evaluated",
    examples: [{ satisfied: true }],
  }),
  evaluation_error: Type.Union([Type.String(), Type.Null()], {
    description: "Why the evaluation has no values; null where it has them or is none",
    examples: ["The model could not be reached."],
  }),
  created_at: Type.String(),
  updated_at: Type.String(),
});

const GENERATE = Type.Object({
  assistant_id: Type.Integer(),
  customer_identifier: Type.String({ maxLength: 255 }),
  message: Type.String({ maxLength: LIMITS.messageCharsMax }),
  variables: Type.Optional(Type.Unknown()),
});
const GENERATED = Type.Object({
  success: Type.Literal(true),
  conversation_id: Type.String(),
  customer_identifier: Type.String(),
  reply: Type.String(),
  function_calls: Type.Array(FunctionCallSchema),
  ai_disabled: Type.Boolean(),
});
const FailureSchema = Type.Object({
  success: Type.Literal(false), error: Type.String(), error_code: Type.Optional(Type.String()),
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
        description: "One page, by cursor",
        schema: Type.Object({
          data: Type.Array(SUMMARY),
          path: Type.String(),
          per_page: Type.Integer(),
          next_cursor: NullableText,
          prev_cursor: NullableText,
        }),
      },
    },
    handle: ({ caller, query, baseUrl }) => {
      const perPage = query.per_page ?? PER_PAGE_DEFAULT;
      const before = decodeCursor(query.cursor);
      const filter: ConversationFilter = {
        ...(query.type === undefined ? {} : { type: query.type }),
        ...(query.assistant_id === undefined ? {} : { assistantId: query.assistant_id }),
        ...(query.external_identifier === undefined
          ? {}
          : { externalIdentifier: query.external_identifier }),
      };
      // No conversation here has a phone: those filters match nothing.
      const byPhone = query.customer_phone ?? query.whatsapp_sender_phone;
      const rows = byPhone === undefined
        ? conversations.list(caller.accountId, filter, before, perPage + 1)
        : [];
      const page = rows.slice(0, perPage);
      const last = page.at(-1);
      return json(200, {
        data: page.map(summaryItem),
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
    method: "GET",
    path: "/user/conversations/{uuid}",
    tag: "Conversations",
    summary: "One conversation as the list shows it",
    errorShape: "message",
    notFound: "Conversation not found",
    responses: {
      200: { description: "The conversation", schema: Type.Object({ data: SUMMARY }) },
      404: { description: "No such conversation", schema: Type.Object({ message: Type.String() }) },
    },
    handle: ({ caller, uuid }) =>
      json(200, { data: summaryItem(conversations.summary(caller.accountId, uuid)) }),
  });
}

function toggleRoute(
  { conversations }: AccountConversationOptions,
  action: "enable-ai" | "disable-ai",
  enabled: boolean,
): Route {
  return keyRoute({
    method: "POST",
    path: `/automate/conversations/{uuid}/${action}`,
    tag: "Conversations",
    summary: enabled ? "Let the AI answer again" : "Stop the AI from answering; messages are kept",
    errorShape: "conversation",
    notFound: "Conversation not found",
    responses: {
      200: {
        description: "The new state",
        schema: Type.Object({ status: Type.Literal(true), ai_enabled: Type.Boolean() }),
      },
      404: { description: "No such conversation", schema: ErrorSchema },
    },
    handle: async ({ caller, uuid }) => {
      await conversations.setAi(caller.accountId, uuid, enabled);
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
    summary: "Answer a customer of another system; one conversation per customer_identifier",
    errorShape: "success",
    body: GENERATE,
    responses: {
      200: { description: "The reply", schema: GENERATED },
      402: { description: "Balance too low", schema: FailureSchema },
      404: { description: "No such assistant", schema: FailureSchema },
      422: { description: "Invalid body", schema: InvalidSchema },
      429: {
        description: "Too many replies",
        schema: Type.Object({ message: Type.String(), retry_after: Type.Integer() }),
      },
    },
    handle: async ({ caller, body, http }) => {
      const decision = replyLimiter?.take(String(caller.keyId));
      if (decision && !decision.allowed) {
        const fault = rateLimitFault(decision.retryAfterMs, "success");
        throw new Fault(429, fault.message, {
          ...(fault.retryAfterS === undefined ? {} : { retryAfterS: fault.retryAfterS }),
          extra: { ...fault.extra, message: "Too Many Attempts." },
        });
      }
      const assistant = options.findAssistant(caller.accountId, body.assistant_id);
      if (!assistant) {
        throw new Fault(404, "Assistant not found or does not belong to you", {
          code: "ASSISTANT_NOT_FOUND",
        });
      }
      const idempotencyKey = readIdempotencyKey(http.headers["idempotency-key"]);
      const reply = await generate(conversations, assistant, body, idempotencyKey);
      return json(200, reply);
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
      success: true,
      conversation_id: uuid,
      customer_identifier: body.customer_identifier,
      reply: result?.kind === "completed" ? result.text : "",
      function_calls: result?.kind === "completed" ? result.functionCalls : [],
      ai_disabled: sent.kind === "stored",
    };
  } catch (error) {
    // The same refusal the public routes answer with 400 is a 402 here.
    if (error instanceof Fault && error.code === "INSUFFICIENT_BALANCE") {
      throw new Fault(402, error.message, { code: error.code });
    }
    throw error;
  }
}
