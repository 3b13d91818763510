// Text conversations: owns the sequence of a turn. A send waits in the conversation's queue, begins
// (one write), is answered (asking.ts, answering.ts: engine, live text) and completed (one write).
// Every face enters here.
import { hash } from "node:crypto";
import { assistantNotFound, type Assistant } from "#features/assistants/assistants.ts";
import { StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wait, type Instant } from "#core/system.ts";
import { createTurnQueue, type TurnQueue } from "#engine/turn-queue.ts";
import type { EventBus } from "#events/bus.ts";
import { conversationTopic, type AttachmentBody, type Refused } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";
import { Interrupted, type AnswerOptions, type Answered } from "./turns/answering.ts";
import { createAsk, createCovers, type Cover } from "./turns/asking.ts";
import { createConversation, type CreateArgs, type Prices } from "./creation.ts";
import { askedByEnd } from "./desk/rules.ts";
import { createElsewhere, LOST } from "./turns/elsewhere.ts";
import { LiveReply } from "./turns/live-reply.ts";
import { createRecent, type Recent } from "./turns/recent.ts";
import { conversationNotFound, keyReused, restarting, settled, type Sent } from "./outcomes.ts";
import { createRefusals } from "./refusals.ts";
import { askWhenFree, type NewTurn } from "./turns/begin.ts";
import type {
  BeginOutcome, Conversation, ConversationStore, ConversationSummary, Given, History, TurnResult,
} from "./records.ts";

export interface ConversationOptions extends Omit<AnswerOptions, "recent"> {
  store: ConversationStore;
  /** Null when it is deleted. */
  findAssistant(assistantId: number): Promise<Assistant | null>;
  bus: EventBus;
  limits: AnswerOptions["limits"] & Prices & {
    /** Most messages being answered or queued, over all conversations. */
    turnsMax: number;
    /** Most messages that one conversation may have. */
    messagesMax: number;
  };
  /** Null: there are no other nodes. */
  others: OtherReplies | null;
  /** For metrics: one call per finished turn. */
  observe(outcome: TurnResult, seconds: number, firstTextSeconds: number | null): void;
  /** This node's id; turns in flight at other nodes are waited for. */
  nodeId: number;
}

/** A reply that is being written, and the position from which a watcher reads it. */
type WrittenReply = Pick<LiveReplyView, "turnId" | "baseSequence">;

/** Gives access to replies that other nodes write, and offers them this node's. */
export interface OtherReplies {
  /** Offers this node's reply until the result is called; `stop` as in Conversations. */
  offer(
    uuid: string, live: LiveReplyView, stop: (turnId: number | null) => Promise<boolean>,
  ): () => void;
  live(uuid: string): LiveReplyView | null;
  /** Asks all nodes who writes it; null: nobody answers that they do. The same holds for `stop`. */
  find(uuid: string): Promise<WrittenReply | null>;
  stop(uuid: string, turnId: number | null): Promise<boolean | null>;
}

interface Send {
  uuid: string;
  text: string;
  idempotencyKey: string | null;
  attachments?: AttachmentBody[];
  /** Hash of the whole request, where it is more than the text: one key stands for one request. */
  requestHash?: string;
  /** Messages for the model in place of the stored ones; the last of them is the text. */
  given?: Given;
  /** As in NewTurn. */
  draft?: Assistant;
}

export interface Conversations {
  create(args: CreateArgs): Promise<Conversation>;
  /** Throws Fault 404. */
  get(uuid: string): Promise<Conversation>;
  /** Whether a signed visitor has talked with the assistant before. */
  hasOfVisitor: ConversationStore["hasOfVisitor"];
  history(uuid: string): Promise<{ conversation: Conversation } & History>;
  /** For the owner, newest first: replies that failed and have not succeeded since. */
  failedReplies: ConversationStore["failedReplies"];
  /** As lists show it. Throws Fault 404. */
  summary(accountId: number, uuid: string): Promise<ConversationSummary>;
  list: ConversationStore["list"];
  /** Resolves once the message is stored; throws a Fault when it is refused. */
  send(message: Send): Promise<Sent>;
  /**
   * True when a reply (of this turn, where one is named) was being written at any node and is now
   * stopped. Throws Fault 503 when that node is unreachable.
   */
  stop(uuid: string, turnId?: number | null): Promise<boolean>;
  /** The reply being written, as far as this node knows of one. */
  live(uuid: string): LiveReplyView | null;
  /** The reply being written; waits for a turn that is being stored. Throws 404. */
  reply(uuid: string): Promise<WrittenReply | null>;
  /** Ends inactive conversations; called by a timer. */
  sweep(): Promise<void>;
  /** Drops cached messages of conversations without new turns; called by a timer. */
  forgetQuiet(): void;
  /** Closes turns that dead processes left open. */
  recover(): Promise<void>;
  /** Accepts no more turns, lets running and queued ones finish, then interrupts the rest. */
  drain(waitMs: number): Promise<void>;
  inFlight(): number;
}

