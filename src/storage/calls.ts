// Calls in SQLite: reads on the main thread. The commands are in call-commands.ts.
import { strict as assert } from "node:assert";
import { isFinal, isLive } from "#features/calls/status.ts";
import type { Warning } from "#features/assistants/warnings.ts";
import type {
  AnsweredBy, Call, CallFilter, CallStore, CallType, EndReason, Hearing, TranscriptEntry,
  TurnLatency,
} from "#features/calls/records.ts";
import { CALL_STATUSES, type CallStatus } from "#features/calls/status.ts";
import { LIMITS } from "#core/limits.ts";
import type { FunctionCall } from "#events/events.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { perAccount } from "./sweeps.ts";
import type { Writer } from "./writer.ts";

export interface CallRow {
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
  transfers: string;
}

interface EntryRow {
  number: number;
  speaker: "assistant" | "customer";
  text: string;
  start_ms: number;
  end_ms: number;
  interrupted: number;
  function_calls: string | null;
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
    transfers: JSON.parse(row.transfers) as Call["transfers"],
    eventSequence: row.event_sequence,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

const entryFromRow = (row: EntryRow): TranscriptEntry => ({
  number: row.number,
  speaker: row.speaker,
  text: row.text,
  startMs: row.start_ms,
  endMs: row.end_ms,
  interrupted: row.interrupted === 1,
  functionCalls: row.function_calls === null
    ? []
    : (JSON.parse(row.function_calls) as FunctionCall[]),
});

const isAmong = (wanted: (status: CallStatus) => boolean): string =>
  `status IN (${CALL_STATUSES.filter(wanted).map((status) => `'${status}'`).join(", ")})`;
export const IS_LIVE = isAmong(isLive);
export const IS_FINAL = isAmong(isFinal);
/** Live, or the work after the call is still to be done. */
export const IS_UNFINISHED = isAmong((status) => !isFinal(status));

const MATCHES = `c.account_id = @accountId
  AND (CAST(@status AS TEXT) IS NULL OR c.status = @status)
  AND (CAST(@type AS TEXT) IS NULL OR c.type = @type)
  AND (CAST(@phoneNumber AS TEXT) IS NULL OR c.customer_phone = @phoneNumber)
  AND (CAST(@assistantId AS BIGINT) IS NULL OR c.assistant_id = @assistantId)
  AND (CAST(@campaignId AS BIGINT) IS NULL OR c.campaign_id = @campaignId)
  AND (CAST(@from AS BIGINT) IS NULL OR c.created_at >= @from)
  AND (CAST(@to AS BIGINT) IS NULL OR c.created_at < @to)`;

const parametersOf = (accountId: number, filter: CallFilter) => ({
  accountId,
  status: filter.status ?? null,
  type: filter.type ?? null,
  phoneNumber: filter.phoneNumber ?? null,
  assistantId: filter.assistantId ?? null,
  campaignId: filter.campaignId ?? null,
  from: filter.from ?? null,
  to: filter.to ?? null,
});

const PLACES = Array.from({ length: LIMITS.pageSizeMax }, (_, place) => place);

export function createCallStore(db: Db, writer: Writer): CallStore {
  const find = db.prepare<[object], CallRow>(`${CALL} WHERE c.id = @callId`);
  const list = db.prepare<[object], CallRow>(
    `${CALL} WHERE ${MATCHES} ORDER BY c.id DESC LIMIT (@rows + 0) OFFSET (@offset + 0)`);
  const count = db.prepare<[object], { calls: number }>(
    `SELECT count(*) AS calls FROM calls c WHERE ${MATCHES}`);
  const live = db.prepare<[object], CallRow>(
    `${CALL} WHERE c.account_id = @accountId AND c.${IS_LIVE} ORDER BY c.id`);
  const entries = db.prepare<[object], EntryRow>(
    "SELECT * FROM call_entries WHERE call_id = @callId ORDER BY number");
  // So many places, whatever the page has: the statement is prepared once.
  const ofPage = db.prepare<(number | null)[], EntryRow & { call_id: number }>(`
    SELECT * FROM call_entries WHERE call_id IN (${PLACES.map(() => "?").join(", ")})
    ORDER BY call_id, number`);
  const sequence = db.prepare<[object], { sequence: number }>(
    "SELECT event_sequence AS sequence FROM accounts WHERE id = @accountId");
  const transcript = (callId: number): TranscriptEntry[] =>
    entries.all({ callId }).map(entryFromRow);
  const transcripts = (callIds: readonly number[]): Map<number, TranscriptEntry[]> => {
    assert(callIds.length <= PLACES.length, "more calls than a page has");
    const found = new Map<number, TranscriptEntry[]>();
    for (const row of ofPage.all(...PLACES.map((place) => callIds[place] ?? null))) {
      const entries = found.get(row.call_id);
      if (entries) entries.push(entryFromRow(row));
      else found.set(row.call_id, [entryFromRow(row)]);
    }
    return found;
  };
  const findById = (callId: number): Call | null => {
    const row = find.get({ callId });
    return row ? callFromRow(row) : null;
  };
  return {
    create: (args) => writer.write("calls.create", args),
    findById,
    find: (accountId, callId) => {
      const call = findById(callId);
      return call?.accountId === accountId ? call : null;
    },
    list: (accountId, filter, offset, rows) =>
      list.all({ ...parametersOf(accountId, filter), offset, rows }).map(callFromRow),
    count: (accountId, filter) => count.get(parametersOf(accountId, filter))?.calls ?? 0,
    live: (accountId) => live.all({ accountId }).map(callFromRow),
    transcript,
    transcripts,
    // The writer commits in another thread: only a transaction sees one moment.
    snapshot: db.transaction((callId: number) => {
      const call = findById(callId);
      return call ? { call, entries: transcript(callId) } : null;
    }),
    liveSnapshot: db.transaction((accountId: number) => ({
      sequence: sequence.get({ accountId })?.sequence ?? 0,
      calls: live.all({ accountId }).map((row) => {
        const call = callFromRow(row);
        return { call, entries: transcript(call.id) };
      }),
    })),
    change: (args) => writer.write("calls.change", args),
    setVariables: (args) => writer.write("calls.setVariables", args),
    addTransfer: (args) => writer.write("calls.addTransfer", args),
    failTransfer: (args) => writer.write("calls.failTransfer", args),
    addTranscript: (args) => writer.write("calls.addTranscript", args),
    end: (args) => writer.write("calls.end", args),
    finish: (args) => writer.write("calls.finish", args),
    ...createCallSweeps(db, writer),
    delete: (args) => writer.write("calls.delete", args),
  };
}

function createCallSweeps(
  db: Db, writer: Writer,
): Pick<CallStore, "beat" | "recover" | "expireRecordings"> {
  const unfinished = db.prepare<[], { accountId: number }>(
    `SELECT DISTINCT account_id AS "accountId" FROM calls WHERE ${IS_UNFINISHED} ORDER BY 1`);
  const expired = db.prepare<[object], { accountId: number; file: string }>(`
    SELECT account_id AS "accountId", recording_file AS file FROM calls
    WHERE recording_file IS NOT NULL AND ended_at < @before ORDER BY ended_at LIMIT (@rows + 0)`);
  return {
    beat: async ({ calls, now }) => {
      await perAccount(calls, (accountId, own) =>
        writer.write("calls.beat", { accountId, callIds: own.map(({ id }) => id), now }));
    },
    recover: async ({ now }) => {
      const recovered = await perAccount(unfinished.all(), (accountId) =>
        writer.write("calls.recover", { accountId, now }));
      return {
        events: recovered.flatMap(({ events }) => events),
        unfinished: recovered.flatMap(({ unfinished }) => unfinished),
        cut: recovered.flatMap(({ cut }) => cut),
      };
    },
    expireRecordings: async (args) => {
      const rows = expired.all(args);
      await perAccount(rows, (accountId, own) => writer.write("calls.forgetRecordings", {
        accountId, files: own.map(({ file }) => file),
      }));
      return rows.map(({ file }) => file);
    },
  };
}
