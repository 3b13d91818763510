// Text conversations: owns the sequence of a turn. A send waits in line, begins (one write), is
// answered (answering.ts: engine, live text) and completed (one write). Every face enters here.
import { hash } from "node:crypto";
import type { Assistant } from "#features/assistants/assistants.ts";
import { personaOf } from "#features/assistants/turn-context.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Micros } from "#core/money.ts";
import { secondsToNextDay, utcDay, wait, type Instant } from "#core/system.ts";
import { allVariables } from "#engine/prompt.ts";
import { fillTemplate } from "#engine/template.ts";
import { createTurnQueue, type TurnQueue } from "#engine/turn-queue.ts";
import { conversationTopic, type CommittedEvent, type Refused } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";
import type { ModelUsage } from "#providers/models/port.ts";
import { answer, Interrupted, type AnswerOptions } from "./answering.ts";
import { LiveReply } from "./live-reply.ts";
import { createRefusals } from "./refusals.ts";
import {
  messagePrice,
  type BeginOutcome,
  type Conversation,
  type ConversationFilter,
  type ConversationSummary,
  type ConversationType,
  type FailedReply,
  type Given,
  type Message,
  type TurnResult,
} from "./records.ts";

/** What a send led to. Watchers read the turn from `fromSequence` on. */
export type Sent =
  | {
      kind: "answering";
      turnId: number;
      fromSequence: number;
      /** What was committed after `fromSequence` when the turn began. */
      events: CommittedEvent[];
      replayed: boolean;
      /** What the models have counted so far; null: nothing. */
      usage(): ModelUsage | null;
      result: Promise<TurnResult>;
    }
  | { kind: "repeated"; turnId: number; fromSequence: number; result: TurnResult }
  /** AI is off: the message is stored and nobody answers. */
  | { kind: "stored" };

export interface Send {
  uuid: string;
  text: string;
  idempotencyKey: string | null;
  /** The hash of all that is asked, where that is more than the text: one key is one request. */
  requestHash?: string;
  /** What the model reads in place of what is stored; the last of its messages is the text. */
  given?: Given;
}

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
  /** For the owner, newest first: replies that failed and were not had since. */
  failedReplies(conversationId: number, rows: number): FailedReply[];
  /** As lists show it. Throws Fault 404. */
  summary(accountId: number, uuid: string): ConversationSummary;
  list(
    accountId: number,
    filter: ConversationFilter,
    before: number,
    rows: number,
  ): ConversationSummary[];
  /** Resolves once the message is stored; throws a Fault when it is refused. */
  send(message: Send): Promise<Sent>;
  /** True when a reply was being written, of this turn where one is named, and is now stopped. */
  stop(uuid: string, turnId?: number): Promise<boolean>;
  setAi(accountId: number, uuid: string, enabled: boolean): Promise<void>;
  live(uuid: string): LiveReplyView | null;
  /** Ends conversations that have gone quiet; for a timer. */
  sweep(): Promise<void>;
  /** Closes the turns a dead process left open; before anything is served. */
  recover(): Promise<number>;
  /** Takes on no turn more, lets those taken on finish, also in line, then interrupts the rest. */
  drain(waitMs: number): Promise<void>;
  inFlight(): number;
}

interface Running {
  live: LiveReply;
  isGiven: boolean;
  result: Promise<TurnResult>;
}

const restarting = (): Fault =>
  new Fault(503, "The server is restarting.", { retryAfterS: 1 });
const notFound = (): Fault => new Fault(404, "Conversation not found");
const busy = (): Fault =>
  new Fault(409, "The conversation is being answered.", { retryAfterS: 1 });

/** What the turns of one process share. */
interface Turns {
  refusals: ReturnType<typeof createRefusals>;
  queue: TurnQueue;
  /** The turn being answered, by conversation. */
  running: Map<string, Running>;
  draining: boolean;
  /** Why what is still under way is given up; null while there is time. */
  interrupted: Interrupted | null;
}

interface NewTurn {
  text: string;
  idempotencyKey: string | null;
  requestHash: string;
  given: Given | null;
}

