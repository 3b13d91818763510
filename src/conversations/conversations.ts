// Text conversations: owns the sequence of a turn. A send waits in line, begins (one write), is
// answered (answering.ts: engine, live text) and completed (one write). Every face enters here.
import { hash } from "node:crypto";
import type { Assistant } from "../assistants/assistants.ts";
import { Fault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import type { Micros } from "../core/money.ts";
import { utcDay, wait } from "../core/system.ts";
import { allVariables } from "../engine/prompt.ts";
import { fillTemplate } from "../engine/template.ts";
import { createTurnQueue } from "../engine/turn-queue.ts";
import { conversationTopic } from "../events/events.ts";
import type { LiveReplyView } from "../events/live.ts";
import { answer, Interrupted, personaOf, type AnswerOptions } from "./answering.ts";
import { LiveReply } from "./live-reply.ts";
import {
  MESSAGE_PRICE_MICROS,
  type BeginOutcome,
  type Conversation,
  type ConversationFilter,
  type ConversationSummary,
  type ConversationType,
  type Message,
  type TurnResult,
} from "./records.ts";

/** What a send led to. Watchers read the reply from `baseSequence` on. */
export type Sent =
  | { kind: "answering"; turnId: number; baseSequence: number; replayed: boolean; result: Promise<TurnResult> }
  | { kind: "repeated"; turnId: number; baseSequence: number; result: TurnResult }
  /** AI is off: the message is stored and nobody answers. */
  | { kind: "stored" };

export interface Conversations {
  create(args: {
    assistant: Assistant;
    type: ConversationType;
    variables: Record<string, string>;
    externalIdentifier?: string;
  }): Promise<Conversation>;
  /** Throws Fault 404. */
  get(uuid: string): Conversation;
  history(uuid: string): { conversation: Conversation; messages: Message[] };
  list(accountId: number, filter: ConversationFilter, before: number, rows: number): ConversationSummary[];
  /** Resolves once the message is stored; throws a Fault when it is refused. */
  send(args: { uuid: string; text: string; idempotencyKey: string | null }): Promise<Sent>;
  /** True when a reply was being written and is now stopped. */
  stop(uuid: string): Promise<boolean>;
  setAi(accountId: number, uuid: string, enabled: boolean): Promise<void>;
  live(uuid: string): LiveReplyView | null;
  /** Ends conversations that have gone quiet; for a timer. */
  sweep(): Promise<void>;
  /** Closes the turns a dead process left open; before anything is served. */
  recover(): Promise<number>;
  /** Lets replies in flight finish, then interrupts the rest. */
  drain(waitMs: number): Promise<void>;
  inFlight(): number;
}

interface Running {
  live: LiveReply;
  result: Promise<TurnResult>;
}

const notFound = (): Fault => new Fault(404, "Conversation not found");

export function createConversations(options: AnswerOptions): Conversations {
  const { store, bus, system, log } = options;
  const queue = createTurnQueue(system, {
    waitingMax: LIMITS.turnsWaitingMax, waitMs: LIMITS.turnWaitMs,
  });
  /** The turn being answered, by conversation. */
  const running = new Map<string, Running>();
  /** Sends under a key that are under way, so that a retry joins the first instead of waiting. */
  const sends = new Map<string, { requestHash: string; sent: Promise<Sent> }>();
  let draining = false;

  const get = (uuid: string): Conversation => {
    const conversation = store.find(uuid);
    if (!conversation) throw notFound();
    return conversation;
  };
  const assistantOf = (conversation: Conversation): Assistant => {
    const assistant = options.findAssistant(conversation.assistantId);
    if (!assistant) throw new Fault(404, "Assistant not found");
    return assistant;
  };

  const begin = async (
    conversation: Conversation,
    args: { text: string; idempotencyKey: string | null; requestHash: string },
  ): Promise<Sent> => {
    const assistant = assistantOf(conversation);
    const { uuid } = conversation;
    if (queue.size() >= LIMITS.turnsInFlightMax) {
      throw new Fault(503, "The server is overloaded.", { retryAfterS: 1 });
    }
    const release = await queue.enter(uuid);
    try {
      if (draining) throw new Fault(503, "The server is restarting.", { retryAfterS: 1 });
      const now = system.now();
      const outcome = await store.beginTurn({
        conversationUuid: uuid,
        text: args.text,
        idempotencyKey: args.idempotencyKey,
        requestHash: args.requestHash,
        dailyCapMicros: dailyCapOf(assistant, options.limits.dailyCapMicros),
        day: utcDay(now),
        messagesMax: LIMITS.conversationMessagesMax,
        now,
      });
      if (outcome.kind !== "started") {
        if (outcome.kind === "stored") bus.publishCommitted(outcome.events);
        release();
        return settled(outcome);
      }
      bus.publishCommitted(outcome.events);
      const live = new LiveReply({
        turnId: outcome.turnId, baseSequence: outcome.baseSequence, bus, system,
        topic: conversationTopic(uuid),
      });
      const result = answer(options, assistant, conversation, live).finally(() => {
        running.delete(uuid);
        release();
      });
      running.set(uuid, { live, result });
      const { turnId, baseSequence } = outcome;
      return { kind: "answering", turnId, baseSequence, replayed: false, result };
    } catch (error) {
      release();
      throw error;
    }
  };

  const send: Conversations["send"] = ({ uuid, text, idempotencyKey }) => {
    const conversation = get(uuid);
    const requestHash = hash("sha256", text, "hex");
    if (idempotencyKey === null) {
      return begin(conversation, { text, idempotencyKey, requestHash });
    }
    const name = `${uuid} ${idempotencyKey}`;
    const first = sends.get(name);
    if (first) {
      if (first.requestHash !== requestHash) throw keyReused();
      return first.sent.then((sent) =>
        sent.kind === "answering" ? { ...sent, replayed: true } : sent);
    }
    const sent = begin(conversation, { text, idempotencyKey, requestHash });
    sends.set(name, { requestHash, sent });
    const forget = (): void => void sends.delete(name);
    sent.then((value) => {
      if (value.kind === "answering") void value.result.then(forget);
      else forget();
    }, forget);
    return sent;
  };

  return {
    create: (args) => createConversation(options, args),
    get,
    history: (uuid) => {
      const conversation = get(uuid);
      return { conversation, messages: store.history(conversation.id) };
    },
    list: (accountId, filter, before, rows) => store.list(accountId, filter, before, rows),
    send,
    stop: async (uuid) => {
      get(uuid);
      const turn = running.get(uuid);
      if (!turn || !turn.live.stop()) return false;
      await turn.result;
      return true;
    },
    setAi: async (accountId, uuid, enabled) => {
      const events = await store.setAi({ accountId, uuid, enabled, now: system.now() });
      if (!events) throw notFound();
      bus.publishCommitted(events);
    },
    live: (uuid) => running.get(uuid)?.live ?? null,
    sweep: async () => {
      const args = { now: system.now(), rows: LIMITS.inactivitySweepRowsMax };
      for (;;) {
        const { looked, events } = await store.endInactive(args);
        bus.publishCommitted(events);
        if (looked < args.rows) return;
      }
    },
    recover: async () => {
      const events = await store.recover({ now: system.now() });
      if (events.length > 0) log.warn({ turns: events.length }, "turns of a dead process closed");
      return events.length;
    },
    drain: async (waitMs) => {
      draining = true;
      const finished = Promise.all([...running.values()].map((turn) => turn.result));
      await Promise.race([finished, wait(system, waitMs)]);
      const late = [...running.values()];
      for (const { live } of late) live.abort.abort(new Interrupted());
      await Promise.all(late.map((turn) => turn.result));
    },
    inFlight: () => running.size,
  };
}

const keyReused = (): Fault => {
  const message = "The Idempotency-Key was used for another message.";
  return new Fault(422, message, { errors: { idempotency_key: [message] } });
};

function dailyCapOf(assistant: Assistant, otherwise: Micros | null): Micros | null {
  const own = assistant.settings.daily_spend_cap;
  return own === null || own === undefined ? otherwise : Math.round(own * 1_000_000);
}

/** Outcomes of begin that run nothing. */
function settled(outcome: Exclude<BeginOutcome, { kind: "started" }>): Sent {
  switch (outcome.kind) {
    case "stored":
      return { kind: "stored" };
    case "repeated": {
      if (outcome.stored) return { kind: "stored" };
      const result: TurnResult = outcome.reply
        ? {
            kind: "completed",
            text: outcome.reply.content,
            functionCalls: outcome.reply.functionCalls,
            stopped: outcome.reply.stopped,
          }
        : { kind: "failed", reason: "stopped", error: "The reply was stopped." };
      return { kind: "repeated", turnId: outcome.turnId, baseSequence: outcome.userSequence, result };
    }
    case "running":
      throw new Fault(409, "The message is being answered.", { retryAfterS: 1 });
    case "key_reused":
      throw keyReused();
    case "balance_too_low":
      throw new Fault(400, "Insufficient balance. Please top up your account.", {
        code: "INSUFFICIENT_BALANCE",
      });
    case "daily_cap_reached":
      throw new Fault(429, "The assistant has reached its daily spending limit.", {
        retryAfterS: 3600, extra: { retry_after: 3600 },
      });
    case "conversation_full":
      throw new Fault(400, "The conversation has reached its maximum number of messages.");
    case "not_found":
      throw notFound();
  }
}

async function createConversation(
  { store, system, bus }: AnswerOptions,
  args: Parameters<Conversations["create"]>[0],
): Promise<Conversation> {
  const { assistant, type } = args;
  const now = system.now();
  const variables = allVariables(personaOf(assistant), args.variables, now);
  const outcome = await store.create({
    uuid: system.uuid(),
    accountId: assistant.accountId,
    assistant: { id: assistant.id, uuid: assistant.uuid },
    type,
    variables: args.variables,
    externalIdentifier: args.externalIdentifier ?? null,
    initialMessage: fillTemplate(assistant.settings.initial_message, variables),
    priceMicros: MESSAGE_PRICE_MICROS[type],
    inactivityMinutes: assistant.settings.conversation_inactivity_timeout,
    now,
  });
  if (outcome.kind === "balance_too_low") {
    throw new Fault(400, "Insufficient balance. Please top up your account.", {
      code: "INSUFFICIENT_BALANCE",
    });
  }
  if (outcome.kind === "created") bus.publishCommitted(outcome.events);
  return outcome.conversation;
}
