// A campaign's results: figures of its calls by quarter of an hour, how fast it calls, when it will
// be finished, and why it is paused. Records and pure rules; the figures are written by
// storage/campaigns/figures.ts and read by campaigns.ts.
import type { CallStatus } from "#features/calls/records/status.ts";
import type { LeadOutcome, StateCount } from "#features/leads/leads.ts";
import { dayAfter } from "#core/days.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import { dayAt, dayStart, MINUTE_MICROS } from "#core/zones.ts";
import type { CampaignReason } from "#events/events.ts";
import type { Campaign } from "./campaigns.ts";
import { isOpenSomewhere } from "./hours.ts";
import { pauseAt } from "./rules.ts";

const SLOT_MICROS = 15 * MINUTE_MICROS;
export const slotOf = (instant: Instant): Instant => instant - instant % SLOT_MICROS;

export interface CallFigures {
  calls: number;
  /** Calls that a person answered. */
  answered: number;
  voicemail: number;
  /** Calls with a person that reached the campaign's goal. */
  goals: number;
  busy: number;
  noAnswer: number;
  failed: number;
  talkSeconds: number;
  costMicros: Micros;
}

export interface Slot extends CallFigures {
  slot: Instant;
}

/** A lead that is being called. */
export interface Called {
  leadId: number;
  mainId: number | null;
  phoneNumber: string;
  variables: Record<string, string>;
  callId: number;
  status: CallStatus;
  since: Instant;
  answeredAt: Instant | null;
}

export interface CampaignFigures {
  totals: CallFigures;
  /** The slots of the requested range, oldest first. */
  slots: Slot[];
  states: StateCount[];
  /** Time zones of leads that wait or are being called, as CampaignStore.zones has them. */
  zones: string[];
  /** Leads in the queue that are due now. */
  due: number;
  /** Oldest first. */
  calling: Called[];
}

const NONE: CallFigures = {
  calls: 0, answered: 0, voicemail: 0, goals: 0, busy: 0, noAnswer: 0, failed: 0, talkSeconds: 0,
  costMicros: 0,
};

const sumOf = (parts: readonly CallFigures[]): CallFigures =>
  parts.reduce<CallFigures>((sum, part) => ({
    calls: sum.calls + part.calls,
    answered: sum.answered + part.answered,
    voicemail: sum.voicemail + part.voicemail,
    goals: sum.goals + part.goals,
    busy: sum.busy + part.busy,
    noAnswer: sum.noAnswer + part.noAnswer,
    failed: sum.failed + part.failed,
    talkSeconds: sum.talkSeconds + part.talkSeconds,
    costMicros: sum.costMicros + part.costMicros,
  }), NONE);

/** The figures of one call, by how it ended. */
export const figuresOf = (
  outcome: LeadOutcome, goalVariable: string | null, call: { seconds: number; costMicros: Micros },
): CallFigures => ({
  calls: 1,
  answered: outcome === "answered" || outcome === "goal_missed" ? 1 : 0,
  voicemail: outcome === "voicemail" ? 1 : 0,
  goals: outcome === "answered" && goalVariable !== null ? 1 : 0,
  busy: outcome === "busy" ? 1 : 0,
  noAnswer: outcome === "no_answer" ? 1 : 0,
  failed: outcome === "carrier_failed" || outcome === "failed" || outcome === "interrupted" ? 1 : 0,
  talkSeconds: call.seconds,
  costMicros: call.costMicros,
});

const PACE_SLOTS = 4;
const PACE_MINUTES_MIN = 5;

/** Finished calls per hour, over the last hour at most; null: it does not run, or none finished. */
export function paceOf(campaign: Campaign, slots: readonly Slot[], now: Instant): number | null {
  const first = slotOf(now) - (PACE_SLOTS - 1) * SLOT_MICROS;
  const { calls } = sumOf(slots.filter(({ slot }) => slot >= first));
  if (calls === 0 || campaign.status !== "in-progress") return null;
  const since = Math.max(first, Math.min(campaign.statusAt ?? 0, now));
  const minutes = Math.max(PACE_MINUTES_MIN, (now - since) / MINUTE_MICROS);
  return (calls / minutes) * 60;
}

type Width = "hour" | "day";
export const WIDTHS: Record<Width, { days: number }> = { hour: { days: 2 }, day: { days: 30 } };

const HOUR_MICROS = 60 * MINUTE_MICROS;

