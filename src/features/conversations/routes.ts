// The public conversation routes: create, send (JSON or streamed), read, watch, stop. A
// conversation's uuid is the capability; an Authorization header is ignored, valid or not.
import { Type } from "@sinclair/typebox";
import { assistantNotFound, type Assistant } from "#features/assistants/assistants.ts";
import { fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named, NonBlank, Nullable, OneOf, shownAs } from "#core/schema.ts";
import { isUuid } from "#core/values.ts";
import { variablesFrom } from "#core/variables.ts";
import {
  AFTER as POSITION, EVENT_STREAM, FunctionCallSchema, IDEMPOTENCY_KEY, LAST_EVENT_ID, listOf,
  replayHeaders, Uuid,
} from "#http/answers.ts";
import { originFault } from "#http/api.ts";
import { accepts, json, type HttpRequest, type Reply } from "#http/exchange.ts";
import { publicRoute, type Route } from "#http/route.ts";
import { readIdempotencyKey } from "#http/validation.ts";
import { formatPosition, parsePosition } from "#realtime/frames.ts";
import { readPosition, type Streams } from "#realtime/streams.ts";
import type { Access } from "./access.ts";
import type { Attachments } from "./attachments.ts";
import type { Conversations } from "./conversations.ts";
import { AuthorSchema, DeskState } from "./desk/wire.ts";
import type { Identity } from "./visitors/identity.ts";
import type { MessageProtocol } from "./message-protocol.ts";
import { isReplayed, type Sent } from "./outcomes.ts";
import { assertAnswered } from "./visitors/widget-form.ts";
import {
  historyItem, HistoryItemSchema, OF_VISITOR, replyBody, STORED_BODY, TruncatedSchema,
  VariablesField,
} from "./wire.ts";

interface ConversationRouteOptions {
  conversations: Conversations;
  findAssistantByUuid(uuid: string): Promise<Assistant | null>;
  access: Access;
  streams: Streams;
  identity: Pick<Identity, "verify">;
  attachments: Pick<Attachments, "named">;
  /** The AI SDK's protocol for sending messages and streaming replies. */
  uiMessages: MessageProtocol;
}

const VISITOR_CHARS_MAX = 200;
const UUID_CHARS = 36;
const PAGE_CHARS_MAX = 500;

