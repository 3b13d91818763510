// What an account's money went to: by assistant, campaign, model, channel or day. Summed from
// counts of the ledger by quarter of an hour, which are made a little later than its entries, so
// that no charge waits for them. Called by costs-routes.ts and, by the clock, by app.ts.
import type { Micros } from "#core/money.ts";
import { nextTurn, type Instant } from "#core/system.ts";

/** Every time zone's days begin at one. */
export const QUARTER_MICROS = 15 * 60_000_000;

export const COST_GROUPS = ["assistant", "campaign", "model", "channel", "kind", "day"] as const;
export type CostGroup = (typeof COST_GROUPS)[number];
/** Days are summed whole, whatever they are of. */
export type CostDimension = Exclude<CostGroup, "day">;

export interface CostDay {
  /** `YYYY-MM-DD`. */
  date: string;
  from: Instant;
  /** Exclusive. */
  to: Instant;
}

/** `key`: a number of the dimension's things, or its word; 0 and empty: none. */
export interface CostRow {
  key: number | string;
  micros: Micros;
  entries: number;
}

export interface CostStore {
  /**
   * Counts the account's next entries, at most `rows`, each once whoever else counts; false: the
   * ledger has no more.
   */
  count(accountId: number, rows: number): Promise<boolean>;
  /** Accounts with entries that are not counted, at most `rows`. */
  uncounted(rows: number): Promise<number[]>;
  sum(
    accountId: number, range: { from: Instant; to: Instant }, by: CostDimension,
  ): Promise<CostRow[]>;
  /** What assistants and campaigns are called, also those removed where that is still known. */
  names(
    accountId: number, by: "assistant" | "campaign", ids: number[],
  ): Promise<Map<number, { id: string; name: string }>>;
}

export interface CostGroupFound {
  /** Null: what belongs to none, or all the groups beyond the bound. */
  id: string | null;
  /** Null: what it is called is for who shows it. */
  name: string | null;
  isRest: boolean;
  micros: Micros;
  entries: number;
  /** One sum for each day. */
  byDay: Micros[];
}

interface CostReport {
  /** False: entries are still being counted, as after an update. */
  isComplete: boolean;
  groups: CostGroupFound[];
}

const ROWS_PER_STEP = 500;
/** Steps taken before an answer; what is left is counted by the clock. */
const STEPS_BEFORE_ANSWER = 20;
const ACCOUNTS_PER_SWEEP = 1000;
export const COST_GROUPS_MAX = 50;

interface CostOptions {
  store: CostStore;
  /** Null: there is no such model any more. */
  modelName(id: number): string | null;
}

export interface Costs {
  report(accountId: number, days: CostDay[], by: CostGroup): Promise<CostReport>;
  /** Counts the account's newest entries, as far as an answer can wait for it. */
  catchUp(accountId: number): Promise<void>;
  /** Counts what came since. */
  sweep(): Promise<void>;
}

export function createCosts({ store, modelName }: CostOptions): Costs {
  /** Whether nothing is left. */
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

/** Day by day with a turn of the event loop between, as the overview is read. */
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

/** Equal sums in one order, whatever order the database found them in. */
const byDearest = (a: Sum, b: Sum): number => b.micros - a.micros || (a.key < b.key ? -1 : 1);

/** The dearest groups; the others as one. A day is no group among others. */
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
