// Webhook payloads, as in the contract. Pure; called inside the transaction of the fact they
// report.
import { wireQuality } from "#features/calls/records/quality.ts";
import { senderOf, transcriptText } from "#features/calls/records/transcript.ts";
import { legFile, wireTransfers, type Transfer, type TransferLine } from "#features/calls/records/transfers.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { AttachmentBody, Author, Rating } from "#events/events.ts";
import type { LegQuality } from "#providers/carriers/port.ts";

interface PostCallFacts {
  id: number;
  assistantUuid: string;
  assistantName: string;
  type: string;
  status: string;
  endReason: string | null;
  failureReason: string | null;
  customerPhone: string | null;
  assistantPhone: string | null;
  durationS: number;
  variables: unknown;
  evaluation: unknown;
  createdAt: Instant;
  answeredAt: Instant | null;
  finishedAt: Instant;
  transfers: readonly Transfer[];
  quality: LegQuality | null;
  lines: TransferLine[];
  lead: Record<string, unknown> | null;
  campaign: Record<string, unknown> | null;
}

const formatted = (lines: { speaker: string; text: string }[]): string =>
  lines.map(({ speaker, text }) => `${speaker}: ${text}`).join("\n");

export function postCallBody(call: PostCallFacts): Record<string, unknown> {
  const spoken = call.lines.filter(({ text }) => text !== "");
  const answeredS = (call.answeredAt ?? call.createdAt) / 1_000_000;
  return {
    id: call.id,
    assistant_id: call.assistantUuid,
    assistant_name: call.assistantName,
    type: call.type,
    customer_phone: call.customerPhone,
    assistant_phone: call.assistantPhone,
    duration: call.durationS,
    status: call.status,
    end_reason: call.endReason,
    failure_reason: call.failureReason,
    extracted_variables: call.evaluation,
    input_variables: call.variables,
    transcript: spoken.map((line) => ({
      text: line.text,
      type: "transcript",
      sender: senderOf(line),
      ...(line.author ? { author: line.author } : {}),
      timestamp: Math.round((answeredS + line.startMs / 1000) * 1000) / 1000,
      ...(line.transfer === undefined ? {} : { transfer: line.transfer }),
    })),
    formatted_transcript: transcriptText(spoken),
    created_at: isoMicros(call.createdAt),
    finished_at: isoMicros(call.finishedAt),
    lead: call.lead && { ...call.lead, campaign: call.campaign },
    campaign: call.campaign,
    ...(call.quality ? { quality: wireQuality(call.quality, call.answeredAt) } : {}),
    ...(call.transfers.length > 0 ? {
      transfers: wireTransfers(call, spoken, () => null),
    } : {}),
  };
}

interface ConversationFacts {
  id: number;
  uuid: string;
  assistantUuid: string;
  type: string;
  messageCount: number;
  variables: Record<string, unknown>;
  createdAt: Instant;
  endedAt: Instant;
  timeZone: string;
  messages: {
    role: "user" | "assistant"; content: string; author: Author | null; createdAt: Instant;
    rating: Rating | null; attachments: AttachmentBody[];
  }[];
}

export function conversationEndedBody(facts: ConversationFacts): Record<string, unknown> {
  const { messages, timeZone, variables } = facts;
  const name = variables.customer_name;
  return {
    id: facts.id,
    conversation_id: facts.uuid,
    assistant_id: facts.assistantUuid,
    type: facts.type,
    message_count: facts.messageCount,
    status: "ended",
    extracted_variables: {},
    input_variables: variables,
    transcript: messages.map(({ role, content, author, rating, createdAt }) => ({
      role: author ? "operator" : role,
      content,
      ...(author ? { author } : {}),
      ...(rating ? { rating } : {}),
      timestamp: isoLocal(createdAt, timeZone),
      timestamp_unix: Math.floor(createdAt / 1_000_000),
    })),
    formatted_transcript: formatted(messages.map(({ role, content, author }) =>
      ({ speaker: author?.name ?? (role === "assistant" ? "AI" : "Customer"), text: content }))),
    attachments: messages.flatMap(({ attachments }) => attachments.map(({ id, name, type }) => ({
      id, type: type.startsWith("image/") ? "image" : "document", filename: name,
    }))),
    customer_phone: null,
    customer_name: typeof name === "string" ? name : null,
    sender: null,
    created_at: isoLocal(facts.createdAt, timeZone),
    ended_at: isoLocal(facts.endedAt, timeZone),
  };
}

/** The stored body with what is known only when it is sent. */
export const completed = (
  body: string,
  late: { extracted_variables: Record<string, unknown> },
): string => JSON.stringify({ ...JSON.parse(body) as Record<string, unknown>, ...late });

/** Adds links to the recordings of the call and its legs; the links expire. */
export function withRecordings(
  body: string, file: string, linkOf: (file: string) => string,
): string {
  const call = JSON.parse(body) as { transfers?: ReturnType<typeof wireTransfers> };
  let legs = 0;
  const transfers = call.transfers?.map((one) => {
    if (one.kind === "cold") return one;
    legs += 1;
    return one.duration === 0 ? one : { ...one, recording_url: linkOf(legFile(file, legs)) };
  });
  return JSON.stringify({ ...call, ...transfers && { transfers }, recording_url: linkOf(file) });
}

/** Adds links to the files of an ended conversation. */
export function withFiles(body: string, folderUrl: string): string {
  const ended = JSON.parse(body) as { attachments: { id: string }[] };
  const attachments = ended.attachments.map((one) => ({ ...one, url: `${folderUrl}/${one.id}` }));
  return JSON.stringify({ ...ended, attachments });
}

/** An event of the account's log; `id` is its position there, for catching up. */
export const eventBody = (
  event: { accountSequence: number; type: string; json: string }, now: Instant,
): Record<string, unknown> => {
  const { type, ...data } = JSON.parse(event.json) as { type: string };
  return { id: String(event.accountSequence), type, timestamp: isoMicros(now), data };
};

const zones = new Map<string, Intl.DateTimeFormat>();

/** Precise to the second, with the zone's offset: `2026-01-05T10:00:00+01:00`. */
function isoLocal(instant: Instant, timeZone: string): string {
  const format = zones.get(timeZone) ?? new Intl.DateTimeFormat("en-GB", {
    timeZone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit",
    minute: "2-digit", second: "2-digit", timeZoneName: "longOffset",
  });
  zones.set(timeZone, format);
  const parts = new Map(
    format.formatToParts(instant / 1000).map(({ type, value }) => [type, value]));
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? "";
  const offset = part("timeZoneName").replace("GMT", "") || "+00:00";
  return `${part("year")}-${part("month")}-${part("day")}T${part("hour")}:${part("minute")}:`
    + `${part("second")}${offset}`;
}
