// Money movements as steps other commands take inside their own transaction. Each step keeps
// Σ ledger = balance, Σ open reservations = reserved, balance − reserved ≥ 0. What they wrote is
// read in ledger-reading.ts.
import { hashEntry, type LedgerKind } from "#features/accounts/money/ledger.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createBalanceWatch } from "./balance.ts";
import { balanceChanged, changeAfter, createEventAppender } from "#storage/events.ts";
import { chain, together, type Awaitable, type Sql } from "#storage/sql.ts";
import { createEnqueue } from "#storage/webhooks/outbox.ts";

/** The account columns that the next entry continues from. */
export interface AccountRow {
  balance_micros: number;
  reserved_micros: number;
  ledger_entries: number;
  ledger_hash: string;
  event_sequence: number;
}

/** The account columns that writing an entry needs. */
export interface ChargedRow extends AccountRow {
  /** An entry that reaches this balance triggers an alert; null: no alert below the balance. */
  alert_micros: number | null;
}

interface Ledger {
  /**
   * Sets the amount aside and draws `events` account event numbers; false when the free balance is
   * too low, and then nothing was written. The caller's own row records what is held and why.
   */
  hold(args: Holding): Awaitable<boolean>;
  /** Gives back what `hold` set aside. */
  unhold(args: { accountId: number; amountMicros: Micros }): Awaitable<unknown>;
  /** Posts what `hold` set aside; the caller has read the account. */
  charge(account: ChargedRow, entry: Entry, paidFor: AppendPaid): Awaitable<Posted>;
  /** `hold` with a row of its own; false when the free balance is too low. */
  reserve(args: Reservation): Awaitable<boolean>;
  /** More under a reservation that is open; false when the free balance is too low. */
  extend(args: Omit<Reservation, "now">): Awaitable<boolean>;
  /**
   * Turns the reservation into a ledger entry with its `balance_changed` event; null when none is
   * open under the reference.
   */
  post(args: Posting): Awaitable<Posted | null>;
  /** Gives the reserved money back; 0 when none is open under the reference. */
  release(accountId: number, reference: string): Awaitable<Micros>;
  /** Adds an entry without a reservation; null when less than is reserved would be left. */
  enter(args: Entry): Awaitable<Posted | null>;
}

interface Holding {
  accountId: number;
  amountMicros: Micros;
  events: 0 | 1;
}
interface Reservation {
  accountId: number;
  reference: string;
  amountMicros: Micros;
  now: Instant;
}
interface Posting {
  accountId: number;
  reference: string;
  kind: LedgerKind;
  /** Less than was reserved; the rest is released. Absent: the whole reservation. */
  amountMicros?: Micros;
  paidFor?: AppendPaid;
  now: Instant;
}
/**
 * Appends the event that was paid for, under the account event number and the ledger number it
 * receives; `balance_changed` has the next event number.
 */
export type AppendPaid = (
  numbers: { accountSequence: number; ledgerNumber?: number },
) => Awaitable<CommittedEvent>;
interface Entry {
  accountId: number;
  kind: LedgerKind;
  reference: string;
  amountMicros: Micros;
  now: Instant;
}
interface Posted {
  amountMicros: Micros;
  balanceMicros: Micros;
  /** The event that was paid for, if any, then `balance_changed`, then each `balance_low`. */
  events: CommittedEvent[];
}

function prepareLedger(sql: Sql) {
  return {
    hold: sql.prepare(`
      UPDATE accounts SET reserved_micros = reserved_micros + @amountMicros,
        event_sequence = event_sequence + @events
      WHERE id = @accountId AND balance_micros - reserved_micros >= @amountMicros`),
    insertReservation: sql.prepare(`
      INSERT INTO reservations (reference, account_id, amount_micros, created_at)
      VALUES (@reference, @accountId, @amountMicros, @now)`),
    extendReservation: sql.prepare(`
      UPDATE reservations SET amount_micros = amount_micros + @amountMicros
      WHERE reference = @reference AND account_id = @accountId`),
    takeReservation: sql.prepare<object, { amount_micros: Micros }>(`
      DELETE FROM reservations WHERE reference = @reference AND account_id = @accountId
      RETURNING amount_micros`),
    unhold: sql.prepare(
      "UPDATE accounts SET reserved_micros = reserved_micros - @amountMicros WHERE id = @accountId"),
    readAccount: sql.prepare<object, ChargedRow>(`
      SELECT balance_micros, reserved_micros, ledger_entries, ledger_hash, event_sequence,
        alert_micros
      FROM accounts WHERE id = @accountId`),
    insertEntry: sql.prepare(`
      INSERT INTO ledger (account_id, number, kind, reference, amount_micros, balance_after_micros,
        created_at, hash)
      VALUES (@accountId, @number, @kind, @reference, @amountMicros, @balanceAfterMicros,
        @createdAt, @hash)`),
    updateAccount: sql.prepare(`
      UPDATE accounts SET balance_micros = @balanceMicros,
        reserved_micros = reserved_micros - @releasedMicros,
        ledger_entries = @number, ledger_hash = @hash, event_sequence = @eventSequence
      WHERE id = @accountId`),
  };
}

