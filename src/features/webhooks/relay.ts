// Sends the outbox's messages: one at a time and in order to each endpoint, to many endpoints
// concurrently. A message that is not accepted is retried, and those behind it wait, until it is
// accepted or dead. The result of an attempt is on disk before the next begins, so a crash repeats
// at most one message per endpoint.
import type { Logger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import { createLooks } from "#core/looks.ts";
import type { Instant, System, Timer } from "#core/system.ts";
import { createPlaces } from "#core/turns.ts";
import type { Cluster } from "#cluster/cluster.ts";
import type { Outbound, OutboundReply } from "#outbound/request.ts";
import { retryAfterMs } from "#outbound/retry-after.ts";
import { couldNotBeReached, mayNotBeCalled } from "#outbound/unreachable.ts";
import { completed, withFiles, withRecordings } from "./payloads.ts";
import {
  signatureHeaders, type Attempt, type Delivery, type Endpoint, type Head, type WebhookStore,
} from "./webhooks.ts";

interface RelayOptions {
  store: WebhookStore;
  /** One node at a time owns an endpoint, so that its messages keep their order. */
  node: Pick<Cluster, "nodeId" | "holds">;
  /** Tells another node that it has something to send; the message may be lost. */
  wakeOther(nodeId: number, endpointId: number): void;
  outbound: Outbound;
  signingSecrets(endpoint: Endpoint): string[];
  /** The API as receivers reach it. */
  apiUrl(): string;
  recordingUrl(file: string, apiUrl: string): string;
  /** The values that a conversation's evaluation found; null: the server stops before that. */
  evaluationOf(conversationUuid: string): Promise<Record<string, unknown> | null>;
  /** Seconds until the second, third … attempt; after the last one a message is given up. */
  retrySeconds: number[];
  /** The timeout of an attempt. */
  attemptMs: number;
  /** False: the clock was set recently, so no endpoint may be disabled by elapsed time. */
  isClockEven(): boolean;
  /** Most attempts in flight, over all endpoints; see `createPlaces` for those of one account. */
  atOnceMax: number;
  observe(outcome: Attempt["outcome"], seconds: number): void;
  system: System;
  log: Logger;
}

interface Relay {
  /** Resumes messages that wait from before the start. */
  start(): void;
  /** Something was written for the endpoint; null: for any endpoint. */
  wake(endpointId: number | null): void;
  /** Finds messages that other nodes wrote, or that dead ones left behind. */
  look(): void;
  /** Begins no more attempts; resolves once those in flight are recorded or aborted. */
  close(): Promise<void>;
}

const MICROS = 1_000_000;

interface Loop {
  /** Fires when the message at the head may be retried. */
  timer: Timer | null;
  isRunning: boolean;
  /** Woken while it ran, so what it read may be stale. */
  isAsked: boolean;
}

export function createRelay(options: RelayOptions): Relay {
  const { store, system, log } = options;
  const loops = new Map<number, Loop>();
  const working = new Set<Promise<void>>();
  let [newestId, isClosing] = [0, false];
  const leaving = new AbortController();

  const isOver = (): boolean => isClosing || !options.node.holds();
  const { isOurs, send } = createSending(options, isOver, leaving.signal);
  /** Sends all that is due at an endpoint; false: nothing waits for it on this node. */
  const drain = async (endpointId: number, loop: Loop): Promise<boolean> => {
    while (!isOver()) {
      const head = await store.head(endpointId);
      if (isOver()) return true;
      if (!head || !await isOurs(head)) return false;
      const waitMs = waitMsOf(head.delivery, options);
      if (waitMs > 0) {
        loop.timer = system.after(waitMs, () => begin(endpointId));
        return true;
      }
      if (!await send(head)) return true;
    }
    return true;
  };
  const run = async (endpointId: number, loop: Loop): Promise<void> => {
    loop.isRunning = true;
    try {
      let waits = true;
      do {
        loop.timer?.cancel();
        loop.timer = null;
        loop.isAsked = false;
        waits = await drain(endpointId, loop);
      } while (loop.isAsked && !isClosing);
      if (!waits) loops.delete(endpointId);
    } catch (error) {
      loops.delete(endpointId);
      if (leaving.signal.aborted) return;
      // The disk has failed: nothing may be sent whose result cannot be recorded.
      log.error({ err: error, endpoint_id: endpointId }, "delivery to a webhook endpoint has stopped");
    } finally {
      loop.isRunning = false;
    }
  };
  const begin = (endpointId: number): void => {
    const loop = loops.get(endpointId) ?? { timer: null, isRunning: false, isAsked: false };
    loop.isAsked = true;
    if (isClosing || loop.isRunning) return;
    loops.set(endpointId, loop);
    const work = run(endpointId, loop).finally(() => working.delete(work));
    working.add(work);
  };
  const look = async (): Promise<void> => {
    if (isClosing) return;
    const { endpointIds, newestId: newest } = await store.waiting(newestId);
    newestId = newest;
    // An endpoint that waits for a retry has a timer.
    for (const endpointId of endpointIds) if (!loops.get(endpointId)?.timer) begin(endpointId);
  };
  const looks = createLooks(look, log, "reading the webhook queue");
  return {
    start: looks.ask,
    look: () => {
      newestId = 0;
      looks.ask();
    },
    wake: (endpointId) => (endpointId === null ? looks.ask() : begin(endpointId)),
    close: async () => {
      isClosing = true;
      for (const { timer } of loops.values()) timer?.cancel();
      await looks.settled().then(() => ended(working, leaving, system));
    },
  };
}

/** Waits, then aborts late attempts; the next start repeats their messages with the same id. */
async function ended(
  working: ReadonlySet<Promise<void>>, leaving: AbortController, system: System,
): Promise<void> {
  const late = system.after(LIMITS.answersMs, () => leaving.abort());
  await Promise.all(working);
  late.cancel();
}

function createSending(options: RelayOptions, isOver: () => boolean, signal: AbortSignal) {
  const { store, node: { nodeId }, wakeOther, system } = options;
  const places = createPlaces(options.atOnceMax);
  /** Whether this node owns the endpoint; otherwise it wakes the node that does. */
  const isOurs = async ({ delivery, endpoint, ownerId }: Head): Promise<boolean> => {
    const { id: endpointId, accountId } = endpoint;
    if (ownerId === nodeId) return true;
    const owner = ownerId ?? await store.take({ accountId, endpointId });
    if (owner !== nodeId && delivery.nextAt <= system.now()) wakeOther(owner, endpointId);
    return owner === nodeId;
  };
  /** Reads the head again: it may have been removed or changed while it waited its turn. */
  const sendHead = async (endpointId: number): Promise<void> => {
    const head = isOver() ? null : await store.head(endpointId);
    if (!head || isUnprepared(head.delivery) || !await isOurs(head) || isOver()) return;
    await attempt(options, head, signal);
  };
  return {
    isOurs,
    /** True: the next message may follow. False: nothing more can be sent before the next start. */
    send: async ({ delivery, endpoint }: Head): Promise<boolean> => {
      if (isUnprepared(delivery)) return prepare(options, delivery);
      await places.take(endpoint.accountId, () => sendHead(endpoint.id));
      return true;
    },
  };
}

async function attempt(
  options: RelayOptions, { delivery, endpoint }: Head, signal: AbortSignal,
): Promise<void> {
  const { store, system } = options;
  const startedMs = system.monotonicMs();
  const body = withLinks(options, delivery, endpoint);
  const reply = await options.outbound.request({
    url: endpoint.url,
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...signatureHeaders(
        delivery.messageId, body, options.signingSecrets(endpoint), system.now()),
    },
    body,
    totalMs: options.attemptMs,
    bytesMax: LIMITS.webhookResponseBytesMax,
    isCut: true,
  }, signal);
  const result = judge(options, delivery, endpoint, reply);
  await store.record(result);
  if (result.disables !== null) await giveUp(options, endpoint);
  options.observe(result.outcome, (system.monotonicMs() - startedMs) / 1000);
}

