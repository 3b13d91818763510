// Maps carriers' reports of a call to events of a leg. Pure.
import type { LegEndCause, LegEvent } from "#providers/carriers/port.ts";

export const CAUSE_OF_SIP: Record<string, LegEndCause> = {
  408: "no_answer", 480: "no_answer", 487: "no_answer",
  486: "busy", 600: "busy",
  603: "rejected", 607: "rejected", 608: "rejected",
};

export const ended = (cause: LegEndCause): LegEvent => ({ kind: "ended", cause });

/** Twilio's CallStatus, and SignalWire's. */
const TWILIO: Record<string, LegEvent | null> = {
  queued: null,
  initiated: null,
  ringing: { kind: "ringing" },
  "in-progress": { kind: "answered" },
  answered: { kind: "answered" },
  completed: ended("far_hung_up"),
  busy: ended("busy"),
  "no-answer": ended("no_answer"),
  // Only we can cancel a call.
  canceled: ended("we_hung_up"),
  failed: ended("failed"),
};

/** Causes of an unanswered call that the SIP code may state more precisely than the status. */
const REFINED = new Set<LegEndCause>(["busy", "no_answer", "failed"]);

/** The table's own property of that name, or null. */
export const entryOf = <T>(table: Record<string, T>, key: string | null): T | null =>
  key !== null && Object.hasOwn(table, key) ? table[key] ?? null : null;

/** `AnsweredBy`: human, machine_start, machine_end_beep, ..., fax, unknown. */
function answererOf(text: string): LegEvent {
  if (text === "human") return { kind: "answered_by", by: "human" };
  const isMachine = text === "fax" || text.startsWith("machine_");
  return { kind: "answered_by", by: isMachine ? "machine" : "unknown" };
}

export function twilioEvents(form: URLSearchParams): LegEvent[] {
  const answeredBy = form.get("AnsweredBy");
  // The report that brings the detection's result has no status.
  const detected = answeredBy === null || answeredBy === "" ? [] : [answererOf(answeredBy)];
  const event = entryOf(TWILIO, form.get("CallStatus"));
  if (!event) return detected;
  if (event.kind !== "ended") return [event, ...detected];
  const refined = REFINED.has(event.cause)
    ? entryOf(CAUSE_OF_SIP, form.get("SipResponseCode"))
    : null;
  return [...detected, refined ? ended(refined) : event];
}

interface CallProgress {
  /** The events that are new, in an order in which a leg may publish them. */
  receive(events: LegEvent[]): LegEvent[];
}

/** Carriers report twice, late and out of order; a leg rings, is answered and ends once. */
export function createCallProgress(): CallProgress {
  const published = new Set<LegEvent["kind"]>();
  const isNews = ({ kind }: LegEvent): boolean => {
    if (published.has(kind) || published.has("ended")) return false;
    return kind !== "ringing" || !published.has("answered");
  };
  return {
    receive: (events) => events.filter((event) => {
      const isNew = isNews(event);
      if (isNew) published.add(event.kind);
      return isNew;
    }),
  };
}
