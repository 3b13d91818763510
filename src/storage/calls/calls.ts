// Calls in the database: reads on the main thread. The commands are in commands.ts.
import type {
  Call, CallFilter, CallSnapshot, CallStore, TranscriptEntry,
} from "#features/calls/records/records.ts";
import { callFileOf, recordingsOf } from "#features/calls/records/transfers.ts";
import { LIMITS } from "#core/limits.ts";
import {
  CALL, callFromRow, entryFromRow, IS_LIVE, IS_UNFINISHED, type CallRow, type EntryRow,
} from "./rows.ts";
import { patternOf } from "#storage/search/found.ts";
import { isFree, NOBODY } from "#storage/nodes/nodes.ts";
import {
  NEWEST, orNull, pagesAside, perSession, together, type Exists, type Reader, type Sql,
} from "#storage/sql.ts";
import { perAccount } from "#storage/sweeps.ts";
import type { callCommands } from "./commands.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

/** The index by account covers all of these columns. */
const MATCHES = `(CAST(@status AS TEXT) IS NULL OR c.status = @status)
  AND (CAST(@type AS TEXT) IS NULL OR c.type = @type)
  AND (CAST(@phoneNumber AS TEXT) IS NULL OR c.customer_phone = @phoneNumber)
  AND (CAST(@assistantId AS BIGINT) IS NULL OR c.assistant_id = @assistantId)
  AND (CAST(@campaignId AS BIGINT) IS NULL OR c.campaign_id = @campaignId)
  AND (CAST(@from AS BIGINT) IS NULL OR c.created_at >= @from)
  AND (CAST(@to AS BIGINT) IS NULL OR c.created_at < @to)`;
/** `OFFSET 0` makes PostgreSQL search the entries of each call, and not everybody's at once. */
const foundBy = ({ lower, newestFirst }: Sql["dialect"]): string => `${MATCHES}
  AND c.id >= (SELECT coalesce(min(n.id), 0) FROM (
    SELECT o.id FROM calls o WHERE ${newestFirst("o").where}
    ORDER BY ${newestFirst("o").order} LIMIT (@searched + 0)
  ) AS n)
  AND (c.customer_phone LIKE @search ESCAPE '\\' OR ${lower("c.variables")} LIKE @search ESCAPE '\\'
    OR EXISTS (SELECT 1 FROM call_entries e
      WHERE e.call_id = c.id AND ${lower("e.text")} LIKE @search ESCAPE '\\' LIMIT 1 OFFSET 0))`;

const parametersOf = (accountId: number, filter: CallFilter) => ({
  accountId,
  ...NEWEST,
  status: filter.status ?? null,
  type: filter.type ?? null,
  phoneNumber: filter.phoneNumber ?? null,
  assistantId: filter.assistantId ?? null,
  campaignId: filter.campaignId ?? null,
  from: filter.from ?? null,
  to: filter.to ?? null,
  search: filter.search === undefined ? null : patternOf(filter.search),
  searched: LIMITS.callsSearchedMax,
});

const ENTRIES = "SELECT * FROM call_entries WHERE call_id = @callId ORDER BY number";

const snapshotReads = perSession((sql) => ({
  find: sql.prepare<object, CallRow>(`${CALL} WHERE c.id = @callId`),
  entries: sql.prepare<object, EntryRow>(ENTRIES),
  live: sql.prepare<object, CallRow>(
    `${CALL} WHERE c.account_id = @accountId AND c.${IS_LIVE} ORDER BY c.id`),
  sequence: sql.prepare<object, { sequence: number }>(
    "SELECT event_sequence AS sequence FROM accounts WHERE id = @accountId"),
}));

async function snapshotOf(sql: Sql, row: CallRow): Promise<CallSnapshot> {
  const entries = await snapshotReads(sql).entries.all({ callId: row.id });
  return { call: callFromRow(row), entries: entries.map(entryFromRow) };
}

function createPages(reader: Reader): Pick<CallStore, "list" | "count"> {
  const readsOf = (matches: string) =>
    pagesAside<CallRow>(reader, { select: CALL, from: "calls c", matches, isOfAccount: true });
  const [narrowed, searched] = [readsOf(MATCHES), readsOf(foundBy(reader.dialect))];
  const readsFor = ({ search }: CallFilter) => (search === undefined ? narrowed : searched);
  return {
    list: async (accountId, filter, offset, rows) =>
      (await readsFor(filter).list.all({ ...parametersOf(accountId, filter), offset, rows }))
        .map(callFromRow),
    count: async (accountId, filter) =>
      (await readsFor(filter).count.get(parametersOf(accountId, filter)))?.total ?? 0,
  };
}