/** In steps: after days of failure so many may wait that others' writes would wait for one. */
async function giveUp(
  { store, system }: RelayOptions, { accountId, id: endpointId }: Endpoint,
): Promise<void> {
  const rows = LIMITS.deliveriesPerWrite;
  const some = () => store.giveUp({ accountId, endpointId, rows, now: system.now() });
  while (await some() === rows);
}

type Unprepared = Delivery & { conversationUuid: string };

const isUnprepared = (delivery: Delivery): delivery is Unprepared =>
  delivery.needsEvaluation && delivery.conversationUuid !== null;

/**
 * Adds the model's values to the body and stores it, so that every attempt sends the same. False:
 * it cannot be completed before the next start.
 */
async function prepare(
  { store, evaluationOf }: RelayOptions,
  { id: deliveryId, accountId, conversationUuid, body: before }: Unprepared,
): Promise<boolean> {
  const values = await evaluationOf(conversationUuid);
  if (values === null) return false;
  const body = completed(before, { extracted_variables: values });
  await store.prepared({ accountId, deliveryId, body });
  return true;
}

/** Links are not stored, because they contain the server's address, or expire. */
function withLinks(
  { apiUrl, recordingUrl }: RelayOptions,
  { conversationUuid, recordingFile, body }: Delivery, { purpose }: Endpoint,
): string {
  if (purpose === "conversation_ended" && conversationUuid !== null) {
    return withFiles(body, `${apiUrl()}/conversations/${conversationUuid}/attachments`);
  }
  if (recordingFile === null) return body;
  return withRecordings(body, recordingFile, (file) => recordingUrl(file, apiUrl()));
}

