// What an account spent and did in a range of days, and how quickly its replies came. Read hour by
// hour, day by day or week by week, yielding to the event loop in between, so that a big account
// does not delay other accounts' replies. Called by routes.ts.
import type { Micros } from "#core/money.ts";
import { nextTurn, type Instant, type System } from "#core/system.ts";
import { bucketsOf, type Asked, type Bucket } from "./range.ts";

/** `to` is exclusive. `assistantId` null: all assistants. */
export interface OverviewScope {
  accountId: number;
  assistantId: number | null;
  from: Instant;
  to: Instant;
}

/** What was charged then; for one assistant, what its conversations and calls begun then cost. */
export interface Spend {
  messages: Micros;
  calls: Micros;
  numbers: Micros;
  /** Taken by the operator. Top-ups are not spend, so they are not included anywhere. */
  other: Micros;
}

export interface DayFigures {
  spend: Spend;
  /** Conversations begun in the range; `messages` counts all that they have by now. */
  conversations: number;
  messages: number;
  /** Calls begun in the range, one row per current status. */
  calls: { status: string; calls: number; answered: number; seconds: number }[];
}

const STAGES = [
  "endpointMs", "finalTranscriptMs", "firstTokenMs", "firstAudioMs", "heardMs",
] as const;
type Stage = (typeof STAGES)[number];
/** When each stage of one reply in a call was reached, counted from when the caller fell silent. */
export type TurnTimes = Record<Stage, number | null>;

export interface OverviewStore {
  /**
   * The account, its live calls and the figures of the range from one snapshot, with the number of
   * the newest event that they include. Null: no such account.
   */
  present(scope: OverviewScope): Promise<{
    balanceMicros: Micros;
    reservedMicros: Micros;
    sequence: number;
    liveCalls: number;
    figures: DayFigures;
  } | null>;
  figures(scope: OverviewScope): Promise<DayFigures>;
  /** The turns of each answered call begun in the range, newest call first, at most `calls`. */
  callTurns(scope: OverviewScope, calls: number): Promise<TurnTimes[][]>;
  /** Conversations begun in the range, newest first, at most `rows`. */
  conversations(scope: OverviewScope, rows: number): Promise<number[]>;
  /** Milliseconds from a user's message to its reply, of the conversation's newest messages. */
  replyTimes(conversationId: number, messages: number): Promise<number[]>;
}

/** Latency is measured over the newest calls and conversations, at most this many. */
export const LATENCY_CALLS_MAX = 2000;
export const LATENCY_CONVERSATIONS_MAX = 200;
const LATENCY_MESSAGES_MAX = 40;

/** Whole milliseconds, to the nearest rank. */
interface Percentiles {
  p50: number;
  p95: number;
}
export interface CallLatency {
  turns: number;
  stages: Record<Stage, Percentiles | null>;
}
export interface ReplyLatency {
  replies: number;
  replyMs: Percentiles | null;
}

export interface Day extends DayFigures {
  /** As in Bucket. */
  date: string;
  callLatency: CallLatency;
  replyLatency: ReplyLatency;
}

export interface Overview {
  asOf: Instant;
  sequence: number;
  balanceMicros: Micros;
  reservedMicros: Micros;
  liveCalls: number;
  /** Every hour, day or week of the range, oldest first. */
  days: Day[];
  callLatency: CallLatency;
  replyLatency: ReplyLatency;
}

interface OverviewOptions {
  store: OverviewStore;
  system: System;
}

/** One bucket's figures and raw latencies, before percentiles are computed. */
interface Measured {
  date: string;
  figures: DayFigures;
  turns: TurnTimes[];
  replies: number[];
}

/** Null: no such account. */
export type ReadOverview = (accountId: number, asked: Asked) => Promise<Overview | null>;

/** Hours read concurrently: one day's worth. */
const HOURS_AT_ONCE = 24;