/** Waits in line, begins the turn, starts its answer; resolves once the message is stored. */
async function beginTurn(
  options: AnswerOptions,
  turns: Turns,
  conversation: Conversation,
  turn: NewTurn,
): Promise<Sent> {
  const { store, bus, system } = options;
  const assistant = options.findAssistant(conversation.assistantId);
  if (!assistant) throw new Fault(404, "Assistant not found");
  if (turns.draining) throw restarting();
  if (turns.queue.size() >= LIMITS.turnsInFlightMax) {
    throw new Fault(503, "The server is overloaded.", { retryAfterS: 1 });
  }
  const { given, ...request } = turn;
  const ahead = turns.running.get(conversation.uuid);
  // Nobody waits where a client gives the talk: what is said before and after is not in it.
  if (ahead && (given !== null || ahead.isGiven)) throw busy();
  const release = await turns.queue.enter(conversation.uuid);
  try {
    if (turns.interrupted) throw restarting();
    const now = system.now();
    const outcome = await store.beginTurn({
      ...request,
      conversationUuid: conversation.uuid,
      messagePriceMicros: options.limits.messagePriceMicros,
      dailyCapMicros: dailyCapOf(assistant, options.limits.dailyCapMicros),
      day: utcDay(now),
      messagesMax: LIMITS.conversationMessagesMax,
      now,
    });
    if (outcome.kind === "started" || outcome.kind === "stored") {
      bus.publishCommitted(outcome.events);
    }
    if (outcome.kind !== "started") {
      release();
      if (conversation.type === "widget" && isRefused(outcome)) {
        await turns.refusals.tell({
          accountId: conversation.accountId, assistantUuid: assistant.uuid,
          conversationUuid: conversation.uuid, reason: outcome.kind,
        });
      }
      return settled(outcome, turn, now);
    }
    const { turnId, baseSequence } = outcome;
    const topic = conversationTopic(conversation.uuid);
    const live = new LiveReply({ turnId, baseSequence, bus, system, topic });
    if (turns.interrupted) live.abort.abort(turns.interrupted);
    const result = answer(options, { assistant, conversation, given, live }).finally(() => {
      turns.running.delete(conversation.uuid);
      release();
    });
    turns.running.set(conversation.uuid, { live, isGiven: given !== null, result });
    // The user's message is told with its reply; a turn tried again begins after its failure.
    const { events } = outcome;
    const fromSequence = baseSequence - events.length;
    const usage = (): ModelUsage | null => live.usage;
    return { kind: "answering", turnId, fromSequence, events, replayed: false, usage, result };
  } catch (error) {
    release();
    throw error;
  }
}

/** Sends, joining a retry to the send under the same key that is still under way. */
function createSend(
  options: AnswerOptions,
  turns: Turns,
  get: (uuid: string) => Conversation,
): Conversations["send"] {
  const underWay = new Map<string, { requestHash: string; sent: Promise<Sent> }>();
  return async ({ uuid, text, idempotencyKey, given = null, ...request }) => {
    const conversation = get(uuid);
    const requestHash = request.requestHash ?? hash("sha256", text, "hex");
    const turn = { text, idempotencyKey, requestHash, given };
    if (idempotencyKey === null) return beginTurn(options, turns, conversation, turn);
    const name = `${uuid} ${idempotencyKey}`;
    const first = underWay.get(name);
    if (first) {
      if (first.requestHash !== requestHash) throw keyReused(turn);
      const sent = await first.sent;
      return sent.kind === "answering" ? { ...sent, replayed: true } : sent;
    }
    const sent = beginTurn(options, turns, conversation, turn);
    underWay.set(name, { requestHash, sent });
    const forget = (): void => void underWay.delete(name);
    sent.then((value) => {
      if (value.kind === "answering") void value.result.then(forget);
      else forget();
    }, forget);
    return sent;
  };
}

