// A call as these pages hold it: the record, its live events, and what is derived from them. Events
// are applied by the same function that the server's own tests use.
import { applyCallEvent, type CallFrame } from "#features/calls/replica.ts";
import type { Frame, paths } from "#client/client.ts";
import { instant, words } from "#ui/dashboard/kit/format.ts";

export type CallRecord =
  paths["/user/calls/{id}"]["get"]["responses"][200]["content"]["application/json"];
type RecordedEntry = CallRecord["transcript_entries"][number];
export type Entry = Omit<RecordedEntry, "type" | "timestamp">;
/** The record with its transcript as a list, as snapshots have it. */
export type WatchedCall = Omit<CallRecord, "transcript" | "transcript_entries"> & {
  transcript: Entry[];
};

export const STATUSES = [
  "initiated", "ringing", "in-progress", "ended", "completed", "ended_by_customer",
  "ended_by_assistant", "no-answer", "busy", "failed",
] as const;
export const TYPES = ["inbound", "outbound", "web"] as const;

const DIALLING = new Set(["initiated", "ringing"]);
/** Dialled, ringing or talking; while it is `ended`, the work after the call is still running. */
export const isLive = (status: string): boolean => DIALLING.has(status) || status === "in-progress";
export const isFinal = (status: string): boolean => !isLive(status) && status !== "ended";

export function applyFrame(call: WatchedCall | null, frame: Frame): WatchedCall | null {
  const next = applyCallEvent(call, frame as CallFrame) as WatchedCall | null;
  // The event says more of a new call than a replica keeps.
  return frame.type === "call_created" && next
    ? { ...next, ...(frame.call as Partial<WatchedCall>) }
    : next;
}

/** The time in milliseconds at which the call was answered; null: the frame is not about that. */
export function answerOf(frame: Frame): number | null {
  const isAnswer = frame.type === "call_status_changed" && frame.status === "in-progress"
    && frame.previous_status !== "in-progress";
  return isAnswer && typeof frame.at === "string" ? instant(frame.at).getTime() : null;
}

/**
 * The record has no time of answering. It follows from the first entry, which has both its time and
 * its offset; before any entry, answering was the last change of the record.
 */
export function answeredAtOf(call: CallRecord): number | null {
  if (call.status !== "in-progress") return null;
  const [first] = call.transcript_entries;
  return first
    ? first.timestamp * 1000 - first.start_ms
    : instant(call.updated_at).getTime();
}

type Party = Pick<CallRecord, "type" | "client_phone_number">;
export const customerOf = ({ type, client_phone_number: number }: Party): string =>
  number ?? (type === "web" ? "Web caller" : "Unknown number");

export const typeWords = (type: string): string => type === "web" ? "Web call" : words(type);

const SPEAKERS: Record<string, string> = { bot: "Assistant", operator: "Colleague", colleague: "Colleague" };
export const speakerOf = (sender: string, author?: { name: string }): string =>
  author?.name ?? SPEAKERS[sender] ?? "Customer";

/**
 * Without the origin: recording links work at any address of the server, not only its configured
 * one.
 */
export function recordingPath(url: string): string {
  const { pathname, search } = new URL(url, location.href);
  return pathname + search;
}
