// Turns whose history the client gives, as chat completions do: real turns of real conversations,
// stored, billed and watched like all others, only that the model reads what the client sent in
// place of what is stored. Made by features.ts around conversations.ts, called by routes.ts.
import { hash } from "node:crypto";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { AnswerOptions } from "#features/conversations/answering.ts";
import {
  createConversations, type Conversations, type Sent,
} from "#features/conversations/conversations.ts";
import type { Conversation, Message } from "#features/conversations/records.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { estimateTokens } from "#engine/history.ts";
import type {
  LanguageModel, ModelDelta, ModelMessage, ModelUsage,
} from "#providers/models/port.ts";

export interface Given {
  /** Said behind the assistant's own prompt. */
  system: string;
  /** Oldest first; the last is the user's and is what the turn answers. */
  messages: { role: "user" | "assistant"; content: string }[];
  /** Null: the assistant's own. */
  temperature: number | null;
  /** Null: as many as the server allows. */
  tokensMax: number | null;
}

export interface GivenRequest {
  assistant: Assistant;
  given: Given;
  idempotencyKey: string | null;
  /** Of the whole request: one key stands for one request. */
  requestHash: string;
}

export interface GivenTurn {
  conversation: Conversation;
  sent: Exclude<Sent, { kind: "stored" }>;
  told: Told;
}

/** What the models of one turn counted; `usage` is null until one has, or if none does. */
export interface Told {
  usage: ModelUsage | null;
}

export interface GivenTurns {
  /** All conversations, these turns among them: watched, stopped and drained like the others. */
  conversations: Conversations;
  /** Resolves once the turn has begun; throws a Fault when it is refused. */
  answer(request: GivenRequest): Promise<GivenTurn>;
}

interface Run {
  turns: Conversations;
  told: Told;
}

const busy = (): Fault =>
  new Fault(409, "The conversation is being answered.", { retryAfterS: 1 });

/** Instructions stay in one message: some models take no second one. */
function withSystem(messages: ModelMessage[], system: string): ModelMessage[] {
  if (system === "") return messages;
  const [first, ...others] = messages;
  return first?.role === "system"
    ? [{ ...first, content: `${first.content}\n\n${system}` }, ...others]
    : [{ role: "system", content: system }, ...messages];
}

async function* listened(
  stream: AsyncIterable<ModelDelta[]>,
  told: Told,
): AsyncGenerator<ModelDelta[]> {
  for await (const deltas of stream) {
    for (const delta of deltas) {
      if (delta.kind !== "finish" || !delta.usage) continue;
      const { inputTokens = 0, outputTokens = 0 } = told.usage ?? {};
      told.usage = {
        inputTokens: inputTokens + delta.usage.inputTokens,
        outputTokens: outputTokens + delta.usage.outputTokens,
      };
    }
    yield deltas;
  }
}

/** The model as this request wants it, within the assistant's bounds. */
function askedModel(model: LanguageModel, given: Given, told: Told): LanguageModel {
  return {
    stream: (request, signal) => listened(model.stream({
      ...request,
      messages: withSystem(request.messages, given.system),
      temperature: given.temperature ?? request.temperature,
      tokensMax: Math.min(given.tokensMax ?? Infinity, request.tokensMax),
    }, signal), told),
  };
}

/** Conversations that see the given history in place of their own; for one turn. */
function createRun(options: AnswerOptions, given: Given): Run {
  const told: Told = { usage: null };
  const createdAt = options.system.now();
  const newestFirst = given.messages
    .map((message): Message => ({
      ...message, functionCalls: [], stopped: false, truncated: false, usage: null, createdAt,
    }))
    .reverse();
  const turns = createConversations({
    ...options,
    store: { ...options.store, recent: (_, rows) => newestFirst.slice(0, rows) },
    resolveModel: (assistant) => askedModel(options.resolveModel(assistant), given, told),
  });
  return { turns, told };
}

/**
 * One conversation for each request, because the client's history is the truth: one for each `user`
 * would mix chats that know nothing of each other. Under a key it is found again by that key.
 */
async function open(
  own: Conversations,
  { assistant, idempotencyKey, requestHash }: GivenRequest,
): Promise<Conversation> {
  // The client has the greeting already, or never showed one.
  const silent = { ...assistant, settings: { ...assistant.settings, initial_message: "" } };
  const name = `request_${requestHash.slice(0, 32)}`;
  const conversation = await own.create({
    assistant: silent,
    type: "api",
    variables: idempotencyKey === null ? {} : { [name]: "1" },
    ...(idempotencyKey === null
      ? {}
      : { externalIdentifier: `completion:${hash("sha256", idempotencyKey, "hex")}` }),
  });
  // The variables of a conversation found again come first: the first name is the first request's.
  if (idempotencyKey !== null && Object.keys(conversation.variables)[0] !== name) {
    const message = "The Idempotency-Key was used for another request.";
    throw new Fault(422, message, { errors: { idempotency_key: [message] } });
  }
  return conversation;
}

export function createGivenTurns(options: AnswerOptions): GivenTurns {
  const own = createConversations(options);
  /** By conversation; retries under one key join the run of the first. */
  const running = new Map<string, Run>();
  let isDraining = false;
  const inFlight = (): number => own.inFlight() + running.size;

  const conversations: Conversations = {
    ...own,
    send: (args) => running.has(args.uuid) ? Promise.reject(busy()) : own.send(args),
    stop: (uuid, turnId) => (running.get(uuid)?.turns ?? own).stop(uuid, turnId),
    live: (uuid) => (running.get(uuid)?.turns ?? own).live(uuid),
    drain: async (waitMs) => {
      isDraining = true;
      const runs = [...running.values()].map(({ turns }) => turns.drain(waitMs));
      await Promise.all([own.drain(waitMs), ...runs]);
    },
    inFlight,
  };

  return {
    conversations,
    answer: async (request) => {
      const conversation = await open(own, request);
      const { uuid } = conversation;
      if (isDraining) throw new Fault(503, "The server is restarting.", { retryAfterS: 1 });
      if (own.live(uuid) !== null) throw busy();
      const { given, idempotencyKey } = request;
      const earlier = running.get(uuid);
      if (!earlier && inFlight() >= LIMITS.turnsInFlightMax) {
        throw new Fault(503, "The server is overloaded.", { retryAfterS: 1 });
      }
      const run = earlier ?? createRun(options, given);
      running.set(uuid, run);
      const forget = (): void => {
        if (running.get(uuid) === run) running.delete(uuid);
      };
      try {
        const text = given.messages.at(-1)?.content ?? "";
        const sent = await run.turns.send({ uuid, text, idempotencyKey });
        if (sent.kind === "answering") void sent.result.then(forget);
        else forget();
        if (sent.kind !== "stored") return { conversation, sent, told: run.told };
        throw new Fault(409, "The AI is switched off for this conversation.");
      } catch (error) {
        forget();
        throw error;
      }
    },
  };
}

/** What the models counted, or an estimate where they count nothing or the turn is repeated. */
export function usageOf(told: Told, given: Given, reply: string) {
  const texts = [given.system, ...given.messages.map(({ content }) => content)];
  const { inputTokens, outputTokens } = told.usage ?? {
    inputTokens: texts.reduce((sum, text) => sum + estimateTokens(text), 0),
    outputTokens: estimateTokens(reply),
  };
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}
