// What the end of a call means for the lead that was called, and for the campaign. Pure; called
// inside the transaction that settles the lead.
import type { Call } from "#features/calls/records/records.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant } from "#core/system.ts";
import { MINUTE_MICROS } from "#core/zones.ts";
import type { LeadOutcome } from "#features/leads/leads.ts";
import type { Campaign } from "./campaigns.ts";

export const RETRY_MINUTES_MAX = 4320;

/** Nothing is postponed for longer: a later time was written before the clock was set back. */
const isAhead = (until: Instant, now: Instant, longestMicros: number): boolean =>
  until > now && until <= now + longestMicros;

export const isDue = (nextTryAt: Instant, now: Instant): boolean =>
  !isAhead(nextTryAt, now, RETRY_MINUTES_MAX * MINUTE_MICROS);

/** Until when the open circuit breaker pauses calls; null: it is closed. */
export const pauseAt = ({ pausedUntil }: Breaker, now: Instant): Instant | null =>
  pausedUntil !== null && isAhead(pausedUntil, now, LIMITS.breakerPauseMsMax * 1000)
    ? pausedUntil
    : null;

export type EndedCall = Pick<Call, "status" | "endReason" | "answeredBy" | "evaluation">;

/** `uncounted`: to be retried without counting this try. */
type TryOutcome = "reached" | "retry" | "uncounted";

type RetryRules = Pick<
  Campaign, "retryOnVoicemail" | "retryOnGoalIncomplete" | "goalVariable">;

/** `call` is null when its record was deleted before the lead was settled. */
export function outcomeOf(rules: RetryRules, call: EndedCall | null): TryOutcome {
  if (!call) return "retry";
  switch (call.status) {
    case "failed":
      return call.endReason === "server_restarted" ? "uncounted" : "retry";
    case "busy":
    case "no-answer":
      return "retry";
    default: {
      if (call.answeredBy === "machine") return rules.retryOnVoicemail ? "retry" : "reached";
      const { retryOnGoalIncomplete, goalVariable } = rules;
      const wantsGoal = retryOnGoalIncomplete && goalVariable !== null;
      return wantsGoal && call.evaluation[goalVariable] !== true ? "retry" : "reached";
    }
  }
}

/** The outcome of the call; null: its record is deleted. */
export function outcomeNameOf(
  { goalVariable }: Pick<RetryRules, "goalVariable">, call: EndedCall | null,
): LeadOutcome | null {
  if (!call) return null;
  switch (call.status) {
    case "failed":
      if (call.endReason === "server_restarted") return "interrupted";
      return call.endReason === "carrier_failed" ? "carrier_failed" : "failed";
    case "busy":
      return "busy";
    case "no-answer":
      return "no_answer";
    default:
      if (call.answeredBy === "machine") return "voicemail";
      return goalVariable !== null && call.evaluation[goalVariable] !== true
        ? "goal_missed"
        : "answered";
  }
}

const isCarrierFailure = (call: EndedCall): boolean =>
  call.status === "failed" && call.endReason === "carrier_failed";

export interface Breaker {
  /** Consecutive carrier failures. */
  failures: number;
  /** No call is tried until then. */
  pausedUntil: Instant | null;
}

/** Failures of calls begun before it opened are ignored: they say nothing about the carrier now. */
export function breakerAfter(breaker: Breaker, call: EndedCall | null, now: Instant): Breaker {
  if (!call || call.endReason === "server_restarted") return breaker;
  if (!isCarrierFailure(call)) return { failures: 0, pausedUntil: null };
  if (pauseAt(breaker, now) !== null) return breaker;
  const failures = breaker.failures + 1;
  const beyond = failures - LIMITS.breakerFailures;
  if (beyond < 0) return { failures, pausedUntil: null };
  const pauseMs = Math.min(LIMITS.breakerPauseMs * 2 ** beyond, LIMITS.breakerPauseMsMax);
  return { failures, pausedUntil: now + pauseMs * 1000 };
}

/** After a pause, a single call probes whether the carrier works again. */
export const parallelNow = ({ parallelMax, failures }: Campaign): number =>
  failures >= LIMITS.breakerFailures ? 1 : parallelMax;
