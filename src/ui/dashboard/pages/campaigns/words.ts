// What a campaign's settings and states mean, in words.
import { useEffect, useReducer } from "preact/hooks";
import { WEEKDAYS } from "#core/days.ts";
import { dayAt } from "#core/zones.ts";
import type { Campaign } from "#ui/dashboard/data/lists.ts";
import { calendarDay, day, instant, timeAndZone, timeOfDay } from "#ui/dashboard/kit/format.ts";
import { LOCALE } from "#ui/dashboard/kit/texts.ts";
import type { Width } from "./figures.ts";

const WEEKDAY = new Intl.DateTimeFormat(LOCALE, { weekday: "short", timeZone: "UTC" });
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 24 * 3600 * 1000;
const short = (weekday: string): string =>
  WEEKDAY.format(MONDAY + WEEKDAYS.findIndex((day) => day === weekday) * DAY_MS);
const clock = (time: string): string => time.slice(0, 5);

export function daysWords(days: readonly string[]): string {
  const at = WEEKDAYS.map((weekday) => days.includes(weekday));
  const first = at.indexOf(true);
  const last = at.lastIndexOf(true);
  if (first === 0 && last === 6 && days.length === 7) return "Every day";
  const isRow = last - first + 1 === days.length && days.length > 2;
  return isRow
    ? `${short(WEEKDAYS[first] ?? "")}–${short(WEEKDAYS[last] ?? "")}`
    : WEEKDAYS.filter((_, index) => at[index]).map(short).join(", ");
}

export const hoursWords = (campaign: Campaign): string =>
  `${clock(campaign.allowed_hours_start_time)}–${clock(campaign.allowed_hours_end_time)}`;

export const whenWords = (campaign: Campaign): string =>
  `${daysWords(campaign.allowed_days)}, ${hoursWords(campaign)}`;

/** Null: calls are not paused for failures of the carrier. */
export function pausedUntil(campaign: Campaign, now: Date): Date | null {
  const until = campaign.paused_until ? instant(campaign.paused_until) : null;
  return until && until > now ? until : null;
}

/**
 * Days are those of the campaign's time zone, whichever zone times are shown in. In an hour that
 * occurs twice, as clocks are put back, each time names its zone.
 */
export function periodLabels(periods: { start: string }[], by: Width, zone: string): string[] {
  const starts = periods.map(({ start }) => instant(start));
  if (by === "day") return starts.map((at) => calendarDay(dayAt(at.getTime() * 1000, zone)));
  const labels = starts.map((at) => `${day(at)}, ${timeOfDay(at)}`);
  return starts.map((start, at) => labels[at] === labels[at - 1] || labels[at] === labels[at + 1]
    ? `${day(start)}, ${timeAndZone(start)}` : labels[at] ?? "");
}

/** Why it was stopped, for whoever may start it again. */
export const REASONS: Record<string, string> = {
  balance_too_low: "It was stopped: the balance is too low. Top up, then start it again.",
  assistant_unavailable: "It was stopped: its assistant is inactive, deleted or cannot speak its language.",
  requested: "It was stopped.",
};

const TICK_MS = 20_000;

/** The current time, refreshed: hours begin and end while the page is open. */
export function useClock(everyMs = TICK_MS): Date {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => tick(undefined), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return new Date();
}
