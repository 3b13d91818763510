// Rows of calls and transcript entries, and the records made from them.
import { CALL_STATUSES, isFinal, isLive, type CallStatus } from "#features/calls/records/status.ts";
import type { Warning } from "#features/assistants/warnings.ts";
import type {
  AnsweredBy, Call, CallType, EndReason, Hearing, TranscriptEntry, TurnLatency,
} from "#features/calls/records/records.ts";
import type { Author, FunctionCall } from "#events/events.ts";
import { deskFromRow, type DeskRow } from "#storage/conversations/rows.ts";

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

export interface EntryRow {
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

/** An operator speaks on the assistant's side, but has a name. */
export const speakerFromRow = (
  { speaker, author }: { speaker: "assistant" | "customer"; author: string | null },
): Pick<TranscriptEntry, "speaker" | "author"> => author === null
  ? { speaker }
  : { speaker: "operator", author: JSON.parse(author) as Author };

export const entryFromRow = (row: EntryRow): TranscriptEntry => ({
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
