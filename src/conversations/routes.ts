// The public conversation routes: create, send (JSON or streamed), read, watch, stop. A
// conversation's uuid is the capability; an Authorization header is ignored, valid or not.
import { Type } from "@sinclair/typebox";
import type { Assistant } from "../assistants/assistants.ts";
import { Fault, fieldFault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import { isUuid } from "../core/values.ts";
import { variablesFrom } from "../core/variables.ts";
import { originFault } from "../http/api.ts";
import { json, type HttpRequest, type Reply } from "../http/exchange.ts";
import { publicRoute, type Route } from "../http/route.ts";
import { readIdempotencyKey } from "../http/validation.ts";
import type { UiMessages } from "../protocols/ui-message-stream.ts";
import { readPosition, type Streams } from "../realtime/streams.ts";
import type { Access } from "./access.ts";
import type { Conversations, Sent } from "./conversations.ts";
import {
  ErrorSchema,
  FunctionCallSchema,
  HistoryItemSchema,
  historyItem,
  InvalidSchema,
  replyBody,
  STORED_BODY,
  TruncatedSchema,
} from "./wire.ts";

export interface ConversationRouteOptions {
  conversations: Conversations;
  findAssistantByUuid(uuid: string): Assistant | null;
  access: Access;
  streams: Streams;
  /** The AI SDK's way to send and to be answered. */
  uiMessages: UiMessages;
}

const CREATE = Type.Object({
  assistant_id: Type.String({ description: "The assistant's uuid" }),
  type: Type.Optional(
    Type.Union([Type.Literal("widget"), Type.Literal("test")], { default: "widget" }),
  ),
  variables: Type.Optional(Type.Unknown({ description: "Names to texts, filled in for {{name}}" })),
});
export const MESSAGE_FIELD = Type.String({ maxLength: LIMITS.messageCharsMax });
const SEND = Type.Object({
  message: Type.Optional(Type.String({
    maxLength: LIMITS.messageCharsMax, description: "Required, but where `messages` are sent",
  })),
  messages: Type.Optional(Type.Array(Type.Unknown(), {
    description: "An AI SDK chat's, with ?protocol=ai-sdk: the last user message is sent",
  })),
});
export const STOP = Type.Object({
  turn_id: Type.Optional(Type.Integer({
    description: "Of the reply that is meant: one that comes after it goes on. Absent: whichever it is",
  })),
});
const AFTER = Type.Object({
  after: Type.Optional(Type.String({ description: "Position to continue from: the last `id` seen" })),
});

const CREATED = Type.Object({
  status: Type.Literal(true),
  conversation_id: Type.String({ format: "uuid" }),
  history: Type.Array(HistoryItemSchema),
});
const REPLY = Type.Object({
  status: Type.Literal(true),
  message: Type.String(),
  function_calls: Type.Array(FunctionCallSchema),
  ai_disabled: Type.Optional(Type.Boolean()),
  stopped: Type.Optional(Type.Boolean()),
  truncated: TruncatedSchema,
});
const HISTORY = Type.Object({
  status: Type.Literal(true),
  history: Type.Array(HistoryItemSchema),
  variables: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
});
const EVENTS = {
  description: "Server-sent events",
  schema: Type.String(),
  contentType: "text/event-stream",
};
const NOT_FOUND = { description: "No such conversation", schema: ErrorSchema };
const INVALID = { description: "Invalid body", schema: InvalidSchema };

const wantsEvents = (http: HttpRequest): boolean =>
  (http.headers.accept ?? "").includes("text/event-stream");

export function conversationRoutes(options: ConversationRouteOptions): Route[] {
  return [createRoute(options), sendRoute(options), readRoute(options), ...liveRoutes(options)];
}

function createRoute(options: ConversationRouteOptions): Route {
  const { conversations, access } = options;
  return publicRoute({
    method: "POST",
    path: "/conversations",
    tag: "Conversations",
    summary: "Start a conversation with an assistant",
    errorShape: "conversation",
    body: CREATE,
    bodyBytesMax: LIMITS.bodyBytesMax,
    responses: {
      200: { description: "The conversation and its first message", schema: CREATED },
      400: { description: "Balance too low", schema: ErrorSchema },
      404: { description: "No such assistant", schema: ErrorSchema },
      422: INVALID,
    },
    handle: async ({ body, http }) => {
      access.assertMayCreate(http);
      const uuid = body.assistant_id.toLowerCase();
      const assistant = isUuid(uuid) ? options.findAssistantByUuid(uuid) : null;
      if (!assistant) throw new Fault(404, "Assistant not found");
      if (!access.originAllowed(assistant, http)) throw originFault();
      const variables = variablesFrom(body.variables);
      const type = body.type ?? "widget";
      const conversation = await conversations.create({ assistant, type, variables });
      const { messages } = conversations.history(conversation.uuid);
      const history = messages.map(historyItem);
      return json(200, { status: true, conversation_id: conversation.uuid, history });
    },
  });
}

function sendRoute(options: ConversationRouteOptions): Route {
  const { conversations, access, streams, uiMessages } = options;
  return publicRoute({
    method: "POST",
    path: "/conversations/{uuid}/messages",
    tag: "Conversations",
    summary: "Send a message; answers JSON, or streams the reply for Accept: text/event-stream",
    errorShape: "conversation",
    notFound: "Conversation not found",
    body: SEND,
    // A chat sends all its messages each time, of which the last is taken.
    bodyBytesMax: LIMITS.bodyBytesMax,
    responses: {
      200: { description: "The reply", schema: REPLY },
      400: { description: "Balance too low, or the reply failed", schema: ErrorSchema },
      404: NOT_FOUND,
      409: { description: "An earlier message is still being answered", schema: ErrorSchema },
      422: INVALID,
      429: { description: "Too many messages", schema: ErrorSchema },
    },
    handle: async ({ uuid, body, http }) => {
      const key = readIdempotencyKey(http.headers["idempotency-key"]);
      const ui = uiMessages.read(http, body);
      const text = ui?.text ?? requiredText(body.message);
      conversations.get(uuid);
      access.assertMaySend(uuid);
      const stream = access.streamOf(uuid);
      if (ui || wantsEvents(http)) streams.assertRoom(stream);
      const idempotencyKey = key ?? ui?.messageId ?? null;
      const first = await conversations.send({ uuid, text, idempotencyKey });
      const sent = ui?.regenerates === true && key === null && first.kind === "repeated"
        ? await conversations.send({ uuid, text, idempotencyKey: null })
        : first;
      if (ui) return withReplay(sent, uiMessages.reply(stream.source, sent));
      return wantsEvents(http) && sent.kind !== "stored"
        ? withReplay(sent, streams.openSse({
            ...stream,
            position: { sequence: sent.fromSequence, chars: 0 },
            untilTurn: sent.turnId,
            backlog: sent.kind === "answering" && !sent.replayed ? sent.events : [],
            skipsFailures: sent.kind === "repeated" && sent.result.kind === "completed",
          }))
        : withReplay(sent, json(200, await replyOf(sent)));
    },
  });
}

function requiredText(message: string | undefined): string {
  if (message !== undefined && message.trim() !== "") return message;
  throw fieldFault("message", "The message field is required.");
}

async function replyOf(sent: Sent): Promise<object> {
  if (sent.kind === "stored") return STORED_BODY;
  return replyBody(await sent.result);
}

function withReplay(sent: Sent, reply: Reply): Reply {
  const replayed = sent.kind === "repeated" || (sent.kind === "answering" && sent.replayed);
  return replayed
    ? { ...reply, headers: { ...reply.headers, "Idempotency-Replayed": "true" } }
    : reply;
}

function readRoute({ conversations }: ConversationRouteOptions): Route {
  return publicRoute({
    method: "GET",
    path: "/conversations/{uuid}",
    tag: "Conversations",
    summary: "Read a conversation's history, oldest first",
    errorShape: "conversation",
    notFound: "Conversation not found",
    responses: { 200: { description: "The history", schema: HISTORY }, 404: NOT_FOUND },
    handle: ({ uuid }) => {
      const { conversation, messages } = conversations.history(uuid);
      const { variables } = conversation;
      return json(200, {
        status: true,
        history: messages.map(historyItem),
        variables: Object.keys(variables).length > 0 ? variables : null,
        ...(conversation.externalIdentifier === null
          ? {}
          : { external_identifier: conversation.externalIdentifier }),
      });
    },
  });
}

function liveRoutes({ conversations, access, streams }: ConversationRouteOptions): Route[] {
  return [
    publicRoute({
      method: "GET",
      path: "/conversations/{uuid}/stream",
      tag: "Conversations",
      summary: "Watch a conversation; resumes from Last-Event-ID or ?after=",
      errorShape: "conversation",
      notFound: "Conversation not found",
      query: AFTER,
      responses: { 200: EVENTS, 404: NOT_FOUND },
      handle: ({ uuid, query, http }) => {
        conversations.get(uuid);
        const position = readPosition(query.after, http.headers["last-event-id"]);
        return streams.openSse({ ...access.streamOf(uuid), position });
      },
    }),
    publicRoute({
      method: "POST",
      path: "/conversations/{uuid}/stop",
      tag: "Conversations",
      summary: "Stop the reply being written; what was shown is kept",
      errorShape: "conversation",
      notFound: "Conversation not found",
      body: STOP,
      responses: {
        200: {
          description: "Whether a reply was stopped",
          schema: Type.Object({ status: Type.Literal(true), stopped: Type.Boolean() }),
        },
        404: NOT_FOUND,
        422: INVALID,
      },
      handle: async ({ uuid, body }) =>
        json(200, { status: true, stopped: await conversations.stop(uuid, body.turn_id) }),
    }),
  ];
}