const asksForPatience = (status: number | null): boolean => status === 429 || status === 503;

/**
 * Milliseconds until the message is checked again; 0: it is due, as is one that was postponed
 * before the clock was set back.
 */
function waitMsOf(
  { attempts, nextAt, lastStatus }: Delivery, { retrySeconds, system }: RelayOptions,
): number {
  const waitMs = Math.ceil((nextAt - system.now()) / 1000);
  const askedS = asksForPatience(lastStatus) ? LIMITS.webhookRetryAfterSMax : 0;
  const longestS = Math.max((retrySeconds[attempts - 1] ?? 0) * JITTER_MAX, askedS);
  if (waitMs > longestS * 1000 + 1) return 0;
  // Bounded, so that it is checked again: machines sleep, and their clocks are set.
  return Math.min(waitMs, LIMITS.webhookWaitLookMs);
}

const GONE = 410;
/** Up to a tenth more, so that messages that failed together are not retried together. */
const JITTER_MAX = 1.1;

/** The beginning of the answer; compression was not requested, so it is not decoded. */
function wordsOf({ headers, body }: Extract<OutboundReply, { kind: "reply" }>): string {
  const coding = headers["content-encoding"] ?? "identity";
  return /^identity$/i.test(coding)
    ? body.toString("utf8", 0, LIMITS.webhookResponseCharsMax).toWellFormed()
    : `(${body.length} bytes, compressed as ${coding.slice(0, 32)})`;
}

function judge(
  { retrySeconds, isClockEven, system }: RelayOptions,
  delivery: Delivery,
  endpoint: Endpoint,
  reply: OutboundReply,
): Attempt {
  const now = system.now();
  // Called on every attempt, so that it notices every time the clock was set.
  const isEven = isClockEven();
  const status = reply.kind === "reply" ? reply.status : null;
  const response = reply.kind === "reply" ? wordsOf(reply) : null;
  const { id: deliveryId, accountId } = delivery;
  const base = {
    accountId, deliveryId, endpoint, status, response, disables: null, now, nextAt: now,
  };
  if (status !== null && status >= 200 && status < 300) {
    return { ...base, outcome: "delivered", error: null };
  }
  const error = errorOf(reply);
  if (status === GONE) {
    return { ...base, outcome: "dead", error, disables: "the receiver answered 410 Gone" };
  }
  const failingMicros = isEven ? now - (endpoint.failingSince ?? now) : 0;
  if (failingMicros > LIMITS.webhookFailingMs * 1000) {
    return { ...base, outcome: "dead", error, disables: "every delivery failed for days" };
  }
  const seconds = retrySeconds[delivery.attempts];
  if (seconds === undefined) return { ...base, outcome: "dead", error };
  const jitter = 1 + (JITTER_MAX - 1) * system.randomBytes(1).readUInt8(0) / 255;
  const waitS = Math.max(seconds * jitter, retryAfterS(reply, now));
  return { ...base, outcome: "retry", error, nextAt: now + Math.round(waitS * MICROS) };
}

function errorOf(reply: OutboundReply): string {
  switch (reply.kind) {
    case "reply":
      return `the receiver answered ${reply.status}`;
    case "refused":
      return mayNotBeCalled("the receiver", reply.reason);
    case "failed":
      return reply.reason === "timeout"
        ? "the receiver did not answer in time"
        : couldNotBeReached("the receiver", reply.why);
  }
}

/** Retry-After is respected only with status 429 and 503. */
function retryAfterS(reply: OutboundReply, now: Instant): number {
  if (reply.kind !== "reply" || !asksForPatience(reply.status)) return 0;
  const seconds = (retryAfterMs(reply.headers["retry-after"] ?? "", now / 1000) ?? 0) / 1000;
  return Math.min(seconds, LIMITS.webhookRetryAfterSMax);
}