/**
 * The figures hour by hour, or day by day in the campaign's time zone, from its first call in the
 * range until now; `start` is when each period begins.
 */
export function periodsOf(
  { timeZone }: Pick<Campaign, "timeZone">, slots: readonly Slot[], width: Width, now: Instant,
): { start: Instant; figures: CallFigures }[] {
  const [first] = slots;
  if (!first) return [];
  const periods: { start: Instant; figures: CallFigures }[] = [];
  let start = width === "hour"
    ? first.slot - first.slot % HOUR_MICROS
    : dayStart(dayAt(first.slot, timeZone), timeZone);
  let [from, to] = [0, 0];
  while (start <= now) {
    const next = width === "hour"
      ? start + HOUR_MICROS
      : dayStart(dayAfter(dayAt(start, timeZone)), timeZone);
    while ((slots[to]?.slot ?? next) < next) to += 1;
    periods.push({ start, figures: sumOf(slots.slice(from, to)) });
    [from, start] = [to, next];
  }
  return periods;
}

const STEP_MINUTES = 30;
const DAYS_MAX = 60;
const STEPS_MAX = (DAYS_MAX * 24 * 60) / STEP_MINUTES;
const IS_OVER = new Set(["completed", "reached-max-retries", "blacklisted"]);

/** When the remaining leads are finished at this pace, within calling hours; null: not known. */
export function endOf(
  campaign: Campaign, { states, totals, zones }: CampaignFigures, pace: number | null, now: Instant,
): Instant | null {
  const count = (isOver: boolean): number => states
    .filter(({ status }) => IS_OVER.has(status) === isOver)
    .reduce((sum, { leads }) => sum + leads, 0);
  const left = count(false);
  if (campaign.status !== "in-progress" || pace === null || left === 0) return null;
  // A remaining lead is expected to take as many calls as the finished ones took on average.
  const callsEach = Math.max(1, totals.calls / Math.max(1, count(true)));
  let minutes = (left * Math.min(callsEach, campaign.maxRetries + 1) / pace) * 60;
  for (let step = 0, at = now; step < STEPS_MAX; step += 1, at += STEP_MINUTES * MINUTE_MICROS) {
    if (!isOpenSomewhere(campaign, zones, at)) continue;
    if (minutes <= STEP_MINUTES) return at + Math.round(minutes * MINUTE_MICROS);
    minutes -= STEP_MINUTES;
  }
  return null;
}

const LOOK_MINUTES = 15;
const LOOKS_MAX = (8 * 24 * 60) / LOOK_MINUTES;

/** When its calling hours next begin; null: not within eight days. */
function opensAt(campaign: Campaign, zones: readonly string[], now: Instant): Instant | null {
  const step = LOOK_MINUTES * MINUTE_MICROS;
  // Zones are whole quarters of an hour from UTC, so that hours begin at this minute of a quarter.
  let at = now - (now - campaign.startMinute * MINUTE_MICROS) % step;
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    at += step;
    if (!isOpenSomewhere(campaign, zones, at)) continue;
    while (isOpenSomewhere(campaign, zones, at - MINUTE_MICROS)) at -= MINUTE_MICROS;
    return at;
  }
  return null;
}

export interface Pause {
  reason: Exclude<CampaignReason, "no_leads" | "deleted"> | "hours";
  /** When it resumes by itself; null: somebody has to start it. */
  until: Instant | null;
  /** Null: not known. */
  since: Instant | null;
  by: string | null;
  note: string | null;
}

/** Why it places no calls right now; null: it does, was never started, or is completed. */
export function pauseOf(
  campaign: Campaign, zones: readonly string[], now: Instant,
): Pause | null {
  const { status, statusReason } = campaign;
  const nobody = { since: null, by: null, note: null };
  if (status === "in-progress") {
    const until = pauseAt(campaign, now);
    if (until !== null) return { ...nobody, reason: "carrier_failures", until };
    return isOpenSomewhere(campaign, zones, now)
      ? null
      : { ...nobody, reason: "hours", until: opensAt(campaign, zones, now) };
  }
  if (status !== "stopped") return null;
  const reason = statusReason === null || statusReason === "no_leads" || statusReason === "deleted"
    ? "requested"
    : statusReason;
  return {
    reason, until: null, since: campaign.statusAt, by: campaign.statusBy, note: campaign.statusNote,
  };
}
