// Tries an assistant's settings before they are saved: a test conversation is created, and answered
// message by message, with a draft. The draft comes with each request and is not stored, so any
// node can answer, and anybody else in the conversation talks with the saved assistant.
import { Type } from "@sinclair/typebox";
import type { Assistants } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { variablesFrom } from "#core/variables.ts";
import { EVENT_STREAM, IDEMPOTENCY_KEY, IdOf, Uuid } from "#http/answers.ts";
import { json, type Reply } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { readIdempotencyKey } from "#http/validation.ts";
import type { Streams } from "#realtime/streams.ts";
import type { Access } from "./access.ts";
import type { Conversations } from "./conversations.ts";
import { DRAFT_SETTINGS, draftOf } from "./draft-wire.ts";
import { answerSent, BUSY, CREATED, MESSAGE_FIELD, REPLY, wantsEvents } from "./routes.ts";
import { historyItem, VariablesField } from "./wire.ts";

interface TestRouteOptions {
  conversations: Conversations;
  assistants: Pick<Assistants, "draft">;
  access: Access;
  streams: Streams;
}

const BEGIN = Type.Object({ settings: DRAFT_SETTINGS, variables: Type.Optional(VariablesField) });
const SEND = Type.Object({
  message: { ...MESSAGE_FIELD, pattern: "\\S" }, settings: DRAFT_SETTINGS,
});
const NOT_FOUND = "Conversation not found";

export function testRoutes(options: TestRouteOptions): Route[] {
  return [beginRoute(options), sendRoute(options)];
}

function beginRoute({ conversations, assistants }: TestRouteOptions): Route {
  return keyRoute({
    method: "POST",
    path: "/user/assistant/{id}/tests",
    isRepeatable: true,
    tag: "Assistants",
    summary: "Start a test conversation with unsaved settings",
    description: "Validates `settings` as a change of the assistant and stores nothing: send them "
      + "again with each message. Creates a conversation of type test, whose replies are free.",
    errorShape: "message",
    notFound: "Assistant not found",
    params: { id: IdOf("assistant", "GET /user/assistants/get") },
    body: BEGIN,
    responses: { 200: { description: "The conversation and its first message", schema: CREATED } },
    handle: async ({ caller, id, body }) => {
      const assistant = await draftOf(
        assistants, { ...caller, assistantId: id }, body.settings);
      const { uuid } = await conversations.create({
        assistant, type: "test", variables: variablesFrom(body.variables),
      });
      const { messages } = await conversations.history(uuid);
      return json(200, {
        status: true, conversation_id: uuid, history: messages.map(historyItem),
      });
    },
  });
}

function sendRoute({ conversations, assistants, access, streams }: TestRouteOptions): Route {
  return keyRoute({
    method: "POST",
    path: "/user/conversations/{uuid}/test-messages",
    tag: "Assistants",
    summary: "Send a test message with unsaved settings",
    description: "Works in the account's conversations of type test. Returns the whole reply as "
      + "JSON, or streams it with `Accept: text/event-stream`. A repeated Idempotency-Key is the "
      + "same message whatever the settings; retrying a failed message uses the settings of the "
      + "retry.",
    params: { uuid: Uuid("The conversation's `conversation_id`.") },
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    errorShape: "message",
    notFound: NOT_FOUND,
    body: SEND,
    bodyBytesMax: LIMITS.bodyBytesMax,
    responses: {
      200: { description: "The reply", schema: REPLY, stream: EVENT_STREAM },
      400: { description: "The reply failed, or the body is not a JSON object" },
      409: { description: "An earlier message is still being answered" },
      429: BUSY,
    },
    handle: async ({ caller, uuid, body, http }) => {
      const idempotencyKey = readIdempotencyKey(http.headers["idempotency-key"]);
      const conversation = await conversations.get(uuid);
      if (conversation.accountId !== caller.accountId || conversation.type !== "test") {
        throw new Fault(404, NOT_FOUND);
      }
      const draft = await draftOf(assistants, conversation, body.settings);
      await access.assertMaySend(uuid);
      const stream = access.streamOf(conversation);
      const answer = async (): Promise<Reply> => answerSent(
        await access.uncountedIf503(
          uuid, conversations.send({ uuid, text: body.message, idempotencyKey, draft })),
        http, { streams, stream });
      return wantsEvents(http) ? streams.withPlace(stream, answer) : answer();
    },
  });
}