export function createConversations(options: AnswerOptions): Conversations {
  const { store, bus, system, log } = options;
  const turns: Turns = {
    queue: createTurnQueue(system, {
      waitingMax: LIMITS.turnsWaitingMax, waitMs: LIMITS.turnWaitMs,
    }),
    running: new Map(),
    draining: false,
    interrupted: null,
    refusals: createRefusals(options),
  };
  const { running } = turns;
  const get = (uuid: string): Conversation => {
    const conversation = store.find(uuid);
    if (!conversation) throw notFound();
    return conversation;
  };

  return {
    create: (args) => createConversation(options, turns.refusals, args),
    get,
    history: (uuid) => {
      const conversation = get(uuid);
      return { conversation, messages: store.history(conversation.id) };
    },
    failedReplies: (conversationId, rows) => store.failedReplies(conversationId, rows),
    summary: (accountId, uuid) => {
      const found = store.summary(accountId, uuid);
      if (!found) throw new Fault(404, "Conversation not found");
      return found;
    },
    list: (accountId, filter, before, rows) => store.list(accountId, filter, before, rows),
    send: createSend(options, turns, get),
    stop: async (uuid, turnId) => {
      get(uuid);
      const turn = running.get(uuid);
      const isMeant = turnId === undefined || turn?.live.turnId === turnId;
      if (!turn || !isMeant || !turn.live.stop()) return false;
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
      turns.draining = true;
      await Promise.race([turns.queue.empty(), wait(system, waitMs)]);
      turns.interrupted = new Interrupted();
      for (const { live } of running.values()) live.abort.abort(turns.interrupted);
      await turns.queue.empty();
    },
    inFlight: () => running.size,
  };
}

const isRefused = <O extends { kind: string }>(outcome: O): outcome is O & { kind: Refused } =>
  outcome.kind === "balance_too_low" || outcome.kind === "daily_cap_reached";

const keyReused = ({ given }: NewTurn): Fault => {
  const message = `The Idempotency-Key was used for another ${given ? "request" : "message"}.`;
  return new Fault(422, message, { errors: { idempotency_key: [message] } });
};

function dailyCapOf(assistant: Assistant, otherwise: Micros | null): Micros | null {
  const own = assistant.settings.daily_spend_cap;
  return own === null || own === undefined ? otherwise : Math.round(own * 1_000_000);
}

function capReached(now: Instant): Fault {
  const retryAfterS = secondsToNextDay(now);
  return new Fault(429, "The assistant has reached its daily spending limit.", {
    retryAfterS, extra: { retry_after: retryAfterS },
  });
}

/** Outcomes of begin that run nothing. */
function settled(
  outcome: Exclude<BeginOutcome, { kind: "started" }>, turn: NewTurn, now: Instant,
): Sent {
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
            truncated: outcome.reply.truncated,
            usage: outcome.reply.usage,
          }
        : { kind: "failed", reason: "stopped", error: "The reply was stopped.", cause: null };
      return { kind: "repeated", turnId: outcome.turnId, fromSequence: outcome.userSequence - 1, result };
    }
    case "running":
      throw new Fault(409, "The message is being answered.", { retryAfterS: 1 });
    case "key_reused":
      throw keyReused(turn);
    case "balance_too_low":
      throw new Fault(400, "Insufficient balance. Please top up your account.", {
        code: "INSUFFICIENT_BALANCE",
      });
    case "daily_cap_reached":
      throw capReached(now);
    case "conversation_full":
      throw new Fault(400, "The conversation has reached its maximum number of messages.");
    case "not_found":
      throw notFound();
  }
}

async function createConversation(
  { store, system, bus, limits }: AnswerOptions,
  refusals: Turns["refusals"],
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
    priceMicros: messagePrice(type, limits.messagePriceMicros),
    inactivityMinutes: assistant.settings.conversation_inactivity_timeout,
    // The first message of the others comes later, and is asked then.
    dailyCapMicros: type === "api" ? dailyCapOf(assistant, limits.dailyCapMicros) : null,
    day: utcDay(now),
    now,
  });
  if (outcome.kind === "daily_cap_reached") throw capReached(now);
  if (outcome.kind === "balance_too_low") {
    if (type === "widget") {
      await refusals.tell({
        accountId: assistant.accountId, assistantUuid: assistant.uuid, conversationUuid: null,
        reason: outcome.kind,
      });
    }
    throw new Fault(400, "Insufficient balance. Please top up your account.", {
      code: "INSUFFICIENT_BALANCE",
    });
  }
  if (outcome.kind === "created") bus.publishCommitted(outcome.events);
  return outcome.conversation;
}
