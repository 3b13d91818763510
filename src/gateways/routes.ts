// Routes of other protocols: OpenAI's chat completions and models, and the stream that an AI SDK
// chat reconnects to. Pages may call OpenAI's routes like public ones, so these check the key
// themselves.
import { Type } from "@sinclair/typebox";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Access } from "#features/conversations/access.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import { isReplayed } from "#features/conversations/outcomes.ts";
import { Fault } from "#core/faults.ts";
import { about, named } from "#core/schema.ts";
import { isUuid } from "#core/values.ts";
import { EVENT_STREAM, IDEMPOTENCY_KEY, replayHeaders, Uuid } from "#http/answers.ts";
import { rateLimitFault } from "#http/errors.ts";
import { json, type HttpRequest, type Reply } from "#http/exchange.ts";
import type { RateDecision } from "#core/rate-limit.ts";
import { publicRoute, type Caller, type Route } from "#http/route.ts";
import { readIdempotencyKey } from "#http/validation.ts";
import type { Streams } from "#realtime/streams.ts";
import {
  COMPLETION_BODY, CompletionSchema, completionOf, createChunkEncoder, failure, OpenAiErrorSchema,
  readCompletion, renderOpenAiFault, type CompletionBody, type CompletionHead,
} from "./openai/chat-completions.ts";
import { beginCompletion, countOf } from "./openai/completions.ts";
import type { TurnStreams } from "./turn-stream.ts";
import type { MessageProtocol } from "#features/conversations/message-protocol.ts";

interface ProtocolOptions {
  conversations: Conversations;
  assistants: {
    find(accountId: number, assistantId: number): Promise<Assistant | null>;
    findByUuid(uuid: string): Promise<Assistant | null>;
    listAll(accountId: number): Promise<Assistant[]>;
  };
  access: Access;
  streams: TurnStreams;
  uiMessages: MessageProtocol;
  /** Throws Fault 429 when too many watch. */
  assertRoom: Streams["assertRoom"];
  /** The bearer key's owner; throws Fault 401. */
  identify(http: HttpRequest): Promise<Caller>;
  /** Null switches the limit off. */
  takeRate: ((caller: Caller) => RateDecision | Promise<RateDecision>) | null;
}

const MODEL = Type.Object({
  id: Uuid("The assistant's uuid, for `model`."),
  object: Type.Literal("model", about("Always model.")),
  created: Type.Integer(about("When it was created, in Unix seconds.", 1_772_443_800)),
  owned_by: Type.Literal("parley", about("Always parley.")),
  name: Type.String(about("The assistant's name.", "Front desk")),
}, named("OpenAiModel", "An assistant, as a model in OpenAI's API."));
/** What OpenAI's routes have in common. */
const OPENAI = {
  tag: "OpenAI",
  asksForKey: true,
  errorShape: "error",
  refusals: { schema: OpenAiErrorSchema, render: renderOpenAiFault },
} as const;
const NO_MODEL = { description: "No such assistant", schema: OpenAiErrorSchema };

const seconds = (instant: number): number => Math.floor(instant / 1_000_000);

const modelOf = ({ uuid, name, createdAt }: Assistant) =>
  ({ id: uuid, object: "model", created: seconds(createdAt), owned_by: "parley", name });

async function admit(
  options: ProtocolOptions, http: HttpRequest, scope: "read" | "write",
): Promise<Caller> {
  const caller = await options.identify(http);
  const decision = await options.takeRate?.(caller);
  if (decision && !decision.allowed) throw rateLimitFault(decision.retryAfterMs, "message");
  if (caller.scopes.includes(scope)) return caller;
  throw new Fault(403, "Your API key does not have permission for this resource");
}

async function getModel(
  { assistants }: ProtocolOptions, caller: Caller, model: string,
): Promise<Assistant> {
  const own = isUuid(model.toLowerCase())
    ? await assistants.findByUuid(model.toLowerCase())
    : /^\d{1,15}$/.test(model) ? await assistants.find(caller.accountId, Number(model)) : null;
  if (own?.accountId === caller.accountId) return own;
  const name = model.slice(0, 64);
  throw new Fault(404, `The model ${name} does not exist: models are your assistants' uuids.`, {
    code: "model_not_found", extra: { param: "model" },
  });
}

export function protocolRoutes(options: ProtocolOptions): Route[] {
  return [completionRoute(options), ...modelRoutes(options), rejoinRoute(options)];
}