const CREATE = Type.Object({
  assistant_id: Type.String(about(
    "The assistant's `uuid`.", "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")),
  type: Type.Optional(OneOf(["widget", "test"], {
    default: "widget", ...about("Replies in a widget conversation are billed; those in a test "
      + "conversation are free."),
  })),
  variables: Type.Optional(VariablesField),
  visitor: Type.Optional(Type.Object({
    id: NonBlank(VISITOR_CHARS_MAX, about("The visitor's id in your system.", "user-42")),
    hash: Type.Optional(Type.String({
      maxLength: VISITOR_CHARS_MAX,
      ...about("HMAC-SHA256 of the id with the assistant's identity secret, in hex.",
        "9f86d081884c"),
    })),
    name: Type.Optional(Type.String({
      maxLength: VISITOR_CHARS_MAX, ...about("Sets the variable customer_name.", "Ada"),
    })),
    email: Type.Optional(Type.String({
      maxLength: VISITOR_CHARS_MAX,
      ...about("Sets the variable customer_email.", "ada@example.com"),
    })),
  }, about("A visitor signed by your site. Continues the visitor's newest conversation with the "
    + "assistant."))),
  page: Type.Optional(Type.String({
    maxLength: PAGE_CHARS_MAX,
    ...about("The URL of the page the visitor is on, shown to people who answer.",
      "https://shop.example/bikes"),
  })),
  anew: Type.Optional(Type.Boolean(about(
    "Starts a new conversation even if the signed visitor already has one."))),
});
export const MESSAGE_FIELD = Type.String({
  maxLength: LIMITS.messageCharsMax, ...about("The text of the message.", "When are you open?"),
});
export const ATTACHMENTS = Type.Array(Type.String({ maxLength: UUID_CHARS }), {
  maxItems: LIMITS.attachmentsOfMessageMax,
  ...about("The `id`s of uploaded files; with files, the text may be empty.",
    ["0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11"]),
});
/** The two request bodies, as documented; the schema that validates accepts both. */
const SENDS = Type.Union([
  Type.Object({
    message: MESSAGE_FIELD, attachments: Type.Optional(ATTACHMENTS),
  }, named("SendMessage", "A message of the visitor.")),
  Type.Object({
    messages: Type.Array(Type.Unknown(), about(
      "All messages of the chat so far; the last one, the user's, is answered.",
      [{ id: "1", role: "user", parts: [{ type: "text", text: "When are you open?" }] }])),
  }, named("SendChat", "A chat of the AI SDK, sent with `?protocol=ai-sdk` or its header.")),
]);
const SEND = Type.Object({
  message: Type.Optional(Type.String({
    maxLength: LIMITS.messageCharsMax, description: "Required, but where `messages` are sent",
  })),
  attachments: Type.Optional(ATTACHMENTS),
  messages: Type.Optional(Type.Array(Type.Unknown(), {
    description: "An AI SDK chat's, with ?protocol=ai-sdk: the last user message is sent",
  })),
}, shownAs(SENDS));
/** Any value is accepted: what another means was never refused. */
const PROTOCOL = Type.Object({
  protocol: Type.Optional(Type.String(shownAs(OneOf(["ai-sdk"], about(
    "The body and the streamed reply are those of the AI SDK.", "ai-sdk"))))),
});
export const STOP = Type.Object({
  turn_id: Type.Optional(Type.Integer(about(
    "The turn to stop; a later reply is not affected. Defaults to the current reply.", 12))),
});
const AFTER = Type.Object({
  after: Type.Optional(POSITION),
});

const OK = Type.Literal(true, about("Always true."));
export const CREATED = Type.Object({
  status: OK,
  conversation_id: Uuid("The conversation's uuid. It is a secret: anyone who has it can read and "
    + "write the conversation."),
  history: listOf(HistoryItemSchema, "The assistant's first message, if it has one."),
});
export const REPLY = Type.Object({
  status: OK,
  message: Type.String(about("The assistant's reply.", "We are open from 9 to 5.")),
  function_calls: listOf(FunctionCallSchema, "Functions the model called for this reply."),
  ai_disabled: Type.Optional(Type.Boolean(about(
    "True if a person has the conversation: the message was stored and the AI stays silent."))),
  stopped: Type.Optional(Type.Boolean(about(
    "True if the reply was stopped; the text is what had been shown by then."))),
  truncated: TruncatedSchema,
}, named("Reply", "The reply to a message."));
const HISTORY = Type.Object({
  status: OK,
  history: listOf(HistoryItemSchema, "All messages, oldest first."),
  turn_ids: Type.Array(Nullable(Type.Integer()), about(
    "The turn that wrote each message of the history, by which it is rated; null if it is no reply.",
    [null, null, 17])),
  position: Type.String(about(
    "Where in the stream the history ends: watched `after` it, nothing is missing or doubled.", "4")),
  variables: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()], about(
    "Variables the conversation started with; null if none.", { first_name: "Ada" })),
  external_identifier: Type.Optional(Type.String(about(
    "The customer's id in your system; only if it was started by generate-reply.", "cust-4711"))),
  ended: Type.Boolean(about("True if it has ended; the next message continues it.", false)),
  desk: DeskState,
  desk_holder: Nullable(AuthorSchema, about("The person who answers; null if nobody, or nobody in "
    + "particular.")),
});
const EVENTS = {
  description: "Server-sent events",
  schema: EVENT_STREAM,
  contentType: "text/event-stream",
};
const NOT_FOUND = { description: "No such conversation" };
export const BUSY = { description: "Too many requests, open streams or concurrent messages" };

export const wantsEvents = (http: HttpRequest): boolean =>
  accepts(http.headers.accept, "text/event-stream");

