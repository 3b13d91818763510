// Balances that run low: the ledger's step that notices it, the alert mails, and the payment
// sessions that were opened. Rules: features/accounts/money/balance.ts and top-ups.ts.
import {
  crossedAlerts, MAIL_CLAIM_MICROS, MAIL_NEWS_MICROS, nextAlert,
  type BalanceAlerts, type BalanceStore,
} from "#features/accounts/money/balance.ts";
import type { TopUpStore } from "#features/accounts/money/top-ups.ts";
import { dollarsFromMicros, type Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createAccountAppender } from "#storage/events.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

interface AlertsRow {
  amounts: string;
  emails: string;
}

const alertsFromRow = (row: AlertsRow | undefined): BalanceAlerts => ({
  amountsMicros: row ? (JSON.parse(row.amounts) as Micros[]) : [],
  emails: row ? (JSON.parse(row.emails) as string[]) : [],
});

const ALERTS = "SELECT amounts, emails FROM balance_alerts WHERE account_id = @accountId";
const ARM = "UPDATE accounts SET alert_micros = @alertMicros WHERE id = @accountId";

/**
 * Earlier versions kept the mails they had sent. A claim that ends later than one made now would
 * end was made before the clock was set back.
 */
const IS_FREE = "sent_at IS NULL AND (next_at <= @now OR next_at > @until)";

interface Moved {
  accountId: number;
  beforeMicros: Micros;
  balanceMicros: Micros;
  now: Instant;
}

/**
 * Called for entries that reach the armed amount, or put money in: appends an event for each
 * threshold crossed.
 */
export function createBalanceWatch(sql: Sql): (moved: Moved) => Promise<CommittedEvent[]> {
  const read = sql.prepare<object, AlertsRow>(ALERTS);
  const arm = sql.prepare(ARM);
  const forgetOld = sql.prepare(
    "DELETE FROM balance_mails WHERE account_id = @accountId AND created_at < @before");
  const insertMail = sql.prepare(`
    INSERT INTO balance_mails (account_id, threshold_micros, balance_micros, address, next_at,
      created_at)
    VALUES (@accountId, @thresholdMicros, @balanceMicros, @address, @now, @now)`);
  const append = createAccountAppender(sql);
  return async ({ accountId, beforeMicros, balanceMicros, now }) => {
    const row = await read.get({ accountId });
    if (!row) return [];
    const { amountsMicros, emails } = alertsFromRow(row);
    await arm.run({ accountId, alertMicros: nextAlert(amountsMicros, balanceMicros) });
    await forgetOld.run({ accountId, before: now - MAIL_NEWS_MICROS });
    const events: CommittedEvent[] = [];
    for (const thresholdMicros of crossedAlerts(amountsMicros, beforeMicros, balanceMicros)) {
      events.push(await append(accountId, {
        type: "balance_low", balance: dollarsFromMicros(balanceMicros),
        threshold: dollarsFromMicros(thresholdMicros),
      }, now));
      for (const address of emails) {
        await insertMail.run({ accountId, thresholdMicros, balanceMicros, address, now });
      }
    }
    return events;
  };
}

type Args<Name extends keyof BalanceStore> = Parameters<BalanceStore[Name]>[0];

export function balanceCommands(sql: Sql) {
  const save = sql.prepare(`
    INSERT INTO balance_alerts (account_id, amounts, emails)
    VALUES (@accountId, @amounts, @emails)
    ON CONFLICT (account_id) DO UPDATE SET amounts = excluded.amounts, emails = excluded.emails`);
  const balance = sql.prepare<object, { balance_micros: number }>(
    "SELECT balance_micros FROM accounts WHERE id = @accountId");
  const arm = sql.prepare(ARM);
  const claim = sql.prepare(`
    UPDATE balance_mails SET next_at = @until
    WHERE id = @id AND account_id = @accountId AND ${IS_FREE}`);
  const sent = sql.prepare(
    "DELETE FROM balance_mails WHERE id = @id AND account_id = @accountId");
  const addTopUp = sql.prepare(`
    INSERT INTO top_ups (session_id, account_id, amount_micros, created_at)
    VALUES (@sessionId, @accountId, @amountMicros, @now)
    ON CONFLICT (session_id) DO NOTHING`);
  return {
    "balance.setAlerts": async (args: Args<"setAlerts">): Promise<void> => {
      const { accountId, amountsMicros, emails } = args;
      const row = await balance.get({ accountId });
      if (!row) return;
      await save.run({
        accountId, amounts: JSON.stringify(amountsMicros), emails: JSON.stringify(emails),
      });
      await arm.run({ accountId, alertMicros: nextAlert(amountsMicros, row.balance_micros) });
    },
    "balance.claimMail": async (args: Args<"claimMail">): Promise<boolean> =>
      (await claim.run(args)).changes > 0,
    "balance.mailSent": async (args: Args<"mailSent">): Promise<void> => void await sent.run(args),
    "balance.addTopUp": async (args: Parameters<TopUpStore["add"]>[0]): Promise<void> =>
      void await addTopUp.run(args),
  };
}

export function createBalanceStore(
  reader: Reader, writer: WriterOf<typeof balanceCommands>,
): BalanceStore {
  const account = reader.prepare<object, {
    balance_micros: number; reserved_micros: number; created_at: number;
  }>("SELECT balance_micros, reserved_micros, created_at FROM accounts WHERE id = @accountId");
  const spent = reader.prepare<object, { micros: number }>(`
    SELECT coalesce(sum(micros), 0) AS micros FROM costs
    WHERE account_id = @accountId AND at >= @since AND kind <> 'other'`);
  const alerts = reader.prepare<object, AlertsRow>(ALERTS);
  const due = reader.prepare<object, {
    id: number; account_id: number; threshold_micros: number; balance_micros: number;
    address: string;
  }>(`
    SELECT id, account_id, threshold_micros, balance_micros, address FROM balance_mails
    WHERE ${IS_FREE} AND created_at > @since
    ORDER BY next_at LIMIT (@rows + 0)`);
  return {
    read: async (accountId, since) => {
      const row = await account.get({ accountId });
      return row
        ? {
            balanceMicros: row.balance_micros, reservedMicros: row.reserved_micros,
            createdAt: row.created_at,
            spentMicros: (await spent.get({ accountId, since }))?.micros ?? 0,
          }
        : null;
    },
    alerts: async (accountId) => alertsFromRow(await alerts.get({ accountId })),
    ...writes(writer, "balance", "setAlerts", "claimMail", "mailSent"),
    dueMails: async (args) => (await due.all({
      ...args, until: args.now + MAIL_CLAIM_MICROS,
    })).map((row) => ({
      id: row.id, accountId: row.account_id, thresholdMicros: row.threshold_micros,
      balanceMicros: row.balance_micros, address: row.address,
    })),
  };
}

export function createTopUpStore(
  reader: Reader, writer: WriterOf<typeof balanceCommands>,
): TopUpStore {
  const find = reader.prepare<object, { account_id: number }>(
    "SELECT account_id FROM top_ups WHERE session_id = @sessionId");
  return {
    add: (args) => writer.write("balance.addTopUp", args),
    accountOf: async (sessionId) => (await find.get({ sessionId }))?.account_id ?? null,
  };
}