interface Running {
  live: LiveReply;
  result: Promise<TurnResult>;
}

/** What the turns of one process share. */
interface Turns {
  recent: Recent;
  cover: ReturnType<typeof createCovers>;
  ask: ReturnType<typeof createAsk>;
  refusals: ReturnType<typeof createRefusals>;
  elsewhere: ReturnType<typeof createElsewhere>;
  queue: TurnQueue;
  /** Turns that are starting: their models may have been asked, but they have not begun. */
  starting: Map<string, Promise<void>>;
  /** The turn being answered, by conversation. */
  running: Map<string, Running>;
  draining: boolean;
  /** Why turns still in flight are aborted; null while they may go on. */
  interrupted: Interrupted | null;
}

/**
 * Waits in the queue, begins the turn, starts its answer; resolves once the message is stored. It
 * enters the queue before reading anything, so that messages are answered in order of arrival.
 */
async function beginTurn(
  options: ConversationOptions,
  turns: Turns,
  uuid: string,
  turn: NewTurn,
): Promise<Sent> {
  const { store, bus, system } = options;
  if (turns.draining) throw restarting();
  const { given } = turn;
  const release = await turns.queue.enter(uuid);
  const started = Promise.withResolvers<void>();
  turns.starting.set(uuid, started.promise);
  let cover: Cover | null = null;
  try {
    const outlook = await store.outlook(uuid, turn.idempotencyKey);
    if (!outlook) throw conversationNotFound();
    const { conversation } = outlook;
    turns.queue.claim(uuid, conversation.accountId);
    cover = turns.cover(outlook);
    const { isCovered } = cover;
    const assistant = turn.draft ?? await options.findAssistant(conversation.assistantId);
    if (!assistant) throw assistantNotFound();
    if (turns.interrupted) throw restarting();
    const startedMs = system.monotonicMs();
    const now = system.now();
    const { asking, outcome } = await askWhenFree(
      options, turns, { outlook, isCovered, assistant, turn, now });
    if (outcome.kind === "started" || outcome.kind === "stored") {
      bus.publishCommitted(outcome.events);
    }
    if (outcome.kind !== "started") {
      release();
      return await notBegun(options, turns, { conversation, assistant, outcome, given, now });
    }
    const { turnId, baseSequence } = outcome;
    const topic = conversationTopic(conversation.uuid);
    const { abort } = asking;
    const live = new LiveReply({ turnId, baseSequence, bus, system, topic, abort });
    if (turns.interrupted) abort.abort(turns.interrupted);
    const answered = asking.begin(live);
    const begun = { assistant, conversation, live, answered, startedMs };
    const result = finishTurn(options, turns.recent, begun).finally(() => {
      turns.running.delete(conversation.uuid);
      release();
    });
    keepRunning(options, turns, conversation.uuid, { live, result });
    // The user's message is published with its reply; a turn tried again begins after its failure.
    const { events } = outcome;
    return {
      kind: "answering", turnId, fromSequence: baseSequence - events.length, events,
      replayed: false, usage: () => live.usage, result,
    };
  } catch (error) {
    release();
    throw error;
  } finally {
    cover?.release();
    // The next turn in the queue may be starting already.
    if (turns.starting.get(uuid) === started.promise) turns.starting.delete(uuid);
    started.resolve();
  }
}

