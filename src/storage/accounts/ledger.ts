// Money movements as steps other commands take inside their own transaction. Each step keeps
// Σ ledger = balance, Σ open reservations = reserved, balance − reserved ≥ 0.
import { hashEntry, type AccountTotals, type LedgerEntry, type LedgerKind } from "#features/accounts/money/ledger.ts";
import type { EntryFilter, StatementStore } from "#features/accounts/money/statements.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createBalanceWatch } from "./balance.ts";
import { balanceChanged, changeAfter, createEventAppender } from "#storage/events.ts";
import {
  aside, chain, perSession, together, type Awaitable, type Reader, type Sql,
} from "#storage/sql.ts";
import { createEnqueue } from "#storage/webhooks/outbox.ts";

/** The account columns that the next entry continues from. */
interface AccountRow {
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

interface LedgerRow {
  account_id: number;
  number: number;
  kind: LedgerKind;
  reference: string;
  amount_micros: number;
  balance_after_micros: number;
  created_at: number;
  hash: string;
}

const entryFromRow = (row: LedgerRow): LedgerEntry => ({
  accountId: row.account_id,
  number: row.number,
  kind: row.kind,
  reference: row.reference,
  amountMicros: row.amount_micros,
  balanceAfterMicros: row.balance_after_micros,
  createdAt: row.created_at,
  hash: row.hash,
});

const totalsFromRow = (accountId: number, row: AccountRow): AccountTotals => ({
  accountId,
  balanceMicros: row.balance_micros,
  reservedMicros: row.reserved_micros,
  ledgerEntries: row.ledger_entries,
  ledgerHash: row.ledger_hash,
});

export interface LedgerReader {
  /** Visits everything `auditAccount` needs, account by account, over one snapshot. */
  audit(
    visit: (
      totals: AccountTotals, entries: AsyncIterable<LedgerEntry>, openMicros: Micros,
    ) => Promise<void>,
  ): Promise<void>;
  /** Entries that name a turn which is not billed, and billed turns without an entry. */
  strayReferences(): Promise<string[]>;
}

const BILLED_TURNS = `WITH billed AS MATERIALIZED (
  SELECT 'turn:' || conversation_id || '.' || user_sequence AS reference, price_micros FROM turns
  WHERE state IN ('done', 'stopped') AND reply_message_id IS NOT NULL
  UNION ALL SELECT 'call:' || id, total_cost_micros FROM calls
  UNION ALL SELECT 'number-purchase:' || uuid, price_micros FROM number_purchases
  WHERE state = 'completed')`;
// EXCEPT sorts both sides. A join on computed references would scan all of them for each entry,
// because SQLite's planner does not think an automatic index worthwhile. PostgreSQL would do the
// same for a list beside an OR, so calls are queried separately.
const UNBILLED_ENTRIES = `${BILLED_TURNS}
  SELECT reference FROM (
    SELECT reference, -amount_micros FROM ledger
    WHERE kind = 'message' OR substr(reference, 1, 16) = 'number-purchase:'
    UNION ALL SELECT reference, -amount_micros FROM ledger
    WHERE kind = 'call' AND reference IN (SELECT 'call:' || id FROM calls)
    EXCEPT SELECT reference, price_micros FROM billed) AS unbilled`;
const UNENTERED_TURNS = `${BILLED_TURNS}
  SELECT b.reference FROM billed b LEFT JOIN ledger l ON l.reference = b.reference
  WHERE b.price_micros > 0 AND l.reference IS NULL`;

// An open turn is its own reservation.
const OPEN = `SELECT coalesce(sum(amount_micros), 0) AS micros FROM (
  SELECT amount_micros FROM reservations WHERE account_id = @accountId
  UNION ALL SELECT t.price_micros FROM turns t JOIN conversations c ON c.id = t.conversation_id
  WHERE t.state = 'open' AND c.account_id = @accountId) AS held`;

const ENTRIES = `SELECT * FROM ledger
  WHERE account_id = +@accountId AND number > +@after AND number <= +@last
  ORDER BY number LIMIT (@rows + 0)`;
const AUDIT_PAGE_ROWS = 1000;

const auditReads = perSession((sql) => ({
  accounts: sql.prepare<object, AccountRow & { id: number }>(`
    SELECT id, balance_micros, reserved_micros, ledger_entries, ledger_hash, event_sequence
    FROM accounts ORDER BY id`),
  entries: sql.prepare<object, LedgerRow>(ENTRIES),
  open: sql.prepare<object, { micros: number }>(OPEN),
}));

async function* entriesOf(sql: Sql, accountId: number): AsyncIterable<LedgerEntry> {
  const { entries } = auditReads(sql);
  const last = Number.MAX_SAFE_INTEGER;
  for (let after = 0; ;) {
    const page = await entries.all({ accountId, after, last, rows: AUDIT_PAGE_ROWS });
    for (const row of page) yield entryFromRow(row);
    const end = page.at(-1);
    if (!end || page.length < AUDIT_PAGE_ROWS) return;
    after = end.number;
  }
}

export function createLedgerReader(reader: Reader): LedgerReader {
  const unbilled = aside<object, { reference: string }>(reader, UNBILLED_ENTRIES);
  const unentered = aside<object, { reference: string }>(reader, UNENTERED_TURNS);
  return {
    audit: (visit) => reader.snapshot(async (sql) => {
      const { accounts, open } = auditReads(sql);
      for (const row of await accounts.all({})) {
        const openMicros = (await open.get({ accountId: row.id }))?.micros ?? 0;
        await visit(totalsFromRow(row.id, row), entriesOf(sql, row.id), openMicros);
      }
    }),
    strayReferences: async () => [
      ...(await unbilled.all({})).map(({ reference }) =>
        `${reference} is in the ledger, but nothing like it was completed`),
      ...(await unentered.all({})).map(({ reference }) =>
        `${reference} was completed, but is not in the ledger`),
    ],
  };
}

const MATCHES = "account_id = @accountId AND (CAST(@kind AS TEXT) IS NULL OR kind = @kind)";
/** For counting: filters by creation time, from the index alone. */
const IN_TIME = `${MATCHES} AND created_at >= @from AND created_at < @to`;
// Entries are read along the primary key, in the order of the chain, whatever the filter.
const ALONG = `${MATCHES} AND +created_at >= @from AND +created_at < @to`;
const NAMED = `${ALONG}
  AND (CAST(@reference AS TEXT) IS NULL OR reference = @reference)
  AND (CAST(@prefix AS TEXT) IS NULL OR substr(reference, 1, length(@prefix)) = @prefix)`;

const parametersOf = (accountId: number, { kind, reference, from, to }: EntryFilter) => ({
  accountId,
  kind: kind ?? null,
  reference: reference && !reference.isPrefix ? reference.text : null,
  prefix: reference?.isPrefix ? reference.text : null,
  least: reference?.text ?? null,
  most: reference?.isPrefix ? `${reference.text}\u{10FFFF}` : reference?.text ?? null,
  from: from ?? 0,
  to: to ?? Number.MAX_SAFE_INTEGER,
});

/** Found by name: all that a conversation was charged begins with `turn:17.`, and is little. */
const OF_THING = `reference >= @least AND reference <= @most AND +${NAMED}`;
/** All kinds except messages, which are the bulk of the ledger. */
const OF_KIND = `account_id = @accountId AND kind <> 'message' AND kind = @kind
  AND +created_at >= @from AND +created_at < @to`;

function readsFor({ reference, kind }: EntryFilter): "along" | "named" | "ofKind" | "ofThing" {
  if (reference) return !reference.isPrefix || reference.text.endsWith(".") ? "ofThing" : "named";
  return kind === undefined || kind === "message" ? "along" : "ofKind";
}

/** How many entries match, and the numbers of the first and the last of them. */
interface Extent {
  entries: number;
  first: number;
  last: number;
}
const NOTHING: Extent = { entries: 0, first: 0, last: 0 };

const pageReads = (sql: Sql, matches: string, counted = matches) => ({
  // Rows that are skipped are read from the index alone, where it covers the filter.
  list: sql.prepare<object, LedgerRow>(`
    SELECT * FROM ledger WHERE account_id = @accountId AND number IN (
      SELECT number FROM ledger WHERE ${matches} AND number >= +@first AND number <= +@last
      ORDER BY number DESC LIMIT (@rows + 0) OFFSET (@offset + 0))
    ORDER BY number DESC`),
  count: sql.prepare<object, Extent>(`
    SELECT count(*) AS entries, coalesce(min(number), 0) AS first,
      coalesce(max(number), 0) AS last FROM ledger WHERE ${counted}`),
});

/**
 * Where the list begins to look. If as many entries match as there are numbers from the first to
 * the last, all of these match, and a page is a range of numbers: nothing has to be skipped.
 */
const placeOf = ({ entries, first, last }: Extent, offset: number) =>
  (last - first + 1 === entries
    ? { first, last: last - offset, offset: 0 }
    : { first, last, offset });

const statementReads = perSession((sql) => ({
  along: pageReads(sql, ALONG, IN_TIME),
  named: pageReads(sql, NAMED, OF_THING),
  ofThing: pageReads(sql, OF_THING),
  ofKind: pageReads(sql, OF_KIND),
  account: sql.prepare<object, AccountRow>(`
    SELECT balance_micros, reserved_micros, ledger_entries, ledger_hash, event_sequence
    FROM accounts WHERE id = @accountId`),
  all: sql.prepare<object, Extent>(`
    SELECT ledger_entries AS entries, 1 AS first, ledger_entries AS last
    FROM accounts WHERE id = @accountId`),
  open: sql.prepare<object, { micros: number }>(OPEN),
  newest: sql.prepare<object, { number: number | null }>(
    "SELECT max(number) AS number FROM ledger WHERE account_id = @accountId"),
}));

export function createStatementStore(reader: Reader): StatementStore {
  const entries = reader.prepare<object, LedgerRow>(ENTRIES);
  return {
    page: (accountId, filter, offset, rows) => reader.snapshot(async (sql) => {
      const { all, ...reads } = statementReads(sql);
      const { list, count } = reads[readsFor(filter)];
      const parameters = parametersOf(accountId, filter);
      // The account row has the count of all entries; the commonest request should not count them
      // again.
      const isAll = Object.keys(filter).length === 0;
      const extent = isAll
        ? await all.get({ accountId }) ?? NOTHING
        : await count.one(parameters);
      const { entries: total } = extent;
      // A page past the end would scan all entries.
      const place = { ...parameters, ...placeOf(extent, offset), rows };
      const items = offset < total ? await list.all(place) : [];
      return { items: items.map(entryFromRow), total };
    }),
    claims: (accountId) => reader.snapshot(async (sql) => {
      const reads = statementReads(sql);
      const [row, open, newest] = await together(
        reads.account.get({ accountId }),
        reads.open.get({ accountId }),
        reads.newest.get({ accountId }),
      );
      return row
        ? {
            totals: totalsFromRow(accountId, row),
            openMicros: open?.micros ?? 0,
            newest: newest?.number ?? 0,
          }
        : null;
    }),
    entries: async (accountId, after, last, rows) =>
      (await entries.all({ accountId, after, last, rows })).map(entryFromRow),
  };
}
