// How long an account's balance lasts, and who is notified when it runs low. The ledger detects
// that a threshold is crossed, in the transaction of the entry (storage/accounts/balance.ts).
// Called by balance-routes.ts, routes.ts and balance-mails.ts.
import type { Micros } from "#core/money.ts";
import type { Instant, System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import { QUARTER_MICROS } from "./costs.ts";

export const ALERTS_MAX = 5;
/** Longer than sending is retried. When a claim's process has died, the next one sends the mail. */
export const MAIL_CLAIM_MICROS = 10 * 60_000_000;
/** An older mail is no longer worth sending. */
export const MAIL_NEWS_MICROS = 3 * DAY_MICROS;

export interface BalanceAlerts {
  /** The highest first. */
  amountsMicros: Micros[];
  emails: string[];
}

/** One mail to one address; it keeps its id over all retries. */
export interface BalanceMail {
  id: number;
  accountId: number;
  thresholdMicros: Micros;
  balanceMicros: Micros;
  address: string;
}

export interface BalanceStore {
  /** Null: no such account. `spentMicros`: spent after `since`, without what the operator took. */
  read(accountId: number, since: Instant): Promise<{
    balanceMicros: Micros; reservedMicros: Micros; createdAt: Instant; spentMicros: Micros;
  } | null>;
  alerts(accountId: number): Promise<BalanceAlerts>;
  setAlerts(args: BalanceAlerts & { accountId: number }): Promise<void>;
  /** Unsent mails of all accounts, at most `rows`. */
  dueMails(args: { now: Instant; since: Instant; rows: number }): Promise<BalanceMail[]>;
  /** Leases the mail until `until`; false: it is sent, or another process holds the lease. */
  claimMail(
    args: { accountId: number; id: number; now: Instant; until: Instant },
  ): Promise<boolean>;
  /** Forgets the mail. */
  mailSent(args: { accountId: number; id: number }): Promise<void>;
}

/** The next threshold that a falling balance reaches; null: it is at or below them all. */
export const nextAlert = (amountsMicros: readonly Micros[], balanceMicros: Micros): Micros | null =>
  amountsMicros.filter((amount) => amount < balanceMicros).sort((a, b) => b - a)[0] ?? null;

/** Thresholds that a falling balance reached or passed, in the order it met them. */
export const crossedAlerts = (
  amountsMicros: readonly Micros[], beforeMicros: Micros, balanceMicros: Micros,
): Micros[] => amountsMicros
  .filter((amount) => amount < beforeMicros && amount >= balanceMicros).sort((a, b) => b - a);

const PACE_DAYS = 7;
/** A balance that lasts no longer is low. */
const LOW_DAYS = 3;
/** A forecast further ahead than this means nothing. */
const LASTS_DAYS_MAX = 3650;

type BalanceState = "ok" | "low" | "empty";

export interface Outlook {
  balanceMicros: Micros;
  reservedMicros: Micros;
  /** The average of the last seven days, or of the days since the account was opened. */
  perDayMicros: Micros;
  /** Null: nothing is spent, or it lasts for years. */
  lastsUntil: Instant | null;
  /** `empty`: not enough for the cheaper of one message and the shortest call. */
  state: BalanceState;
}

interface BalanceOptions {
  store: BalanceStore;
  /** 0: not billed. */
  prices: { messageMicros: Micros; callMinuteMicros: Micros };
  system: System;
}

export interface Balance {
  /** Null: no such account. */
  outlook(accountId: number): Promise<Outlook | null>;
  alerts(accountId: number): Promise<BalanceAlerts>;
  setAlerts(accountId: number, alerts: BalanceAlerts): Promise<BalanceAlerts>;
}

export function createBalance({ store, prices, system }: BalanceOptions): Balance {
  const { messageMicros, callMinuteMicros } = prices;
  const billed = [messageMicros, Math.ceil(callMinuteMicros / 2)].filter((price) => price > 0);
  const leastMicros = billed.length === 0 ? null : Math.min(...billed);
  return {
    outlook: async (accountId) => {
      const now = system.now();
      const paceFrom = now - PACE_DAYS * DAY_MICROS;
      const since = paceFrom - (paceFrom % QUARTER_MICROS);
      const found = await store.read(accountId, since);
      if (!found) return null;
      const { balanceMicros, reservedMicros, createdAt, spentMicros } = found;
      const days = Math.min(PACE_DAYS, Math.max(1, (now - createdAt) / DAY_MICROS));
      const perDayMicros = Math.round(spentMicros / days);
      const lastsDays = perDayMicros > 0 ? Math.max(0, balanceMicros) / perDayMicros : Infinity;
      const lastsMicros = Math.floor(Math.min(lastsDays, LASTS_DAYS_MAX) * DAY_MICROS);
      const lastsUntil = lastsDays > LASTS_DAYS_MAX ? null : now + lastsMicros;
      const isEmpty = leastMicros !== null && balanceMicros < leastMicros;
      const isLow = leastMicros !== null && lastsDays <= LOW_DAYS;
      return {
        balanceMicros, reservedMicros, perDayMicros, lastsUntil,
        state: isEmpty ? "empty" : isLow ? "low" : "ok",
      };
    },
    alerts: store.alerts,
    setAlerts: async (accountId, { amountsMicros, emails }) => {
      const alerts = {
        amountsMicros: [...new Set(amountsMicros)].sort((a, b) => b - a),
        emails: [...new Set(emails)],
      };
      await store.setAlerts({ accountId, ...alerts });
      return alerts;
    },
  };
}
