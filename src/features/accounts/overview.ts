// What an account spent and did over the last days, and how quickly it was answered. Read day by
// day with a turn of the event loop between, so that a big account does not hold up other people's
// replies. Called by overview-routes.ts.
import type { Micros } from "#core/money.ts";
import { DAY_MICROS, nextTurn, utcDay, type Instant, type System } from "#core/system.ts";

/** Instants; `to` is exclusive. */
interface Range {
  from: Instant;
  to: Instant;
}

export interface Spend {
  messages: Micros;
  calls: Micros;
  numbers: Micros;
  /** Taken by the operator. Money put in is no spend, so it is nowhere here. */
  other: Micros;
}

export interface DayFigures {
  spend: Spend;
  /** Begun on the day, with all messages they have by now. */
  conversations: number;
  messages: number;
  /** Begun on the day, by the status they have now; one row a status. */
  calls: { status: string; calls: number; answered: number; seconds: number }[];
}

const STAGES = [
  "endpointMs", "finalTranscriptMs", "firstTokenMs", "firstAudioMs", "heardMs",
] as const;
type Stage = (typeof STAGES)[number];
/** How long each stage of one reply in a call took, since the customer stopped speaking. */
export type TurnTimes = Record<Stage, number | null>;

export interface OverviewStore {
  /**
   * The account, its live calls and the figures of the range as of one moment, with the number of
   * the newest event that is in them. Null: no such account.
   */
  present(accountId: number, range: Range): Promise<{
    balanceMicros: Micros;
    reservedMicros: Micros;
    sequence: number;
    liveCalls: number;
    figures: DayFigures;
  } | null>;
  figures(accountId: number, range: Range): Promise<DayFigures>;
  /** The turns of each answered call begun in the range, newest call first, at most `calls`. */
  callTurns(accountId: number, range: Range, calls: number): Promise<TurnTimes[][]>;
  /** Conversations begun in the range, newest first, at most `rows`. */
  conversations(accountId: number, range: Range, rows: number): Promise<number[]>;
  /** Milliseconds from a user's message to its reply, of the conversation's newest messages. */
  replyTimes(conversationId: number, messages: number): Promise<number[]>;
}

/** Latency is that of the newest calls and conversations: so many at most are looked at. */
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
  /** `YYYY-MM-DD`, UTC. */
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
  /** Every day of the range, oldest first. */
  days: Day[];
  callLatency: CallLatency;
  replyLatency: ReplyLatency;
}

interface OverviewOptions {
  store: OverviewStore;
  system: System;
}

/** What a day is made of, beside its figures, until it is returned. */
interface Measured {
  range: Range;
  figures: DayFigures;
  turns: TurnTimes[];
  replies: number[];
}

/** Null: no such account. `days` counts today. */
export type ReadOverview = (accountId: number, days: number) => Promise<Overview | null>;

export function createOverview({ store, system }: OverviewOptions): ReadOverview {
  return async (accountId, days) => {
    const asOf = system.now();
    const today = dayOf(asOf);
    const present = await store.present(accountId, today);
    if (!present) return null;
    const measure = createMeasure(store, accountId);
    const measured: Measured[] = [await measure(today, present.figures)];
    // What belongs to days that are over hardly changes any more, so it need not be of one moment.
    for (let before = 1; before < days; before += 1) {
      await nextTurn();
      const range = earlier(today, before);
      measured.unshift(await measure(range, await store.figures(accountId, range)));
    }
    const shown: Day[] = [];
    for (const { range, figures, turns, replies } of measured) {
      shown.push({
        date: utcDay(range.from),
        ...figures,
        callLatency: await callLatencyOf(turns),
        replyLatency: replyLatencyOf(replies),
      });
    }
    const { balanceMicros, reservedMicros, sequence, liveCalls } = present;
    return {
      asOf, sequence, balanceMicros, reservedMicros, liveCalls,
      days: shown,
      callLatency: await callLatencyOf(measured.flatMap(({ turns }) => turns)),
      replyLatency: replyLatencyOf(measured.flatMap(({ replies }) => replies)),
    };
  };
}

const dayOf = (instant: Instant): Range => {
  const from = instant - (instant % DAY_MICROS);
  return { from, to: from + DAY_MICROS };
};

const earlier = ({ from, to }: Range, days: number): Range =>
  ({ from: from - days * DAY_MICROS, to: to - days * DAY_MICROS });

/** Adds a day's latencies, newest day first, until what may be looked at is used up. */
function createMeasure(store: OverviewStore, accountId: number) {
  let callsLeft = LATENCY_CALLS_MAX;
  let conversationsLeft = LATENCY_CONVERSATIONS_MAX;
  return async (range: Range, figures: DayFigures): Promise<Measured> => {
    const turns: TurnTimes[] = [];
    const replies: number[] = [];
    if (callsLeft > 0 && figures.calls.some(({ answered }) => answered > 0)) {
      await nextTurn();
      const calls = await store.callTurns(accountId, range, callsLeft);
      callsLeft -= calls.length;
      for (const call of calls) turns.push(...call);
    }
    if (conversationsLeft > 0 && figures.conversations > 0) {
      await nextTurn();
      const ids = await store.conversations(accountId, range, conversationsLeft);
      conversationsLeft -= ids.length;
      for (const id of ids) replies.push(...await store.replyTimes(id, LATENCY_MESSAGES_MAX));
    }
    return { range, figures, turns, replies };
  };
}

const MS_MAX = 2 ** 31 - 1;

/** Percentiles of whole milliseconds; null: no value is there. Missing values do not count. */
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