export function createOverview({ store, system }: OverviewOptions): ReadOverview {
  return async (accountId, asked) => {
    const asOf = system.now();
    const buckets = bucketsOf(asked);
    const scopeOf = ({ from, to }: Bucket): OverviewScope =>
      ({ accountId, assistantId: asked.assistantId, from, to });
    const last = buckets.pop();
    const present = last && await store.present(scopeOf(last));
    if (!present) return null;
    const measure = createMeasure(store);
    const measured: Measured[] = [
      { date: last.date, ...await measure(scopeOf(last), present.figures) },
    ];
    // Figures of past days hardly change any more, so they need not come from one snapshot.
    const atOnce = asked.by === "hour" ? HOURS_AT_ONCE : 1;
    while (buckets.length > 0) {
      await nextTurn();
      const some = buckets.splice(-atOnce).toReversed();
      const read = await Promise.all(some.map((bucket) => store.figures(scopeOf(bucket))));
      const newestFirst = await Promise.all(read.map(async (figures, index) => {
        const bucket = some[index] as Bucket;
        return { date: bucket.date, ...await measure(scopeOf(bucket), figures) };
      }));
      measured.unshift(...newestFirst.toReversed());
    }
    return { asOf, ...present, ...await shownOf(measured) };
  };
}

async function shownOf(
  measured: Measured[],
): Promise<Pick<Overview, "days" | "callLatency" | "replyLatency">> {
  const days: Day[] = [];
  for (const { date, figures, turns, replies } of measured) {
    days.push({
      date,
      ...figures,
      callLatency: await callLatencyOf(turns),
      replyLatency: replyLatencyOf(replies),
    });
  }
  return {
    days,
    callLatency: await callLatencyOf(measured.flatMap(({ turns }) => turns)),
    replyLatency: replyLatencyOf(measured.flatMap(({ replies }) => replies)),
  };
}

/**
 * Adds a bucket's latencies, newest first, until the budget of calls and conversations is used up.
 * A bucket's share follows from its figures before anything is read, so several run concurrently.
 */
function createMeasure(store: OverviewStore) {
  let callsLeft = LATENCY_CALLS_MAX;
  let conversationsLeft = LATENCY_CONVERSATIONS_MAX;
  return async (scope: OverviewScope, figures: DayFigures): Promise<Omit<Measured, "date">> => {
    const answered = figures.calls.reduce((sum, one) => sum + one.answered, 0);
    const calls = Math.min(callsLeft, answered);
    const conversations = Math.min(conversationsLeft, figures.conversations);
    callsLeft -= calls;
    conversationsLeft -= conversations;
    const turns: TurnTimes[] = [];
    const replies: number[] = [];
    if (calls > 0) {
      await nextTurn();
      for (const call of await store.callTurns(scope, calls)) turns.push(...call);
    }
    if (conversations > 0) {
      await nextTurn();
      const ids = await store.conversations(scope, conversations);
      const times = await Promise.all(
        ids.map((id) => store.replyTimes(id, LATENCY_MESSAGES_MAX)));
      replies.push(...times.flat());
    }
    return { figures, turns, replies };
  };
}

const MS_MAX = 2 ** 31 - 1;

/** Percentiles of whole milliseconds; null values are ignored. Null: there is no value. */
export function percentilesOf(values: readonly (number | null)[]): Percentiles | null {
  // An array of integers sorts more than twice as fast as one of doubles.
  const sorted = new Int32Array(values.length);
  let count = 0;
  for (const value of values) {
    if (value !== null) sorted[count++] = Math.min(Math.round(value), MS_MAX);
  }
  const known = sorted.subarray(0, count).sort();
  const rank = (share: number): number => known[Math.ceil(count * share) - 1] ?? 0;
  return count === 0 ? null : { p50: rank(0.5), p95: rank(0.95) };
}

async function callLatencyOf(turns: readonly TurnTimes[]): Promise<CallLatency> {
  const stages: Partial<CallLatency["stages"]> = {};
  for (const stage of STAGES) {
    if (turns.length > 0) await nextTurn();
    stages[stage] = percentilesOf(turns.map((turn) => turn[stage]));
  }
  return { turns: turns.length, stages: stages as CallLatency["stages"] };
}

const replyLatencyOf = (replies: readonly number[]): ReplyLatency =>
  ({ replies: replies.length, replyMs: percentilesOf(replies) });