/** The outcome of a send that starts no answer on this node. */
async function notBegun(
  { nodeId }: ConversationOptions,
  { elsewhere, refusals }: Turns,
  { conversation, assistant, outcome, given, now }: {
    conversation: Conversation; assistant: Assistant; given: Given | null; now: Instant;
    outcome: Exclude<BeginOutcome, { kind: "started" }>;
  },
): Promise<Sent> {
  if (outcome.kind === "running" && outcome.nodeId !== nodeId) {
    // Another node answers: clients of this node read the reply from the event log.
    const { turnId, baseSequence: fromSequence } = outcome;
    return {
      kind: "answering", turnId, fromSequence, events: [], replayed: true, usage: () => null,
      result: elsewhere.resultOf(turnId),
    };
  }
  if (conversation.type === "widget" && isRefused(outcome)) {
    await refusals.publish({
      accountId: conversation.accountId, assistantUuid: assistant.uuid,
      conversationUuid: conversation.uuid, reason: outcome.kind,
      dailyCap: assistant.settings.daily_spend_cap,
    });
  }
  return settled(outcome, given, now);
}

interface BegunTurn {
  assistant: Assistant;
  conversation: Conversation;
  live: LiveReply;
}

/** Never rejects: a turn always ends in a result, which is stored before it is published. */
async function finishTurn(
  options: ConversationOptions,
  recent: Recent,
  { answered, startedMs, ...turn }: BegunTurn & { answered: Promise<Answered>; startedMs: number },
): Promise<TurnResult> {
  const { system, observe } = options;
  const { result, firstTextMs, said } = await answered;
  const stored = await completeTurn(options, turn, result);
  if (stored.kind === "completed") recent.keep(turn.conversation.id, said, stored, system.now());
  const firstTextSeconds = firstTextMs === null ? null : (firstTextMs - startedMs) / 1000;
  observe(stored, (system.monotonicMs() - startedMs) / 1000, firstTextSeconds);
  return stored;
}

/** A turn must end even if storage fails meanwhile; the next failed turn checks again. */
function ifAway(error: unknown): null {
  if (error instanceof StorageFailure) return null;
  throw error;
}

/** Stores how the turn ended, then publishes it; resolves to what its client reads. */
async function completeTurn(
  { store, bus, system, log }: ConversationOptions,
  { assistant, conversation, live }: BegunTurn,
  result: TurnResult,
): Promise<TurnResult> {
  const { turnId, endsConversation: ends } = live;
  try {
    const asks = live.asksForPerson
      ?? await askedByEnd(store, assistant, conversation, result, system.now()).catch(ifAway);
    const common = { turnId, conversation, asks, now: system.now() };
    bus.publishCommitted(result.kind === "completed"
      ? await store.completeTurn({
          ...common, text: result.text, functionCalls: result.functionCalls,
          stopped: result.stopped, truncated: result.truncated, usage: result.usage, ends,
        })
      : await store.failTurn({
          ...common, reason: result.reason, error: result.error, cause: result.cause,
        }));
    return result;
  } catch (error) {
    const closed = await closedByOthers(store, turnId, conversation).catch(ifAway);
    if (closed) return closed;
    log.error({ err: error, turn_id: turnId }, "could not store the end of a turn");
    const text = error instanceof StorageFailure
      ? "The server cannot store anything at the moment."
      : "Server error.";
    live.failUnstored(text);
    return { kind: "failed", reason: "failed", error: text, cause: null };
  }
}

/** How other nodes closed a turn, because this process stalled until they took it for dead. */
async function closedByOthers(
  store: ConversationStore, turnId: number, { id }: Conversation,
): Promise<TurnResult | null> {
  return await store.turnEnd(turnId) ?? (await store.isAnsweredElsewhere(id) ? LOST : null);
}

async function getConversation(store: ConversationStore, uuid: string): Promise<Conversation> {
  const conversation = await store.find(uuid);
  if (!conversation) throw conversationNotFound();
  return conversation;
}

/** Sends; a retry joins the send with the same key that is still in flight. */
function createSend(
  options: ConversationOptions,
  turns: Turns,
): Conversations["send"] {
  const underWay = new Map<string, { requestHash: string; sent: Promise<Sent> }>();
  return async ({ uuid, text, idempotencyKey, given = null, attachments = [], ...request }) => {
    const { draft = null } = request;
    const ids = attachments.map(({ id }) => `\n${id}`).join("");
    const requestHash = request.requestHash ?? hash("sha256", text + ids, "hex");
    const turn = { text, attachments, idempotencyKey, requestHash, given, draft };
    if (idempotencyKey === null) return beginTurn(options, turns, uuid, turn);
    const name = `${uuid} ${idempotencyKey}`;
    const first = underWay.get(name);
    if (first) {
      if (first.requestHash !== requestHash) throw keyReused(given);
      const sent = await first.sent;
      return sent.kind === "answering" ? { ...sent, replayed: true } : sent;
    }
    const sent = beginTurn(options, turns, uuid, turn);
    underWay.set(name, { requestHash, sent });
    const forget = (): void => void underWay.delete(name);
    sent.then((value) => {
      if (value.kind === "answering") void value.result.then(forget);
      else forget();
    }, forget);
    return sent;
  };
}

