// Calls in SQLite: reads on the main thread. The commands are in call-commands.ts.
import { isFinal, isLive } from "#features/calls/status.ts";
import type { Warning } from "#features/assistants/warnings.ts";
import type {
  AnsweredBy, Call, CallFilter, CallSnapshot, CallStore, CallType, EndReason, Hearing,
  TranscriptEntry, TurnLatency,
} from "#features/calls/records.ts";
import { CALL_STATUSES, type CallStatus } from "#features/calls/status.ts";
import { callFileOf, recordingsOf } from "#features/calls/transfers.ts";
import { LIMITS } from "#core/limits.ts";
import type { Author, FunctionCall } from "#events/events.ts";
import { deskFromRow, type DeskRow } from "./conversations.ts";
import { patternOf } from "./found.ts";
import { isFree } from "./nodes.ts";
import { perSession, together, type Exists, type Reader, type Sql } from "./sql.ts";
import { perAccount } from "./sweeps.ts";
import type { callCommands } from "./call-commands.ts";
import type { WriterOf } from "./writer.ts";

export interface CallRow extends DeskRow {
  id: number;
  account_id: number;
  assistant_id: number;
  assistant_uuid: string;
  assistant_name: string;
  type: CallType;
  status: CallStatus;
  end_reason: EndReason | null;
  failure_reason: string | null;
  conversation_uuid: string | null;
  assistant_phone: string | null;
  customer_phone: string | null;
  answered_by: AnsweredBy;
  hearing: Hearing | null;
  warnings: string;
  answered_at: number | null;
  ended_at: number | null;
  duration_seconds: number;
  carrier_cost_micros: number;
  total_cost_micros: number;
  recording_file: string | null;
  evaluation_error: string | null;
  event_sequence: number;
  created_at: number;
  updated_at: number;
  campaign_id: number | null;
  campaign_name: string | null;
  lead_id: number | null;
  variables: string;
  evaluation: string;
  webhook_response: string;
  turns: string;
  quality: string | null;
  transfers: string;
}

interface EntryRow {
  number: number;
  speaker: "assistant" | "customer";
  author: string | null;
  text: string;
  start_ms: number;
  end_ms: number;
  interrupted: number;
  function_calls: string | null;
  transfer: number | null;
}

export const CALL = `SELECT c.*, a.uuid AS assistant_uuid, a.name AS assistant_name,
  k.name AS campaign_name
  FROM calls c JOIN assistants a ON a.id = c.assistant_id
  LEFT JOIN campaigns k ON k.id = c.campaign_id`;