export function createCallStore(reader: Reader, writer: WriterOf<typeof callCommands>): CallStore {
  const { find, live, entries } = snapshotReads(reader);
  const elsewhere = reader.prepare<object, Exists>(`
    SELECT 1 FROM calls WHERE id = @callId AND ended_at IS NULL AND node_id <> @nodeId
      AND NOT ${isFree("calls.node_id")}`);
  const ofPage = reader.prepare<object, EntryRow & { call_id: number }>(`
    SELECT * FROM call_entries WHERE ${reader.dialect.among("call_id", "@callIds")}
    ORDER BY call_id, number`);
  const findById = async (callId: number): Promise<Call | null> =>
    orNull(await find.get({ callId }), callFromRow);
  return {
    ...writes(writer, "calls", "create", "change", "setVariables", "addTransfer", "beginTransfer",
      "stepTransfer", "failTransfer", "moveDesk", "whisper", "addTranscript", "end", "finish",
      "delete", "deleteMany"),
    findById,
    find: async (accountId, callId) => {
      const call = await findById(callId);
      return call?.accountId === accountId ? call : null;
    },
    isElsewhere: async (callId, nodeId) =>
      await elsewhere.get({ callId, nodeId }) !== undefined,
    ...createPages(reader),
    live: async (accountId) => (await live.all({ accountId })).map(callFromRow),
    transcript: async (callId) => (await entries.all({ callId })).map(entryFromRow),
    transcripts: async (callIds) => {
      const found = new Map<number, TranscriptEntry[]>();
      for (const row of await ofPage.all({ callIds })) {
        const entries = found.get(row.call_id);
        if (entries) entries.push(entryFromRow(row));
        else found.set(row.call_id, [entryFromRow(row)]);
      }
      return found;
    },
    snapshot: (callId) => reader.snapshot(async (sql) => {
      const row = await snapshotReads(sql).find.get({ callId });
      return row ? snapshotOf(sql, row) : null;
    }),
    liveSnapshot: (accountId) => reader.snapshot(async (sql) => {
      const reads = snapshotReads(sql);
      const [account, rows] = await together(
        reads.sequence.get({ accountId }), reads.live.all({ accountId }));
      return {
        sequence: account?.sequence ?? 0,
        calls: await Promise.all(rows.map((row) => snapshotOf(sql, row))),
      };
    }, accountId),
    ...createCallSweeps(reader, writer),
  };
}

/** A call that ended less than this ago is about to be finished by the node that ended it. */
const SETTLING_MICROS = LIMITS.diskRetryMs * 1000;

interface RecordedRow { recording_file: string; transfers: string }

const recordingsIn = (row: Pick<CallRow, "recording_file" | "transfers">): string[] =>
  recordingsOf({
    recordingFile: row.recording_file, transfers: JSON.parse(row.transfers) as Call["transfers"],
  });

function createCallSweeps(
  reader: Reader, writer: WriterOf<typeof callCommands>,
): Pick<
  CallStore,
  "beat" | "cutRecordings" | "expireRecordings" | "hasRecording" | "recover" | "toFinish"
> {
  const unfinished = reader.prepare<object, { accountId: number }>(
    `SELECT DISTINCT account_id AS "accountId" FROM calls
     WHERE ${IS_UNFINISHED} AND ${isFree("calls.node_id")} ORDER BY 1`);
  const cut = reader.prepare<object, RecordedRow>(`
    SELECT recording_file, transfers FROM calls
    WHERE status = 'in-progress' AND ${IS_UNFINISHED} AND ${isFree("calls.node_id")}`);
  const ended = reader.prepare<object, { id: number }>(`
    SELECT id FROM calls
    WHERE status = 'ended' AND ${IS_UNFINISHED} AND coalesce(node_id, ${NOBODY}) = @nodeId
      AND updated_at NOT BETWEEN @from AND @to ORDER BY account_id, id`);
  const expired = reader.prepare<object, RecordedRow & { id: number; accountId: number }>(`
    SELECT id, account_id AS "accountId", recording_file, transfers FROM calls
    WHERE recording_file IS NOT NULL AND ended_at < @before ORDER BY ended_at LIMIT (@rows + 0)`);
  const recorded = reader.prepare<{ file: string }, object>(`
    SELECT id FROM calls WHERE recording_file = @file AND recording_file IS NOT NULL`);
  return {
    hasRecording: async (file) => await recorded.get({ file: callFileOf(file) }) !== undefined,
    beat: async ({ calls, now }) => {
      await perAccount(calls, (accountId, own) =>
        writer.write("calls.beat", {
          accountId, beats: own.map(({ id, at = now }) => ({ callId: id, at })),
        }));
    },
    cutRecordings: async () => (await cut.all({})).flatMap(recordingsIn),
    toFinish: async (nodeId, now) => {
      const [from, to] = [now - SETTLING_MICROS, now + SETTLING_MICROS];
      return (await ended.all({ nodeId, from, to })).map(({ id }) => id);
    },
    recover: async (args) => {
      const recovered = await perAccount(await unfinished.all({}), (accountId) =>
        writer.write("calls.recover", { accountId, ...args }));
      return recovered.flat();
    },
    expireRecordings: async ({ now, ...args }) => {
      const rows = await expired.all(args);
      await perAccount(rows, (accountId, own) => writer.write("calls.forgetRecordings", {
        accountId, callIds: own.map(({ id }) => id), recordings: own.flatMap(recordingsIn), now,
      }));
      return rows.flatMap(recordingsIn);
    },
  };
}