export function conversationRoutes(options: ConversationRouteOptions): Route[] {
  return [createRoute(options), sendRoute(options), readRoute(options), ...liveRoutes(options)];
}

function createRoute(options: ConversationRouteOptions): Route {
  const { conversations, access, identity } = options;
  return publicRoute({
    method: "POST",
    path: "/conversations",
    tag: "Conversations",
    summary: "Start a conversation",
    errorShape: "conversation",
    body: CREATE,
    bodyBytesMax: LIMITS.bodyBytesMax,
    responses: {
      200: { description: "The conversation and its first message", schema: CREATED },
      400: { description: "The balance is too low, or the body is not a JSON object" },
      403: { description: "This page's origin may not use the assistant, or the visitor's "
        + "signature is missing or wrong" },
      404: { description: "No such assistant" },
      429: BUSY,
    },
    handle: async ({ body, http }) => {
      await access.assertMayCreate(http);
      const uuid = body.assistant_id.toLowerCase();
      const assistant = isUuid(uuid) ? await options.findAssistantByUuid(uuid) : null;
      if (!assistant) throw assistantNotFound();
      if (!access.originAllowed(assistant, http)) throw originFault();
      const type = body.type ?? "widget";
      const visitor = body.visitor ? await identity.verify(assistant, body.visitor) : null;
      const variables = { ...variablesFrom(body.variables), ...visitor?.variables };
      const own = visitor && { id: visitor.id, continues: body.anew !== true };
      const goesOn = own?.continues === true
        && await conversations.hasOfVisitor(assistant.id, type, own.id);
      if (type === "widget" && !goesOn) assertAnswered(assistant, variables);
      const conversation = await conversations.create({
        assistant, type, variables, visitor: own, page: body.page ?? null,
      });
      const { messages } = await conversations.history(conversation.uuid);
      const history = messages.map(historyItem);
      return json(200, { status: true, conversation_id: conversation.uuid, history });
    },
  });
}

function sendRoute(options: ConversationRouteOptions): Route {
  const { conversations, access, streams, uiMessages, attachments } = options;
  return publicRoute({
    ...OF_VISITOR,
    method: "POST",
    path: "/conversations/{uuid}/messages",
    summary: "Send a message",
    description: "Returns the whole reply as JSON, or streams it with `Accept: text/event-stream`. "
      + "The reply is finished even if the client disconnects.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY, "Last-Event-ID": LAST_EVENT_ID },
    query: PROTOCOL,
    body: SEND,
    // An AI SDK chat sends all its messages each time; only the last is used.
    bodyBytesMax: LIMITS.bodyBytesMax,
    responses: {
      200: { description: "The reply", schema: REPLY, stream: EVENT_STREAM },
      400: { description: "The balance is too low, the reply failed, or the body is not a JSON "
        + "object" },
      404: NOT_FOUND,
      409: { description: "An earlier message is still being answered" },
      429: { description: "Too many messages, or the assistant has reached its daily cap" },
    },
    handle: async ({ uuid, body, http }) => {
      const key = readIdempotencyKey(http.headers["idempotency-key"]);
      const ui = uiMessages.read(http, body);
      const { attachments: ids = [] } = body;
      const text = requiredText(ui ? ui.text : body.message, ids.length > 0);
      const conversation = await conversations.get(uuid);
      await access.assertMaySend(uuid);
      const files = await attachments.named(conversation, ids);
      const stream = access.streamOf(conversation);
      const idempotencyKey = key ?? ui?.key ?? null;
      const answer = async (): Promise<Reply> => {
        const first = await access.uncountedIf503(uuid, conversations.send(
          { uuid, text, idempotencyKey, attachments: files }));
        const sent = ui?.regenerates === true && key === null && first.kind === "repeated"
          ? await conversations.send({ uuid, text, idempotencyKey: null })
          : first;
        if (ui) return withReplay(sent, uiMessages.reply(stream.source, sent));
        return answerSent(sent, http, { streams, stream });
      };
      return ui || wantsEvents(http) ? streams.withPlace(stream, answer) : answer();
    },
  });
}

