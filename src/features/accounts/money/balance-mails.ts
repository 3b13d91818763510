// Mails to the addresses that an account wants notified when its balance runs low. They are stored
// in the transaction that crosses the threshold (storage/accounts/balance.ts) and claimed from
// there, so that no crash loses one and no two processes send one. Called by the clock, and at once
// when a `balance_low` event is published.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { formatMicros } from "#core/money.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Mail, Mailer } from "#providers/mail/port.ts";
import type { Account } from "#features/accounts/accounts.ts";
import {
  MAIL_CLAIM_MICROS, MAIL_NEWS_MICROS, type BalanceMail, type BalanceStore,
} from "./balance.ts";

interface BalanceMailOptions {
  store: Pick<BalanceStore, "dueMails" | "claimMail" | "mailSent">;
  findAccount(accountId: number): Promise<Account | null>;
  bus: EventBus;
  mailer: Mailer;
  /** Null: the address at which people reach the server is not known. */
  publicUrl: string | null;
  system: System;
  log: Logger;
}

interface BalanceMails {
  sweep(): Promise<void>;
  close(): void;
}

function mailOf(due: BalanceMail, name: string, publicUrl: string | null): Mail {
  const { id, accountId, thresholdMicros, balanceMicros, address } = due;
  const balance = `$${formatMicros(balanceMicros)}`;
  const who = name.replaceAll(/\s+/g, " ");
  return {
    accountId,
    id: `balance.${accountId}.${id}@parley`,
    to: address,
    subject: `The balance of ${who} is ${balance}`,
    text: [
      `The balance of ${who} has fallen to ${balance}. You asked to be told at `
        + `$${formatMicros(thresholdMicros)}.`,
      ...publicUrl === null ? [] : ["", `${publicUrl}/#/money`],
    ].join("\n"),
  };
}

export function createBalanceMails(options: BalanceMailOptions): BalanceMails {
  const { store, findAccount, bus, mailer, publicUrl, system, log } = options;
  if (!mailer.isSetUp) return { sweep: () => Promise.resolve(), close: () => undefined };
  const send = async (due: BalanceMail): Promise<void> => {
    const { accountId, id } = due;
    const now = system.now();
    const isOurs = await store.claimMail({ accountId, id, now, until: now + MAIL_CLAIM_MICROS });
    const account = isOurs ? await findAccount(accountId) : null;
    if (!account) return;
    try {
      await mailer.send(mailOf(due, account.name, publicUrl));
      await store.mailSent({ accountId, id });
    } catch (error) {
      log.warn({ err: error, account_id: accountId }, "could not send a balance mail");
    }
  };
  const sweep = async (): Promise<void> => {
    const now = system.now();
    const due = await store.dueMails({
      now, since: now - MAIL_NEWS_MICROS, rows: LIMITS.balanceMailRows,
    });
    await Promise.all(due.map(send));
  };
  const end = bus.watch((events) => {
    if (!events.some(({ type }) => type === "balance_low")) return;
    sweep().catch((error: unknown) => log.error({ err: error }, "balance mails are delayed"));
  });
  return { sweep, close: end };
}
