// Calls on the wire: records as the contract shows them, with members beyond the contract.
import { Type, type Static } from "@sinclair/typebox";
import { WarningsSchema } from "#features/assistants/warnings.ts";
import { dollarsFromMicros } from "#core/money.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { plainSeconds } from "#core/system.ts";
import { FunctionCallSchema, PLAIN_TIMES } from "#http/answers.ts";
import { CallAuthorSchema, CallDeskFields, callDeskItem } from "./desk-wire.ts";
import { QualitySchema } from "./quality-wire.ts";
import { wireQuality } from "./quality.ts";
import { HEARINGS, type Call, type TranscriptEntry } from "./records.ts";
import { senderOf, transcriptText } from "./transcript.ts";
import { TRANSFER_STATUSES, TRANSFER_TYPES, wireTransfers } from "./transfers.ts";
import { TRANSFER_OUTCOMES, WARM_STAGES } from "./warm-stages.ts";

const Free = (description: string, example: object) =>
  Type.Record(Type.String(), Type.Unknown(), about(description, example));
const Stage = (description: string, example: number) =>
  Nullable(Type.Integer(about(`${description}, in milliseconds; null: not known.`, example)));

const LatencySchema = Type.Object({
  at_ms: Nullable(Type.Integer(about(
    "When the caller stopped speaking, in milliseconds since the answer; null: a call of before it "
      + "was kept.", 4200))),
  endpoint_ms: Stage("Until the end of the turn was decided", 320),
  final_transcript_ms: Stage("Until the words were final", 340),
  first_token_ms: Stage("Until the model's first word", 610),
  first_audio_ms: Stage("Until the voice's first sound", 760),
  heard_ms: Stage("Until the caller heard it", 820),
}, named("TurnLatency", "What one reply waited for since the caller stopped speaking."));

const LegEntrySchema = Type.Object({
  text: Type.String(about("What was said.", "I have a caller for you.")),
  type: Type.Literal("transcript", about("Always transcript.")),
  sender: OneOf(["bot", "human"], about("Who said it; human: the colleague.")),
  timestamp: Type.Number(about("When it began, in Unix seconds.", 1_772_443_860.25)),
}, named("LegEntry", "One thing that was said on the leg to a colleague."));

const TransferSchema = Type.Object({
  id: Type.Integer(about("Its place among the call's transfers, counted from 1.", 1)),
  type: OneOf(TRANSFER_TYPES, about("The function that asked for it.", "call_transfer")),
  kind: OneOf(["cold", "warm"], about(
    "`warm`: the colleague was called by this server, briefed and connected here.", "warm")),
  status: OneOf(TRANSFER_STATUSES, about(
    "`completed`: a colleague took the caller, the carrier took the caller on, or the other assistant "
      + "took over; whether somebody picked up is known of a cold one only where the carrier reports it.",
    "completed")),
  outcome: Nullable(OneOf(TRANSFER_OUTCOMES), about(
    "What became of it; null: it is in progress.", "completed")),
  stage: Nullable(OneOf(WARM_STAGES), about(
    "How far a warm one is; null: it is a cold one.", "over")),
  failure_reason: Nullable(Type.String(), about(
    "Why it failed; null: it did not.", "The far end answered 603.")),
  to: Type.String(about("The same as `transfer_to`.", "+15550111")),
  transfer_to: Type.String(about(
    "Telephone number or SIP address; the name of an assistant.", "+15550111")),
  assistant_id: Nullable(Type.String(), about(
    "The uuid of the assistant it went to; null: to a line.", null)),
  duration: Type.Integer(about(
    "Seconds from the colleague's answer to the end of that leg; 0 for a cold one, whose talk is "
      + "between the carrier's lines.", 30)),
  carrier_cost: Type.Number(about(
    "What the carrier charges for that leg, in USD; part of the call's.", 0.01)),
  recording_url: Nullable(Type.String(), about(
    "Plays the leg of a warm one: the colleague left, what they heard right. Good for a while, as the "
      + "call's; null: there is none, or the call goes on.", null)),
  transcript: Nullable(
    Type.Array(LegEntrySchema), about("What was said on that leg; null: nothing, or a cold one.")),
  formatted_transcript: Type.String(about("The same, line by line.", "AI: I have a caller for you.")),
  started_at: Type.String(about("The same as `created_at`.", "2026-03-02T10:01:00.000000Z")),
  ended_at: Nullable(Type.String(), about("The same as `finished_at`.", "2026-03-02T10:01:14.000000Z")),
  created_at: Type.String(about("When it was asked for.", "2026-03-02T10:01:00.000000Z")),
  finished_at: Nullable(Type.String(), about(
    "When its outcome was known, of a warm one when its leg ended; null: it is in progress.",
    "2026-03-02T10:01:14.000000Z")),
}, named("Transfer", "A transfer that was tried."));

