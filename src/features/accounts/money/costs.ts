// What an account's money was spent on: by assistant, campaign, model, channel or day. Summed from
// aggregates of the ledger by quarter of an hour, which are updated a little after its entries, so
// that no charge waits for them. Called by costs-routes.ts and, by the clock, by app.ts.
import type { Micros } from "#core/money.ts";
import { nextTurn, type Instant } from "#core/system.ts";

/** In every time zone, days begin at a multiple of this. */
export const QUARTER_MICROS = 15 * 60_000_000;

export const COST_GROUPS = ["assistant", "campaign", "model", "channel", "kind", "day"] as const;
export type CostGroup = (typeof COST_GROUPS)[number];
/** The store groups by these; a day is the sum of everything in it. */
export type CostDimension = Exclude<CostGroup, "day">;

export interface CostDay {
  /** `YYYY-MM-DD`. */
  date: string;
  from: Instant;
  /** Exclusive. */
  to: Instant;
}

/** `key`: the id or word of the group within the dimension; 0 or empty: it belongs to none. */
export interface CostRow {
  key: number | string;
  micros: Micros;
  entries: number;
}

export interface CostStore {
  /**
   * Aggregates the account's next entries, at most `rows`, each exactly once even when processes
   * run concurrently; false: the ledger has no more.
   */
  count(accountId: number, rows: number): Promise<boolean>;
  /** Accounts with entries that are not aggregated yet, at most `rows`. */
  uncounted(rows: number): Promise<number[]>;
  sum(
    accountId: number, range: { from: Instant; to: Instant }, by: CostDimension,
  ): Promise<CostRow[]>;
  /** Names of assistants and campaigns, and of removed ones where still known. */
  names(
    accountId: number, by: "assistant" | "campaign", ids: number[],
  ): Promise<Map<number, { id: string; name: string }>>;
}

export interface CostGroupFound {
  /** Null: entries without a group, or all groups beyond the limit. */
  id: string | null;
  /** Null: the client names it. */
  name: string | null;
  isRest: boolean;
  micros: Micros;
  entries: number;
  /** One sum per day of the range. */
  byDay: Micros[];
}

interface CostReport {
  /** False: entries are still being aggregated, as after an upgrade. */
  isComplete: boolean;
  groups: CostGroupFound[];
}

const ROWS_PER_STEP = 500;
/** Steps taken before a report is answered; the clock aggregates the rest. */
const STEPS_BEFORE_ANSWER = 20;
const ACCOUNTS_PER_SWEEP = 1000;
export const COST_GROUPS_MAX = 50;

interface CostOptions {
  store: CostStore;
  /** Null: the model no longer exists. */
  modelName(id: number): string | null;
}

export interface Costs {
  report(accountId: number, days: CostDay[], by: CostGroup): Promise<CostReport>;
  /** Aggregates the account's newest entries, in as many steps as a request can wait for. */
  catchUp(accountId: number): Promise<void>;
  /** Aggregates the new entries of all accounts. */
  sweep(): Promise<void>;
}

export function createCosts({ store, modelName }: CostOptions): Costs {
  /** True: nothing is left to aggregate. */
  const catchUp = async (accountId: number): Promise<boolean> => {
    for (let step = 0; step < STEPS_BEFORE_ANSWER; step += 1) {
      if (!await store.count(accountId, ROWS_PER_STEP)) return true;
      await nextTurn();
    }
    return false;
  };
  return {
    report: async (accountId, days, by) => {
      const isComplete = await catchUp(accountId);
      const found = await sumDays(store, accountId, days, by);
      const kept = bounded(found, days.length);
      return { isComplete, groups: await named({ store, modelName }, accountId, by, kept) };
    },
    catchUp: async (accountId) => void await catchUp(accountId),
    sweep: async () => {
      for (const accountId of await store.uncounted(ACCOUNTS_PER_SWEEP)) {
        while (!await catchUp(accountId)) await nextTurn();
      }
    },
  };
}

interface Sum extends Omit<CostGroupFound, "id" | "name"> {
  key: number | string;
}

/** Sums day by day and yields to the event loop in between, as the overview does. */
async function sumDays(
  store: CostStore, accountId: number, days: CostDay[], by: CostGroup,
): Promise<Sum[]> {
  const sums = new Map<number | string, Sum>();
  for (const [at, { date, from, to }] of days.entries()) {
    const rows = await store.sum(accountId, { from, to }, by === "day" ? "kind" : by);
    for (const { key: found, micros, entries } of rows) {
      const key = by === "day" ? date : found;
      const sum = sums.get(key)
        ?? { key, isRest: false, micros: 0, entries: 0, byDay: days.map(() => 0) };
      sum.micros += micros;
      sum.entries += entries;
      sum.byDay[at] = (sum.byDay[at] ?? 0) + micros;
      sums.set(key, sum);
    }
    await nextTurn();
  }
  const found = [...sums.values()];
  return by === "day" ? found : found.sort(byDearest);
}

/** Ties are ordered by key, so that the order does not depend on the database. */
const byDearest = (a: Sum, b: Sum): number => b.micros - a.micros || (a.key < b.key ? -1 : 1);

/** Keeps the most expensive groups and merges the others into one. */
function bounded(sums: Sum[], days: number): Sum[] {
  if (sums.length <= Math.max(COST_GROUPS_MAX, days)) return sums;
  const rest: Sum = {
    key: 0, isRest: true, micros: 0, entries: 0, byDay: Array.from({ length: days }, () => 0),
  };
  for (const { micros, entries, byDay } of sums.slice(COST_GROUPS_MAX)) {
    rest.micros += micros;
    rest.entries += entries;
    for (const [at, one] of byDay.entries()) rest.byDay[at] = (rest.byDay[at] ?? 0) + one;
  }
  return [...sums.slice(0, COST_GROUPS_MAX), rest];
}

async function named(
  { store, modelName }: CostOptions, accountId: number, by: CostGroup, sums: Sum[],
): Promise<CostGroupFound[]> {
  const ids = sums.flatMap(({ key }) => (typeof key === "number" && key !== 0 ? [key] : []));
  const names = by === "assistant" || by === "campaign"
    ? await store.names(accountId, by, ids)
    : new Map<number, { id: string; name: string }>();
  return sums.map(({ key, ...sum }) => {
    if (sum.isRest || key === 0 || key === "") return { id: null, name: null, ...sum };
    const known = typeof key === "number" ? names.get(key) : undefined;
    if (known) return { ...known, ...sum };
    const name = by === "model" ? modelName(Number(key)) : null;
    return { id: String(key), name, ...sum };
  });
}