async function replyOf(
  options: ConversationOptions, turns: Turns, uuid: string,
): Promise<WrittenReply | null> {
  const conversation = await getConversation(options.store, uuid);
  await turns.starting.get(uuid);
  return turns.running.get(uuid)?.live
    ?? await askOthers(options, conversation, (all) => all.find(uuid));
}

/**
 * Asks other nodes only when one of them answers in the conversation. It may be unreachable or, if
 * it has just begun, not know the reply yet, so it is polled. Null: nobody answers.
 */
async function askOthers<Answer>(
  { store, others, system }: Pick<ConversationOptions, "store" | "others" | "system">,
  { id }: Conversation, ask: (others: OtherReplies) => Promise<Answer | null>,
): Promise<Answer | null> {
  const endMs = system.monotonicMs() + LIMITS.askMs;
  while (others && await store.isAnsweredElsewhere(id)) {
    const answer = await ask(others);
    if (answer !== null || system.monotonicMs() >= endMs) return answer;
    await wait(system, LIMITS.otherNodeLookMs);
  }
  return null;
}

/** Registers the running turn, and offers it to other nodes. */
function keepRunning(
  { others }: ConversationOptions, turns: Turns, uuid: string, running: Running,
): void {
  turns.running.set(uuid, running);
  void running.result.then(
    others?.offer(uuid, running.live, (turnId) => stopTurn(running, turnId)));
}

async function stopTurn({ live, result }: Running, turnId: number | null): Promise<boolean> {
  const isMeant = turnId === null || live.turnId === turnId;
  if (!isMeant || !live.stop()) return false;
  await result;
  return true;
}

async function recover({ store, bus, system, log }: ConversationOptions): Promise<void> {
  const events = await store.recover({ now: system.now() });
  bus.publishCommitted(events);
  if (events.length > 0) log.warn({ turns: events.length }, "closed the turns of a process that died");
}

export function createConversations(options: ConversationOptions): Conversations {
  const { store, bus, system } = options;
  const recent = createRecent(store);
  const turns: Turns = {
    recent,
    queue: createTurnQueue(system, {
      max: options.limits.turnsMax, waitingMax: LIMITS.turnsWaitingMax, waitMs: LIMITS.turnWaitMs,
    }),
    cover: createCovers(options.limits.messagePriceMicros),
    ask: createAsk({ ...options, recent }),
    starting: new Map(),
    running: new Map(),
    draining: false,
    interrupted: null,
    refusals: createRefusals(options),
    elsewhere: createElsewhere(options),
  };
  const { running } = turns;
  const get = (uuid: string): Promise<Conversation> => getConversation(store, uuid);

  return {
    create: (args) => createConversation({ ...options, refusals: turns.refusals }, args),
    get,
    hasOfVisitor: store.hasOfVisitor,
    history: async (uuid) => {
      const { id } = await get(uuid);
      const history = await store.history(id);
      // Read last: what the desk became since comes again with the events after the history.
      return { conversation: await get(uuid), ...history };
    },
    failedReplies: store.failedReplies,
    summary: async (accountId, uuid) => {
      const found = await store.summary(accountId, uuid);
      if (!found) throw conversationNotFound();
      return found;
    },
    list: store.list,
    send: createSend(options, turns),
    stop: async (uuid, turnId = null) => {
      const conversation = await get(uuid);
      await turns.starting.get(uuid);
      const turn = running.get(uuid);
      if (turn) return stopTurn(turn, turnId);
      return await askOthers(options, conversation, (others) => others.stop(uuid, turnId)) ?? false;
    },
    live: (uuid) => running.get(uuid)?.live ?? options.others?.live(uuid) ?? null,
    reply: (uuid) => replyOf(options, turns, uuid),
    sweep: async () => {
      const args = { now: system.now(), rows: LIMITS.inactivitySweepRowsMax };
      for (;;) {
        const { looked, events } = await store.endInactive(args);
        bus.publishCommitted(events);
        if (looked < args.rows) return;
      }
    },
    forgetQuiet: () => recent.forgetQuiet(system.now()),
    recover: () => recover(options),
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
