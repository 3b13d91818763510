// The end of a call: its final status, why it ended and what it costs; and the goodbye of calls
// that a stop of the server ends. Called by calling.ts and from-media.ts.
import { LIMITS } from "#core/limits.ts";
import { createRecurring } from "#core/recurring.ts";
import { wait } from "#core/system.ts";
import { keepAll, type AfterCall } from "./after-call.ts";
import { chargeOf, failureOf, type EndFacts } from "./records/failures.ts";
import type { AnsweredStatus, CallStatus } from "./records/status.ts";
import type { EndReason } from "./records/records.ts";
import { callNow, type CallingOptions, type LiveCall } from "./live-call.ts";
import type { FromMedia } from "./voice/protocol.ts";
import type { CallSummary } from "./voice/brain.ts";

/** The end of a call whose media was never opened. */
export const neverOpened = (reason: EndReason, why: unknown) => ({
  reason,
  failureReason: failureOf({
    reason, isAnswered: false, isOwnLine: true, wasMute: false,
    detail: why instanceof Error ? why.message : String(why),
  }),
});

/** The final status of a call that was never answered. */
function unansweredStatus({ cause }: CallSummary): CallStatus {
  if (cause === "busy") return "busy";
  // A caller who hung up before the answer counts as not answered too.
  return cause === "no_answer" || cause === "far_hung_up" ? "no-answer" : "failed";
}

function answeredStatus(reason: EndReason): AnsweredStatus | "failed" {
  switch (reason) {
    case "customer_hung_up":
    // Their side went away without signalling an end.
    case "media_timeout":
      return "ended_by_customer";
    case "transferred":
    // The server said goodbye to them.
    case "server_restarted":
      return "completed";
    case "rejected":
    case "busy":
    case "no_answer":
    case "carrier_failed":
    case "speech_failed":
    case "model_failed":
      return "failed";
    case "assistant_ended":
    case "silence":
    case "no_first_words":
    case "max_duration":
    case "voicemail":
    case "balance":
    case "operator":
      return "ended_by_assistant";
  }
}

function endFactsOf(call: LiveCall, { reason, detail = null }: CallSummary): EndFacts {
  const { given, failure } = call.replies;
  // The session gave up after failures; only here is it known that they were the model's.
  const isModels = reason === "speech_failed" && detail === null && failure !== null;
  const wasMute = failure !== null && given === 0;
  return {
    reason: isModels ? "model_failed" : reason,
    isAnswered: call.answered !== null,
    isOwnLine: call.isOwnLine,
    detail: isModels || wasMute ? failure : detail,
    wasMute,
  };
}

/** After this much silence nobody is taken to be there, as on the telephone. */
export const SILENT_MS = 5000;

type Beating = Pick<CallingOptions, "calls" | "log" | "system">;

const BEATING = "storing that calls go on";

/** Beats for calls with a sign of life only: if the process dies, silent time is not billed. */
export function keepBeating(options: Beating, live: ReadonlyMap<number, LiveCall>): void {
  const recurring = createRecurring(options.log);
  options.system.every(LIMITS.callBeatMs, () =>
    void recurring.follow(BEATING, beat(options, live)));
}

async function beat(options: Beating, live: ReadonlyMap<number, LiveCall>): Promise<void> {
  const talking = [...live.values()].filter(({ answered, isSilent, face }) =>
    answered && !isSilent && (face?.silentMs?.() ?? 0) < SILENT_MS);
  if (talking.length === 0) return;
  await options.calls.beat(talking.map((call) => (
    { id: call.id, accountId: call.accountId, at: callNow(options, call) })));
}

export async function conclude(
  options: CallingOptions, call: LiveCall, over: Extract<FromMedia, { kind: "over" }>,
  finish: AfterCall["finish"],
): Promise<void> {
  const { calls } = options;
  const { turns, silentMs, quality } = over.summary;
  const facts = endFactsOf(call, over.summary);
  const { reason } = facts;
  const failureReason = failureOf(facts);
  call.face?.over(reason);
  for (const listener of [...call.listeners]) listener.over();
  if (!call.answered) {
    return calls.change(call, unansweredStatus(over.summary), { reason, failureReason });
  }
  // Silence at the end of the call is not counted: nobody was there.
  const endedAt = callNow(options, call) - Math.round((silentMs ?? 0) * 1000);
  const functionCalls = [...call.functionCalls.values()].flat();
  if (functionCalls.length > 0) {
    await calls.addTranscript(call, {
      speaker: "assistant", text: "", startMs: call.saidMs, endMs: call.saidMs, interrupted: true,
      functionCalls,
    });
  }
  const finalStatus = answeredStatus(reason);
  const isRecorded = await hasRecording(options, call, over.recordedMs);
  await calls.end(call, {
    finalStatus, reason, failureReason, charge: chargeOf(facts), turns, hasRecording: isRecorded,
    quality: quality ?? call.face?.quality?.() ?? null,
    endedAt,
  });
  if (finalStatus !== "failed") return finish(call.id);
  const ended = call.recordingFile === null ? null : await calls.findById(call.id);
  if (ended) await keepAll(options, ended);
}

/** Also tries to repair a recording the media thread could not close: it may have sound. */
function hasRecording(
  { recordings }: CallingOptions, { recordingFile }: LiveCall, recordedMs: number,
): boolean | Promise<boolean> {
  if (recordingFile === null || recordedMs > 0) return recordingFile !== null;
  return recordings.repair(recordingFile);
}

/** Ends a call because the server stops; an answered one hears a goodbye first. */
export function takeLeave(
  { media }: CallingOptions, { id: callId, answered, isOver }: LiveCall,
): void {
  if (isOver) return;
  const reason = "server_restarted";
  if (answered) media.send({ kind: "end_after_speech", callId, reason, to: null });
  else media.send({ kind: "hang_up", callId, reason });
}

export async function sayGoodbye(
  options: CallingOptions, live: ReadonlyMap<number, LiveCall>,
): Promise<void> {
  for (const call of live.values()) takeLeave(options, call);
  await untilOver(options, live, LIMITS.callGoodbyeMs);
}

/** Hangs up without a goodbye: on record these calls are over, and this process has no time. */
export function abandon(
  { media }: CallingOptions, live: ReadonlyMap<number, LiveCall>,
): void {
  for (const callId of live.keys()) {
    media.send({ kind: "hang_up", callId, reason: "server_restarted" });
  }
}

/** Waits until no call is left, including those opened meanwhile; for `waitMs` at most. */
export async function untilOver(
  { system }: Pick<CallingOptions, "system">, live: ReadonlyMap<number, LiveCall>, waitMs: number,
): Promise<void> {
  const late = wait(system, waitMs).then(() => "late" as const);
  while (live.size > 0) {
    const all = Promise.all([...live.values()].map(({ done }) => done.promise));
    if (await Promise.race([all, late]) === "late") return;
  }
}