export function callFromRow(row: CallRow): Call {
  return {
    id: row.id,
    accountId: row.account_id,
    assistantId: row.assistant_id,
    assistantUuid: row.assistant_uuid,
    assistantName: row.assistant_name,
    type: row.type,
    status: row.status,
    campaignId: row.campaign_id,
    campaignName: row.campaign_name,
    leadId: row.lead_id,
    conversationUuid: row.conversation_uuid,
    assistantPhone: row.assistant_phone,
    customerPhone: row.customer_phone,
    variables: JSON.parse(row.variables) as Record<string, string>,
    answeredBy: row.answered_by,
    hearing: row.hearing,
    warnings: JSON.parse(row.warnings) as Warning[],
    answeredAt: row.answered_at,
    endedAt: row.ended_at,
    endReason: row.end_reason,
    failureReason: row.failure_reason,
    durationS: row.duration_seconds,
    carrierCostMicros: row.carrier_cost_micros,
    totalCostMicros: row.total_cost_micros + row.carrier_cost_micros,
    evaluation: JSON.parse(row.evaluation) as Record<string, unknown>,
    evaluationError: row.evaluation_error,
    webhookResponse: JSON.parse(row.webhook_response) as Record<string, unknown>,
    recordingFile: row.recording_file,
    turns: JSON.parse(row.turns) as TurnLatency[],
    quality: row.quality === null ? null : (JSON.parse(row.quality) as Call["quality"]),
    transfers: JSON.parse(row.transfers) as Call["transfers"],
    desk: deskFromRow(row),
    eventSequence: row.event_sequence,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** An operator stands on the assistant's side, with a name. */
export const speakerFromRow = (
  { speaker, author }: { speaker: "assistant" | "customer"; author: string | null },
): Pick<TranscriptEntry, "speaker" | "author"> => author === null
  ? { speaker }
  : { speaker: "operator", author: JSON.parse(author) as Author };

const entryFromRow = (row: EntryRow): TranscriptEntry => ({
  number: row.number,
  ...speakerFromRow(row),
  text: row.text,
  startMs: row.start_ms,
  endMs: row.end_ms,
  interrupted: row.interrupted === 1,
  functionCalls: row.function_calls === null
    ? []
    : (JSON.parse(row.function_calls) as FunctionCall[]),
  ...(row.transfer === null ? {} : { transfer: row.transfer }),
});

const isAmong = (wanted: (status: CallStatus) => boolean): string =>
  `status IN (${CALL_STATUSES.filter(wanted).map((status) => `'${status}'`).join(", ")})`;
export const IS_LIVE = isAmong(isLive);
export const IS_FINAL = isAmong(isFinal);
/** Live, or the work after the call is still to be done. */
export const IS_UNFINISHED = isAmong((status) => !isFinal(status));

/** `OFFSET 0`: PostgreSQL looks at each call's entries then, and not at everybody's at once. */
const MATCHES = `c.account_id = @accountId
  AND (CAST(@status AS TEXT) IS NULL OR c.status = @status)
  AND (CAST(@type AS TEXT) IS NULL OR c.type = @type)
  AND (CAST(@phoneNumber AS TEXT) IS NULL OR c.customer_phone = @phoneNumber)
  AND (CAST(@assistantId AS BIGINT) IS NULL OR c.assistant_id = @assistantId)
  AND (CAST(@campaignId AS BIGINT) IS NULL OR c.campaign_id = @campaignId)
  AND (CAST(@from AS BIGINT) IS NULL OR c.created_at >= @from)
  AND (CAST(@to AS BIGINT) IS NULL OR c.created_at < @to)
  AND (CAST(@search AS TEXT) IS NULL OR (
    c.id >= (SELECT coalesce(min(n.id), 0) FROM (
      SELECT id FROM calls WHERE account_id = @accountId ORDER BY id DESC LIMIT (@searched + 0)
    ) AS n)
    AND (c.customer_phone LIKE @search ESCAPE '\\' OR lower(c.variables) LIKE @search ESCAPE '\\'
      OR EXISTS (SELECT 1 FROM call_entries e
        WHERE e.call_id = c.id AND lower(e.text) LIKE @search ESCAPE '\\' LIMIT 1 OFFSET 0))))`;

const parametersOf = (accountId: number, filter: CallFilter) => ({
  accountId,
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

export function createCallStore(reader: Reader, writer: WriterOf<typeof callCommands>): CallStore {
  const { find, live, entries } = snapshotReads(reader);
  const list = reader.prepare<object, CallRow>(
    `${CALL} WHERE ${MATCHES} ORDER BY c.id DESC LIMIT (@rows + 0) OFFSET (@offset + 0)`);
  const count = reader.prepare<object, { calls: number }>(
    `SELECT count(*) AS calls FROM calls c WHERE ${MATCHES}`);
  const elsewhere = reader.prepare<object, Exists>(`
    SELECT 1 FROM calls WHERE id = @callId AND ended_at IS NULL AND node_id <> @nodeId
      AND NOT ${isFree("calls.node_id")}`);
  const ofPage = reader.prepare<object, EntryRow & { call_id: number }>(`
    SELECT * FROM call_entries WHERE ${reader.dialect.among("call_id", "@callIds")}
    ORDER BY call_id, number`);
  const findById = async (callId: number): Promise<Call | null> => {
    const row = await find.get({ callId });
    return row ? callFromRow(row) : null;
  };
  return {
    create: (args) => writer.write("calls.create", args),
    findById,
    find: async (accountId, callId) => {
      const call = await findById(callId);
      return call?.accountId === accountId ? call : null;
    },
    isElsewhere: async (callId, nodeId) =>
      await elsewhere.get({ callId, nodeId }) !== undefined,
    list: async (accountId, filter, offset, rows) =>
      (await list.all({ ...parametersOf(accountId, filter), offset, rows })).map(callFromRow),
    count: async (accountId, filter) =>
      (await count.get(parametersOf(accountId, filter)))?.calls ?? 0,
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
    }),
    change: (args) => writer.write("calls.change", args),
    setVariables: (args) => writer.write("calls.setVariables", args),
    addTransfer: (args) => writer.write("calls.addTransfer", args),
    beginTransfer: (args) => writer.write("calls.beginTransfer", args),
    stepTransfer: (args) => writer.write("calls.stepTransfer", args),
    failTransfer: (args) => writer.write("calls.failTransfer", args),
    moveDesk: (args) => writer.write("calls.moveDesk", args),
    whisper: (args) => writer.write("calls.whisper", args),
    addTranscript: (args) => writer.write("calls.addTranscript", args),
    end: (args) => writer.write("calls.end", args),
    finish: (args) => writer.write("calls.finish", args),
    ...createCallSweeps(reader, writer),
    delete: (args) => writer.write("calls.delete", args),
    deleteMany: (args) => writer.write("calls.deleteMany", args),
  };
}

interface RecordedRow { recording_file: string; transfers: string }

const recordingsIn = (row: Pick<CallRow, "recording_file" | "transfers">): string[] =>
  recordingsOf({
    recordingFile: row.recording_file, transfers: JSON.parse(row.transfers) as Call["transfers"],
  });

function createCallSweeps(
  reader: Reader, writer: WriterOf<typeof callCommands>,
): Pick<CallStore, "beat" | "cutRecordings" | "recover" | "hasRecording" | "expireRecordings"> {
  const unfinished = reader.prepare<object, { accountId: number }>(
    `SELECT DISTINCT account_id AS "accountId" FROM calls
     WHERE ${IS_UNFINISHED} AND ${isFree("calls.node_id")} ORDER BY 1`);
  const cut = reader.prepare<object, RecordedRow>(`
    SELECT recording_file, transfers FROM calls
    WHERE status = 'in-progress' AND ${IS_UNFINISHED} AND ${isFree("calls.node_id")}`);
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
    recover: async (args) => {
      const recovered = await perAccount(await unfinished.all({}), (accountId) =>
        writer.write("calls.recover", { accountId, ...args }));
      return {
        events: recovered.flatMap(({ events }) => events),
        unfinished: recovered.flatMap(({ unfinished }) => unfinished),
      };
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