function completionRoute(options: ProtocolOptions): Route {
  return publicRoute({
    ...OPENAI,
    method: "POST",
    path: "/v1/chat/completions",
    summary: "Create a chat completion",
    description: "Send the conversation so far with each request; the last message is answered and "
      + "billed.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: COMPLETION_BODY,
    responses: {
      200: {
        description: "The reply, or its chunks if `stream` is true",
        schema: CompletionSchema, stream: EVENT_STREAM,
      },
      400: { description: "Not supported by assistants", schema: OpenAiErrorSchema },
      402: { description: "Balance too low", schema: OpenAiErrorSchema },
      404: NO_MODEL,
    },
    handle: ({ body, http }) => complete(options, body, http),
  });
}

async function complete(
  options: ProtocolOptions,
  body: CompletionBody,
  http: HttpRequest,
): Promise<Reply> {
  const caller = await admit(options, http, "write");
  const given = readCompletion(body);
  const assistant = await getModel(options, caller, body.model);
  const { conversation, sent } = await beginCompletion(options.conversations, {
    assistant,
    given,
    idempotencyKey: readIdempotencyKey(http.headers["idempotency-key"]),
  });
  const head: CompletionHead = {
    id: `chatcmpl-${conversation.uuid}`,
    created: seconds(conversation.createdAt),
    model: assistant.uuid,
  };
  const count = countOf(sent);
  const headers = replayHeaders(isReplayed(sent));
  if (body.stream === true) {
    const includesUsage = body.stream_options?.include_usage === true;
    const encoder = createChunkEncoder(head, given, count, includesUsage);
    if (sent.kind === "repeated") return options.streams.repeat(sent.result, encoder, headers);
    const { source } = options.access.streamOf(conversation);
    return options.streams.watch(
      source, sent.replayed ? { ...sent, events: [] } : sent, encoder, headers);
  }
  const result = await sent.result;
  if (result.kind === "failed" && result.reason !== "stopped") throw failure(result);
  const reply = result.kind === "completed" ? result : null;
  return json(200, completionOf(head, given, count(), reply), headers);
}

function modelRoutes(options: ProtocolOptions): Route[] {
  return [
    publicRoute({
      ...OPENAI,
      method: "GET",
      path: "/v1/models",
      summary: "List assistants as models",
      responses: {
        200: {
          description: "The active assistants",
          schema: Type.Object({
            object: Type.Literal("list", about("Always list.")),
            data: Type.Array(MODEL, about(
              "Assistants whose `status` is active. An inactive assistant still answers by its "
              + "uuid.")),
          }),
        },
      },
      handle: async ({ http }) => {
        const { accountId } = await admit(options, http, "read");
        const data = (await options.assistants.listAll(accountId))
          .filter(({ status }) => status === "active")
          .map(modelOf);
        return json(200, { object: "list", data });
      },
    }),
    publicRoute({
      ...OPENAI,
      method: "GET",
      path: "/v1/models/{model}",
      params: { model: Type.String(about(
        "The assistant's uuid or id, as in `model`.", "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")) },
      summary: "Read an assistant as a model",
      responses: {
        200: { description: "The assistant", schema: MODEL },
        404: NO_MODEL,
      },
      handle: async ({ http }) => {
        const caller = await admit(options, http, "read");
        return json(200, modelOf(await getModel(options, caller, http.params[0] ?? "")));
      },
    }),
  ];
}

function rejoinRoute(options: ProtocolOptions): Route {
  const { conversations, access, assertRoom, uiMessages } = options;
  return publicRoute({
    method: "GET",
    path: "/conversations/{uuid}/messages/stream",
    // Where the SDK's own transport looks: below the URL it sends to, with its own chat id.
    aliases: ["/conversations/{uuid}/messages/{chat}/stream"],
    tag: "Conversations",
    summary: "Rejoin a reply",
    description: "Streams the reply being written as an AI SDK UI message stream, from its "
      + "beginning.",
    params: {
      uuid: Uuid("The conversation's `conversation_id`."),
      chat: Type.String(about("The chat's own id.", "chat")),
    },
    errorShape: "conversation",
    notFound: "Conversation not found",
    responses: {
      200: {
        description: "UI message stream", schema: EVENT_STREAM, contentType: "text/event-stream",
      },
      204: { description: "No reply is being written" },
      429: { description: "Too many open streams on the conversation" },
    },
    handle: async ({ uuid }) => {
      const live = await conversations.reply(uuid);
      if (!live) return { status: 204, contentType: "text/plain", content: "" };
      const stream = access.streamOf(await conversations.get(uuid));
      assertRoom(stream);
      const { turnId, baseSequence: fromSequence } = live;
      return uiMessages.rejoin(stream.source, { turnId, fromSequence, events: [] });
    },
  });
}
