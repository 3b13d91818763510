// The states of a call as one table. No transition exists outside it; what a carrier says late or
// twice changes nothing.
export const CALL_STATUSES = [
  "initiated", "ringing", "busy", "in-progress", "ended", "completed", "ended_by_customer",
  "ended_by_assistant", "no-answer", "failed",
] as const;
export type CallStatus = (typeof CALL_STATUSES)[number];

/** What a call that was answered ends as, once the work after it is done. */
export type AnsweredStatus = "completed" | "ended_by_customer" | "ended_by_assistant";

/** `ended`: media is over, the work after the call (recording, evaluation) runs. */
const TRANSITIONS: Record<CallStatus, readonly CallStatus[]> = {
  initiated: ["ringing", "in-progress", "busy", "no-answer", "failed"],
  ringing: ["in-progress", "busy", "no-answer", "failed"],
  "in-progress": ["ended", "failed"],
  ended: ["completed", "ended_by_customer", "ended_by_assistant"],
  completed: [],
  ended_by_customer: [],
  ended_by_assistant: [],
  busy: [],
  "no-answer": [],
  failed: [],
};

/** Web calls skip `ringing`; every other call that is answered has rung, if only for a moment. */
export const mayChange = (from: CallStatus, to: CallStatus): boolean =>
  TRANSITIONS[from].includes(to);

export const isFinal = (status: CallStatus): boolean => TRANSITIONS[status].length === 0;

/** Still dialled, ringing or talking. */
export const isLive = (status: CallStatus): boolean => mayChange(status, "failed");
