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
  Nullable(Type.Integer(about(`${description}, in milliseconds; null if not known.`, example)));

const LatencySchema = Type.Object({
  at_ms: Nullable(Type.Integer(about(
    "When the caller stopped speaking, in milliseconds since the call was answered; null for calls "
    + "older than this measurement.",
    4200))),
  endpoint_ms: Stage("Until the end of the turn was detected", 320),
  final_transcript_ms: Stage("Until the transcript was final", 340),
  first_token_ms: Stage("Until the model's first token", 610),
  first_audio_ms: Stage("Until the first synthesised audio", 760),
  heard_ms: Stage("Until the caller heard the reply", 820),
}, named("TurnLatency", "How long each step of one reply took since the caller stopped speaking."));

const LegEntrySchema = Type.Object({
  text: Type.String(about("What was said.", "I have a caller for you.")),
  type: Type.Literal("transcript", about("Always transcript.")),
  sender: OneOf(["bot", "human"], about("Who spoke; human is the colleague.")),
  timestamp: Type.Number(about("When it began, in Unix seconds.", 1_772_443_860.25)),
}, named("LegEntry", "One transcript entry of the leg to a colleague."));

const TransferSchema = Type.Object({
  id: Type.Integer(about("Position among the call's transfers, counted from 1.", 1)),
  type: OneOf(TRANSFER_TYPES, about("The function that requested it.", "call_transfer")),
  kind: OneOf(["cold", "warm"], about(
    "`warm`: the colleague was called by this server, briefed and connected here.", "warm")),
  status: OneOf(TRANSFER_STATUSES, about(
    "`completed`: a colleague took the caller, the carrier accepted the transfer, or the other "
    + "assistant took over. For a cold transfer, whether somebody picked up is known only if the "
    + "carrier reports it.",
    "completed")),
  outcome: Nullable(OneOf(TRANSFER_OUTCOMES), about(
    "The outcome; null while in progress.", "completed")),
  stage: Nullable(OneOf(WARM_STAGES), about(
    "The stage of a warm transfer; null for a cold one.", "over")),
  failure_reason: Nullable(Type.String(), about(
    "Why it failed; null if it did not.", "The other side answered 603.")),
  to: Type.String(about("The same as `transfer_to`.", "+15550111")),
  transfer_to: Type.String(about(
    "Telephone number or SIP address; the name of an assistant.", "+15550111")),
  assistant_id: Nullable(Type.String(), about(
    "The uuid of the assistant it went to; null if it went to a line.", null)),
  duration: Type.Integer(about(
    "Seconds from the colleague's answer to the end of that leg; 0 for a cold transfer, which "
    + "bypasses this server.",
    30)),
  carrier_cost: Type.Number(about(
    "The carrier's charge for that leg, in USD; included in the call's cost.", 0.01)),
  recording_url: Nullable(Type.String(), about(
    "Link to the recording of a warm transfer's leg: the colleague on the left channel, what they "
    + "heard on the right. Expires as the call's link does; null if there is none or the call is "
    + "still in progress.",
    null)),
  transcript: Nullable(
    Type.Array(LegEntrySchema), about("The transcript of that leg; null if nothing was said or the "
      + "transfer was cold.")),
  formatted_transcript: Type.String(about("The transcript of that leg, line by line.",
    "AI: I have a caller for you.")),
  started_at: Type.String(about("The same as `created_at`.", "2026-03-02T10:01:00.000000Z")),
  ended_at: Nullable(Type.String(), about("The same as `finished_at`.", "2026-03-02T10:01:14.000000Z")),
  created_at: Type.String(about("When it was requested.", "2026-03-02T10:01:00.000000Z")),
  finished_at: Nullable(Type.String(), about(
    "When its outcome was known (for a warm transfer, when its leg ended); null while in progress.",
    "2026-03-02T10:01:14.000000Z")),
}, named("Transfer", "A transfer attempt."));

export const EntrySchema = Type.Object({
  text: Type.String(about(
    "The words; empty if functions were called, or if an operator's speech could not be "
    + "recognised.",
    "Hello, how can I help?")),
  type: Type.Literal("transcript", about("Always transcript.")),
  sender: OneOf(
    ["bot", "human", "operator", "colleague"],
    about("Who spoke. operator: a member of the account who took over the call; colleague: the "
      + "person a warm transfer called.")),
  author: Type.Optional(CallAuthorSchema),
  timestamp: Type.Number(about("When it began, in Unix seconds.", 1_772_443_800.25)),
  number: Type.Integer(about("Position in the call, counted from 1.", 1)),
  start_ms: Type.Integer(about("When it began, in milliseconds since the call was answered.", 250)),
  end_ms: Type.Integer(about("When it ended.", 1900)),
  interrupted: Type.Boolean(about("Whether the caller interrupted it.", false)),
  function_calls: Type.Optional(Type.Array(FunctionCallSchema, about(
    "Functions the model called for this message; absent if none."))),
  transfer: Type.Optional(Type.Integer(about(
    "The `id` of the warm transfer whose leg this was said on, by the assistant or the colleague; "
    + "absent for what the assistant and the caller say.",
    1))),
}, named("TranscriptEntry", "One transcript entry of a call."));
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
  status: Type.String(about("The call's status: its progress, or how it ended.", "completed")),
  end_reason: Nullable(Type.String(about("Why it ended; null: not yet.", "end_call"))),
  failure_reason: Nullable(Type.String({
    description: "Why the call failed or was not answered, and what to do about it; null if it did "
      + "not fail",
    examples: ["The number was busy. Call again later."],
  })),
  transcript: Type.String(about("The transcript, line by line.", "Assistant: Hello!")),
  transcript_entries: Type.Array(EntrySchema, about("The transcript, entry by entry.")),
  variables: Free("Variables the call started with.", { first_name: "Ada" }),
  evaluation: Free("The evaluation a model made, by the fields of `post_call_schema`.",
    { status: true }),
  evaluation_error: Nullable(Type.String(about(
    "Why there is no evaluation; null if there is one or none was configured.",
    "The model did not answer."))),
  webhook_response: Free("What the webhook endpoint answered.", { status: 200 }),
  carrier_cost: Type.Number(about(
    "The carrier's charge in USD, from the operator's rate list; 0 if no rate is known.",
    0.02)),
  total_cost: Type.Number(about(
    "Total cost in USD: what the account was charged plus `carrier_cost`.", 0.13)),
  answered_by: Type.String(about("human, machine or unknown.", "human")),
  hearing: Nullable(OneOf(HEARINGS, {
    description: "What transcribed the caller: this server's recogniser (`server`), a realtime "
      + "model, the caller's `browser`, or nothing, because the words were `typed` or come from a "
      + "`script`; null until the call is answered",
    examples: ["server"],
  })),
  warnings: WarningsSchema,
  recording_url: Nullable(Type.String(about(
    "Signed link to the recording, valid for one day; null if there is none.",
    "https://talk.example.com/api/recordings/0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11?expires=1&signature=2"))),
  transfers: Type.Array(TransferSchema, about(
    "Every transfer attempt, in the order requested.")),
  latency: Type.Array(LatencySchema, about("The latency of each reply, by step.")),
  quality: Nullable(QualitySchema, about(
    "The call's audio quality; null while the call lasts, if it was never answered, or if only the "
    + "carrier knows.")),
  ...CallDeskFields,
  ...PLAIN_TIMES,
}, named("Call", "A call with its transcript."));

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