/**
 * The whole reply or its stream, whose place the caller holds; a retried message resumes at its
 * client's position.
 */
export async function answerSent(
  sent: Sent, http: HttpRequest,
  { streams, stream }: { streams: Streams; stream: ReturnType<Access["streamOf"]> },
): Promise<Reply> {
  if (!wantsEvents(http) || sent.kind === "stored") {
    return withReplay(sent, json(200, await replyOf(sent)));
  }
  const beginning = { sequence: sent.fromSequence, chars: 0 };
  const seen = isReplayed(sent) ? parsePosition(http.headers["last-event-id"] ?? "") : null;
  const goesOn = seen !== null && seen.sequence >= sent.fromSequence;
  return withReplay(sent, await streams.openSse({
    ...stream,
    hasPlace: true,
    position: goesOn ? seen : beginning,
    untilTurn: sent.turnId,
    // The client may have seen the turn's end already, or the log no longer has it.
    endsAtPresent: sent.kind === "repeated",
    backlog: sent.kind === "answering" && !sent.replayed ? sent.events : [],
    skipsFailures: sent.kind === "repeated" && sent.result.kind === "completed",
  }));
}

export function requiredText(message: string | undefined, hasFiles: boolean): string {
  if (message !== undefined && message.trim() !== "") return message;
  if (hasFiles) return "";
  throw fieldFault("message", "The message field is required.");
}

async function replyOf(sent: Sent): Promise<object> {
  if (sent.kind === "stored") return STORED_BODY;
  return replyBody(await sent.result);
}

const withReplay = (sent: Sent, reply: Reply): Reply =>
  ({ ...reply, headers: { ...reply.headers, ...replayHeaders(isReplayed(sent)) } });

function readRoute({ conversations }: ConversationRouteOptions): Route {
  return publicRoute({
    ...OF_VISITOR,
    method: "GET",
    path: "/conversations/{uuid}",
    summary: "Read a conversation",
    responses: { 200: { description: "The conversation with its messages",
      schema: HISTORY }, 404: NOT_FOUND },
    handle: async ({ uuid }) => {
      const { conversation, messages, turnIds, sequence } = await conversations.history(uuid);
      const { variables } = conversation;
      return json(200, {
        status: true,
        history: messages.map(historyItem),
        turn_ids: turnIds,
        position: formatPosition({ sequence, chars: 0 }),
        variables: Object.keys(variables).length > 0 ? variables : null,
        ended: conversation.state === "ended",
        desk: conversation.desk.state,
        desk_holder: conversation.desk.holder,
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
      ...OF_VISITOR,
      method: "GET",
      path: "/conversations/{uuid}/stream",
      summary: "Watch a conversation",
      description: "Streams messages and replies as they are written. Resumes without gaps or "
        + "repeats.",
      headers: { "Last-Event-ID": LAST_EVENT_ID },
      query: AFTER,
      responses: { 200: EVENTS, 404: NOT_FOUND, 429: BUSY },
      handle: async ({ uuid, query, http }) => {
        const conversation = await conversations.get(uuid);
        const position = readPosition(query.after, http.headers["last-event-id"]);
        return streams.openSse({ ...access.streamOf(conversation), position });
      },
    }),
    publicRoute({
      ...OF_VISITOR,
      method: "POST",
      path: "/conversations/{uuid}/stop",
      summary: "Stop the reply being written",
      description: "Keeps the text shown so far, and bills it if there is any.",
      body: STOP,
      responses: {
        200: {
          description: "Whether a reply was stopped",
          schema: Type.Object({
            status: OK, stopped: Type.Boolean(about("Whether a reply was being written.")),
          }),
        },
        404: NOT_FOUND,
      },
      handle: async ({ uuid, body }) =>
        json(200, { status: true, stopped: await conversations.stop(uuid, body.turn_id) }),
    }),
  ];
}
