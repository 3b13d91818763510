// Reads Vonage's webhooks about a call. Pure; no input from the wire makes it throw.
import { jsonOf } from "#core/values.ts";
import type { LegEndCause, LegEvent } from "#providers/carriers/port.ts";
import { withPlus } from "./numbers.ts";
import type { CallReport, CarrierRequest } from "./port.ts";
import { CAUSE_OF_SIP, ended, entryOf } from "./status.ts";
import { isOfAddedLeg } from "./vonage-ncco.ts";

type Body = Record<string, unknown>;

/** Keyed by `status`. Any other status is irrelevant to a leg. */
const STATUSES: Record<string, LegEvent> = {
  ringing: { kind: "ringing" },
  answered: { kind: "answered" },
  human: { kind: "answered_by", by: "human" },
  machine: { kind: "answered_by", by: "machine" },
  completed: ended("far_hung_up"),
  busy: ended("busy"),
  // Only we can cancel a call.
  cancelled: ended("we_hung_up"),
  // Nobody answered or the call was declined: `detail` or the SIP code may tell which.
  unanswered: ended("no_answer"),
  timeout: ended("no_answer"),
  rejected: ended("rejected"),
  failed: ended("failed"),
};

const DETAILS: Record<string, LegEndCause> = { declined: "rejected", unavailable: "no_answer" };

/** Causes of an unanswered call that `detail` or the SIP code may state more precisely. */
const REFINED = new Set<LegEndCause>(["busy", "no_answer", "rejected", "failed"]);

/** Vonage's ids are UUIDs, some of them without dashes. */
const ID = /^[\w-]{1,64}$/;

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

const codeOf = (value: unknown): string | null =>
  (typeof value === "number" ? String(value) : textOf(value));

function bodyOf(bytes: Uint8Array): Body | null {
  const value = jsonOf(Buffer.from(bytes).toString("utf8"));
  return typeof value === "object" && value !== null ? value as Body : null;
}

function eventsOf({ status, detail, sip_code: code }: Body): LegEvent[] {
  const event = entryOf(STATUSES, textOf(status));
  if (!event) return [];
  if (event.kind !== "ended" || !REFINED.has(event.cause)) return [event];
  const refined = entryOf(DETAILS, textOf(detail)) ?? entryOf(CAUSE_OF_SIP, codeOf(code));
  return [refined ? ended(refined) : event];
}

const isSocket = (value: unknown): boolean => /^wss?:/i.test(textOf(value) ?? "");

/** Null also of the WebSocket's own leg, which is no call. */
export function readVonage({ method, url, body: bytes }: CarrierRequest): CallReport | null {
  const body = method === "POST" && !isOfAddedLeg(url) ? bodyOf(bytes) : null;
  if (!body || isSocket(body.to) || isSocket(body.from)) return null;
  // The report of who answered has `call_uuid`, all others have `uuid`.
  const callId = textOf(body.uuid) ?? textOf(body.call_uuid);
  if (callId === null || !ID.test(callId)) return null;
  const to = withPlus(textOf(body.to));
  // Only the request for an incoming call's NCCO has no status.
  const isOffer = body.status === undefined && to !== null;
  return {
    callId,
    from: withPlus(textOf(body.from)),
    to,
    isOffer,
    events: eventsOf(body),
    reply: null,
  };
}