export const EntrySchema = Type.Object({
  text: Type.String(about(
    "What was said; empty: functions were called, or nothing could understand an operator.",
    "Hello, how can I help?")),
  type: Type.Literal("transcript", about("Always transcript.")),
  sender: OneOf(
    ["bot", "human", "operator", "colleague"],
    about("Who said it; operator: a person of the account who took the call over; colleague: who was "
      + "called by a warm transfer.")),
  author: Type.Optional(CallAuthorSchema),
  timestamp: Type.Number(about("When it began, in Unix seconds.", 1_772_443_800.25)),
  number: Type.Integer(about("Its place in the call, counted from 1.", 1)),
  start_ms: Type.Integer(about("When it began, in milliseconds since the call was answered.", 250)),
  end_ms: Type.Integer(about("When it ended.", 1900)),
  interrupted: Type.Boolean(about("Whether the caller interrupted it.", false)),
  function_calls: Type.Optional(Type.Array(FunctionCallSchema, about(
    "Functions the model called for it; left out where it called none."))),
  transfer: Type.Optional(Type.Integer(about(
    "The `id` of the warm transfer on whose leg it was said, by the assistant to the colleague or by "
      + "the colleague; left out between assistant and caller.", 1))),
}, named("TranscriptEntry", "One thing that was said on a call."));
export const CallSchema = Type.Object({
  id: Type.Integer(about("The call's number.", 12)),
  assistant_id: Type.String(about(
    "The assistant's uuid.", "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")),
  assistant_name: Type.String(about("The assistant's name.", "Front desk")),
  campaign_id: Nullable(Type.Integer(about("The campaign that called; null: none.", 1))),
  campaign_name: Nullable(Type.String(about("Its name; null: none.", "Spring offer"))),
  lead_id: Nullable(Type.Integer(about("The lead that was called; null: none.", 7))),
  type: Type.String(about("inbound, outbound or web.", "inbound")),
  duration: Type.Integer(about("Seconds from answer to end.", 64)),
  assistant_phone_number: Nullable(Type.String(about(
    "The assistant's number; null: none.", "+4930123456"))),
  client_phone_number: Nullable(Type.String(about(
    "The other side's number; null: not shown, or a web call.", "+4915112345678"))),
  status: Type.String(about("How far it is, or how it ended.", "completed")),
  end_reason: Nullable(Type.String(about("Why it ended; null: not yet.", "end_call"))),
  failure_reason: Nullable(Type.String({
    description: "Why the call failed or came to nothing, and what to do about it; null when nothing did",
    examples: ["The number was busy. Call again later."],
  })),
  transcript: Type.String(about("Everything said, line by line.", "Assistant: Hello!")),
  transcript_entries: Type.Array(EntrySchema, about("The same, entry by entry.")),
  variables: Free("Values it was begun with.", { first_name: "Ada" }),
  evaluation: Free("What a model found out, by `post_call_schema`.", { status: true }),
  evaluation_error: Nullable(Type.String(about(
    "Why it was not evaluated; null: it was, or was not to be.", "The model did not answer."))),
  webhook_response: Free("What the webhook's receiver answered.", { status: 200 }),
  carrier_cost: Type.Number(about(
    "What the carrier charges for it, in USD, by the operator's list of rates; 0: none is known.",
    0.02)),
  total_cost: Type.Number(about(
    "All fees together, in USD: what the account was charged, and `carrier_cost`.", 0.13)),
  answered_by: Type.String(about("human, machine or unknown.", "human")),
  hearing: Nullable(OneOf(HEARINGS, {
    description: "Who understood the caller: this server's recogniser (`server`), a realtime model, "
      + "the caller's own `browser`, or nobody had to, since the words were `typed` or are those of a "
      + "`script`; null until the call is answered",
    examples: ["server"],
  })),
  warnings: WarningsSchema,
  recording_url: Nullable(Type.String(about(
    "Signed link to the recording, good for a day; null: there is none.",
    "https://talk.example.com/api/recordings/0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11?expires=1&signature=2"))),
  transfers: Type.Array(TransferSchema, about(
    "Each transfer that was tried, in the order they were asked for.")),
  latency: Type.Array(LatencySchema, about("What every reply waited for.")),
  quality: Nullable(QualitySchema, about(
    "How the sound came through; null: not over yet, never answered, or the carrier's to know.")),
  ...CallDeskFields,
  ...PLAIN_TIMES,
}, named("Call", "A call with everything that was said."));

function wireEntry(entry: TranscriptEntry, call: Call): Static<typeof EntrySchema> {
  const answeredS = (call.answeredAt ?? call.createdAt) / 1_000_000;
  return {
    text: entry.text,
    type: "transcript",
    sender: senderOf(entry),
    ...(entry.author ? { author: entry.author } : {}),
    timestamp: Math.round((answeredS + entry.startMs / 1000) * 1000) / 1000,
    number: entry.number,
    start_ms: entry.startMs,
    end_ms: entry.endMs,
    interrupted: entry.interrupted,
    ...(entry.functionCalls.length > 0 ? { function_calls: entry.functionCalls } : {}),
    ...(entry.transfer === undefined ? {} : { transfer: entry.transfer }),
  };
}

export function wireCall(
  call: Call, entries: TranscriptEntry[], linkOf: (file: string) => string,
): Static<typeof CallSchema> {
  const urlOf = (file: string): string | null =>
    (call.recordingFile === null || call.endedAt === null ? null : linkOf(file));
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
    recording_url: call.recordingFile === null ? null : urlOf(call.recordingFile),
    transfers: wireTransfers(call, entries, urlOf),
    latency: call.turns.map((turn) => ({
      at_ms: turn.atMs ?? null,
      endpoint_ms: turn.endpointMs,
      final_transcript_ms: turn.finalTranscriptMs,
      first_token_ms: turn.firstTokenMs,
      first_audio_ms: turn.firstAudioMs,
      heard_ms: turn.heardMs,
    })),
    quality: call.quality && wireQuality(call.quality, call.answeredAt),
    ...callDeskItem(call.desk),
    created_at: plainSeconds(call.createdAt),
    updated_at: plainSeconds(call.updatedAt),
  };
}