type LedgerStatements = ReturnType<typeof prepareLedger>;

/** Adds an entry to the chain and its event to the log; null when the money is not there. */
function createEntryWriter(sql: Sql, { insertEntry, updateAccount }: LedgerStatements) {
  const append = createEventAppender(sql);
  const enqueue = createEnqueue(sql);
  const watch = createBalanceWatch(sql);
  /** Adds balance alerts; for most entries the check needs only the row already read. */
  const told = (account: ChargedRow, entry: Entry, posted: Posted): Awaitable<Posted> => {
    const { accountId, amountMicros, now } = entry;
    const { balanceMicros, events } = posted;
    const { alert_micros: alertMicros, balance_micros: beforeMicros } = account;
    const isReached = alertMicros !== null && balanceMicros <= alertMicros;
    if (!isReached && amountMicros <= 0) return posted;
    return chain(watch({ accountId, beforeMicros, balanceMicros, now }), (low) =>
      ({ ...posted, events: [...events, ...low] }));
  };
  return (
    account: ChargedRow, entry: Entry, releasedMicros: Micros, paidFor?: AppendPaid,
  ): Awaitable<Posted | null> => {
    const { accountId, kind, reference, amountMicros, now } = entry;
    const balanceMicros = account.balance_micros + amountMicros;
    if (balanceMicros < account.reserved_micros - releasedMicros) return null;
    const number = account.ledger_entries + 1;
    const accountSequence = account.event_sequence + 1;
    const eventSequence = accountSequence + (paidFor ? 1 : 0);
    const fields = {
      accountId, number, kind, reference, amountMicros, balanceAfterMicros: balanceMicros,
      createdAt: now,
    };
    const hash = hashEntry(account.ledger_hash, fields);
    const change = { kind, amountMicros, balanceMicros };
    const appended = paidFor
      ? paidFor({ accountSequence, ledgerNumber: number })
      : append({
          accountId, accountSequence, conversation: null, data: balanceChanged(change), now,
        });
    const written = together(
      insertEntry.run({ ...fields, hash }),
      updateAccount.run({ accountId, balanceMicros, releasedMicros, number, hash, eventSequence }),
      appended,
    );
    return chain(written, ([, , event]) => {
      if (!paidFor) return told(account, entry, { amountMicros, balanceMicros, events: [event] });
      const changed = changeAfter(event, change);
      return chain(enqueue(changed, now), () =>
        told(account, entry, { amountMicros, balanceMicros, events: [event, changed] }));
    });
  };
}

export function createLedger(sql: Sql): Ledger {
  const statements = prepareLedger(sql);
  const { hold, insertReservation, extendReservation, takeReservation } = statements;
  const { unhold, readAccount } = statements;
  const write = createEntryWriter(sql, statements);
  const isHeld = ({ changes }: { changes: number }): boolean => changes > 0;
  return {
    hold: (args) => chain(hold.run(args), isHeld),
    unhold: (args) => unhold.run(args),
    charge: (account, entry, paidFor) =>
      chain(write(account, entry, -entry.amountMicros, paidFor), (posted) => {
        if (!posted) throw new Error(`${entry.reference} was not held`);
        return posted;
      }),
    reserve: ({ accountId, amountMicros, reference, now }) =>
      chain(hold.run({ accountId, amountMicros, events: 0 }), (held) => isHeld(held)
        && chain(insertReservation.run({ reference, accountId, amountMicros, now }), () => true)),
    extend: ({ accountId, amountMicros, reference }) =>
      chain(hold.run({ accountId, amountMicros, events: 0 }), (held) => isHeld(held)
        && chain(extendReservation.run({ reference, accountId, amountMicros }), (extended) => {
          if (extended.changes === 0) throw new Error(`nothing is reserved for ${reference}`);
          return true;
        })),
    post: ({ accountId, reference, kind, amountMicros: wanted, paidFor, now }) => {
      const found = together(
        takeReservation.get({ accountId, reference }), readAccount.get({ accountId }));
      return chain(found, ([taken, account]) => {
        if (!taken || !account) return null;
        const amountMicros = -Math.min(wanted ?? taken.amount_micros, taken.amount_micros);
        const entry = { accountId, kind, reference, amountMicros, now };
        return write(account, entry, taken.amount_micros, paidFor);
      });
    },
    release: (accountId, reference) =>
      chain(takeReservation.get({ accountId, reference }), (taken) => {
        const amountMicros = taken?.amount_micros ?? 0;
        if (amountMicros === 0) return 0;
        return chain(unhold.run({ accountId, amountMicros }), () => amountMicros);
      }),
    enter: (entry) => chain(readAccount.get({ accountId: entry.accountId }), (account) =>
      (account ? write(account, entry, 0) : null)),
  };
}
