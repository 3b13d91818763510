// What the owner can read of a conversation beyond what its participants see: the model usage of
// each reply, and in full why replies failed.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { plainSeconds } from "#core/system.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Conversations } from "./conversations.ts";
import type { FailedReply, Message } from "./records.ts";
import { historyItem, HistoryItemSchema, OF_OWNER, usageItem, UsageSchema } from "./wire.ts";

const Moment = (description: string) =>
  Type.String({ description, examples: ["2026-01-05 10:00:09"] });

const MESSAGE = Type.Object({
  ...HistoryItemSchema.properties,
  usage: Type.Union([UsageSchema, Type.Null()], {
    description: "Token usage of this reply; null if the model reports none",
  }),
  created_at: Moment("When it was stored"),
});

const FAILURE = Type.Object({
  turn_id: Type.Integer({ description: "The turn that failed", examples: [17] }),
  failure: Type.Union([Type.String(), Type.Null()], {
    description: "model_failed, timeout, no_answer or internal_error; null in older records",
    examples: ["model_failed"],
  }),
  error: Type.String({
    description: "The full error; visitors see only its class",
    examples: ["the model server answered 401: no such key"],
  }),
  failed_at: Moment("When it failed"),
});

const messageItem = (message: Message) => ({
  ...historyItem(message),
  usage: message.usage && usageItem(message.usage),
  created_at: plainSeconds(message.createdAt),
});

const failureItem = ({ turnId, failure, error, failedAt }: FailedReply) =>
  ({ turn_id: turnId, failure, error, failed_at: plainSeconds(failedAt) });

export function recordRoutes({ conversations }: { conversations: Conversations }): Route[] {
  return [keyRoute({
    ...OF_OWNER,
    method: "GET",
    path: "/user/conversations/{uuid}/messages",
    summary: "List a conversation's messages with token counts, and the replies that failed",
    responses: {
      200: {
        description: "Messages, oldest first, and failures not answered since, newest first",
        schema: Type.Object({
          data: Type.Array(MESSAGE, { description: "All messages, oldest first" }),
          failures: Type.Array(FAILURE, { description: "Replies that failed, newest first" }),
        }),
      },
    },
    handle: async ({ caller, uuid }) => {
      const { id } = await conversations.summary(caller.accountId, uuid);
      const { messages } = await conversations.history(uuid);
      const failures = await conversations.failedReplies(id, LIMITS.failuresShownMax);
      return json(200, { data: messages.map(messageItem), failures: failures.map(failureItem) });
    },
  })];
}
