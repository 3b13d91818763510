// The wire of calls: records as the contract shows them, with what it leaves open beside.
import { Type, type Static } from "@sinclair/typebox";
import { WarningsSchema } from "../assistants/warnings.ts";
import { dollarsFromMicros } from "../core/money.ts";
import { plainSeconds } from "../core/system.ts";
import { transcriptText } from "./evaluation.ts";
import { HEARINGS, type Call, type TranscriptEntry } from "./records.ts";

const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);
const Free = Type.Record(Type.String(), Type.Unknown());

const LatencySchema = Type.Object({
  endpoint_ms: Nullable(Type.Integer()),
  final_transcript_ms: Nullable(Type.Integer()),
  first_token_ms: Nullable(Type.Integer()),
  first_audio_ms: Nullable(Type.Integer()),
  heard_ms: Nullable(Type.Integer()),
});
export const EntrySchema = Type.Object({
  text: Type.String(),
  type: Type.Literal("transcript"),
  sender: Type.Union([Type.Literal("bot"), Type.Literal("human")]),
  timestamp: Type.Number({ description: "Unix seconds" }),
  number: Type.Integer(),
  start_ms: Type.Integer(),
  end_ms: Type.Integer(),
  interrupted: Type.Boolean(),
  function_calls: Type.Optional(Type.Array(Free)),
});
export const CallSchema = Type.Object({
  id: Type.Integer(),
  assistant_id: Type.String({ description: "The assistant's uuid" }),
  assistant_name: Type.String(),
  campaign_id: Nullable(Type.Integer()),
  campaign_name: Nullable(Type.String()),
  lead_id: Nullable(Type.Integer()),
  type: Type.String(),
  duration: Type.Integer({ description: "Seconds from answer to end" }),
  assistant_phone_number: Nullable(Type.String()),
  client_phone_number: Nullable(Type.String()),
  status: Type.String(),
  end_reason: Nullable(Type.String()),
  failure_reason: Nullable(Type.String({
    description: "Why the call failed or came to nothing, and what to do about it; null when nothing did",
    examples: ["The number was busy. Call again later."],
  })),
  transcript: Type.String(),
  transcript_entries: Type.Array(EntrySchema),
  variables: Free,
  evaluation: Free,
  evaluation_error: Nullable(Type.String()),
  webhook_response: Free,
  carrier_cost: Type.Number(),
  total_cost: Type.Number(),
  answered_by: Type.String(),
  hearing: Nullable(Type.Union(HEARINGS.map((one) => Type.Literal(one)), {
    description: "Who understood the caller: this server's recogniser (`server`), a realtime model, "
      + "the caller's own `browser`, or nobody had to, since the words were `typed` or are those of a "
      + "`script`; null until the call is answered",
    examples: ["server"],
  })),
  warnings: WarningsSchema,
  recording_url: Nullable(Type.String()),
  latency: Type.Array(LatencySchema),
  created_at: Type.String(),
  updated_at: Type.String(),
});

/** The link of a call's recording; `baseUrl`: the API as who asks sees it. */
export type RecordingUrl = (call: Call, baseUrl: string) => string | null;

export function wireEntry(entry: TranscriptEntry, call: Call): Static<typeof EntrySchema> {
  const answeredS = (call.answeredAt ?? call.createdAt) / 1_000_000;
  return {
    text: entry.text,
    type: "transcript",
    sender: entry.speaker === "assistant" ? "bot" : "human",
    timestamp: Math.round((answeredS + entry.startMs / 1000) * 1000) / 1000,
    number: entry.number,
    start_ms: entry.startMs,
    end_ms: entry.endMs,
    interrupted: entry.interrupted,
    ...(entry.functionCalls.length > 0
      ? { function_calls: entry.functionCalls as unknown as Record<string, unknown>[] }
      : {}),
  };
}

export function wireCall(
  call: Call, entries: TranscriptEntry[], recordingUrl: string | null,
): Static<typeof CallSchema> {
  return {
    id: call.id,
    assistant_id: call.assistantUuid,
    assistant_name: call.assistantName,
    campaign_id: call.campaignId,
    campaign_name: call.campaignName,
    lead_id: call.leadId,
    type: call.type,
    duration: call.durationS,
    assistant_phone_number: call.assistantPhone,
    client_phone_number: call.customerPhone,
    status: call.status,
    end_reason: call.endReason,
    failure_reason: call.failureReason,
    transcript: transcriptText(entries),
    transcript_entries: entries.map((entry) => wireEntry(entry, call)),
    variables: call.variables,
    evaluation: call.evaluation,
    evaluation_error: call.evaluationError,
    webhook_response: call.webhookResponse,
    carrier_cost: dollarsFromMicros(call.carrierCostMicros),
    total_cost: dollarsFromMicros(call.totalCostMicros),
    answered_by: call.answeredBy,
    hearing: call.hearing,
    warnings: [...call.warnings],
    recording_url: recordingUrl,
    latency: call.turns.map((turn) => ({
      endpoint_ms: turn.endpointMs,
      final_transcript_ms: turn.finalTranscriptMs,
      first_token_ms: turn.firstTokenMs,
      first_audio_ms: turn.firstAudioMs,
      heard_ms: turn.heardMs,
    })),
    created_at: plainSeconds(call.createdAt),
    updated_at: plainSeconds(call.updatedAt),
  };
}
