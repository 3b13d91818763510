// What is read of the ledger: the audit of all books, and statements: pages of an account's entries
// by their number, kind, reference and days. ledger.ts writes it.
import type { AccountTotals, LedgerEntry, LedgerKind } from "#features/accounts/money/ledger.ts";
import type { EntryFilter, StatementStore } from "#features/accounts/money/statements.ts";
import type { Micros } from "#core/money.ts";
import {
  aside, perSession, together, type Reader, type Sql, type Statement,
} from "#storage/sql.ts";
import type { AccountRow } from "./ledger.ts";

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

/** How many entries match, and numbers between which all of them are. */
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
  messages: sql.prepare<object, Extent>(`
    SELECT ledger_entries - (
        SELECT count(*) FROM ledger WHERE account_id = @accountId AND kind <> 'message'
      ) AS entries, 1 AS first, ledger_entries AS last
    FROM accounts WHERE id = @accountId`),
  open: sql.prepare<object, { micros: number }>(OPEN),
  newest: sql.prepare<object, { number: number | null }>(
    "SELECT max(number) AS number FROM ledger WHERE account_id = @accountId"),
}));

function extentOf(
  reads: ReturnType<typeof statementReads>, filter: EntryFilter,
): Statement<object, Extent> {
  const names = Object.keys(filter).join();
  // The account row counts all entries: the commonest requests do not count them again.
  if (names === "") return reads.all;
  return names === "kind" && filter.kind === "message"
    ? reads.messages : reads[readsFor(filter)].count;
}

export function createStatementStore(reader: Reader): StatementStore {
  const entries = reader.prepare<object, LedgerRow>(ENTRIES);
  return {
    page: (accountId, filter, offset, rows) => reader.snapshot(async (sql) => {
      const reads = statementReads(sql);
      const { list } = reads[readsFor(filter)];
      const parameters = parametersOf(accountId, filter);
      const extent = await extentOf(reads, filter).get(parameters) ?? NOTHING;
      const { entries: total } = extent;
      // A page past the end would scan all entries.
      const place = { ...parameters, ...placeOf(extent, offset), rows };
      const items = offset < total ? await list.all(place) : [];
      return { items: items.map(entryFromRow), total };
    }, accountId),
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
    }, accountId),
    entries: async (accountId, after, last, rows) =>
      (await entries.all({ accountId, after, last, rows })).map(entryFromRow),
  };
}
