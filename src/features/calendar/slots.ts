// Which times of a calendar are free. Working hours are wall-clock times in a zone, so a day on
// which the clocks change has fewer or more of them. Pure; Intl knows the zones.
import { dayAfter, isDay, weekdayOf, type Weekday } from "#core/days.ts";
import type { Instant } from "#core/system.ts";
import { dayAt, dayStart, firstShowing, localDateTime, MINUTE_MICROS } from "#core/zones.ts";

/** `HH:MM` each; `to` may be 24:00. */
export interface OpenPeriod {
  from: string;
  to: string;
}
export type WorkingHours = Partial<Record<Weekday, OpenPeriod[]>>;

export interface Period {
  start: Instant;
  end: Instant;
}

export interface SlotRules {
  hours: WorkingHours;
  timeZone: string;
  slotMinutes: number;
  /** Kept free around every appointment. */
  bufferMinutes: number;
}

const DAY_MINUTES = 24 * 60;

/** The zone's wall-clock time, to the minute, as if it were UTC milliseconds. */
function wallMs(instant: Instant, timeZone: string): number {
  const { date, time } = localDateTime(instant, timeZone);
  return Date.parse(`${date}T${time}Z`);
}

/**
 * The instant at which the zone's clocks show this: the first where they show it twice in autumn,
 * null where they skip it in spring.
 */
function instantOf(wall: number, timeZone: string): Instant | null {
  const found = firstShowing(wall * 1000, timeZone);
  return wallMs(found, timeZone) === wall ? found : null;
}

const minutesOf = (time: string): number => {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  return hours * 60 + minutes;
};

/** Start of the day, or of the one `days` later; some days have no midnight. Null: not a date. */
export const startOfDay = (date: string, timeZone: string, days = 0): Instant | null =>
  isDay(date) ? dayStart(dayAfter(date, days), timeZone) : null;

/** `YYYY-MM-DDTHH:MM:SS±HH:MM` */
export function localIso(instant: Instant, timeZone: string): string {
  const wall = wallMs(instant, timeZone);
  const off = Math.round((wall - Math.floor(instant / MINUTE_MICROS) * 60_000) / 60_000);
  const pad = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const zone = `${off < 0 ? "-" : "+"}${pad(Math.abs(off) / 60)}:${pad(Math.abs(off) % 60)}`;
  return `${new Date(wall).toISOString().slice(0, 19)}${zone}`;
}

/** `Thu, 15 January, 09:00` */
export const spokenTime = (instant: Instant, timeZone: string): string =>
  new Intl.DateTimeFormat("en-GB", {
    timeZone, weekday: "short", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit",
    hourCycle: "h23",
  }).format(new Date(Math.floor(instant / 1000)));

/**
 * Reads `YYYY-MM-DDTHH:MM` as the zone's wall clock, or with an offset as that instant; null for
 * anything else and for times that do not exist.
 */
export function readLocal(text: string, timeZone: string): Instant | null {
  const match = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/.exec(
    text.trim());
  const [, date, time, zone] = match ?? [];
  if (!date || !time) return null;
  const ms = Date.parse(`${date}T${time}:00${zone ?? "Z"}`);
  if (Number.isNaN(ms) || !isDay(date)) return null;
  return zone === undefined ? instantOf(ms, timeZone) : ms * 1000;
}

/** Periods that begin on the day, earliest first; one with `to` <= `from` ends the next day. */
export function openPeriods(date: string, hours: WorkingHours, timeZone: string): Period[] {
  const midnight = Date.parse(`${date}T00:00:00Z`);
  const at = (minute: number): Instant =>
    firstShowing((midnight + minute * 60_000) * 1000, timeZone);
  return (hours[weekdayOf(date)] ?? [])
    .map(({ from, to }) => ({
      start: at(minutesOf(from)), end: at(minutesOf(to) + (to > from ? 0 : DAY_MINUTES)),
    }))
    .filter(({ start, end }) => end > start).toSorted((one, other) => one.start - other.start);
}

/** Every slot that begins on the day, free or not. */
export function slotsOfDay(date: string, rules: SlotRules): Period[] {
  const midnight = Date.parse(`${date}T00:00:00Z`);
  const slots: Period[] = [];
  const periods = (rules.hours[weekdayOf(date)] ?? [])
    .toSorted((a, b) => (a.from < b.from ? -1 : 1));
  for (const { from, to } of periods) {
    const closing = Math.min(minutesOf(to), DAY_MINUTES);
    const last = closing - rules.slotMinutes;
    for (let minute = minutesOf(from); minute <= last; minute += rules.slotMinutes) {
      const start = instantOf(midnight + minute * 60_000, rules.timeZone);
      if (start === null) continue;
      const end = start + rules.slotMinutes * MINUTE_MICROS;
      // In spring the clock may run past closing time during the slot.
      const isOpen = wallMs(end - MINUTE_MICROS, rules.timeZone) < midnight + closing * 60_000;
      const previous = slots.at(-1);
      if (isOpen && (!previous || start >= previous.end)) slots.push({ start, end });
    }
  }
  return slots;
}

export function isFree(slot: Period, busy: Period[], bufferMinutes: number): boolean {
  const buffer = bufferMinutes * MINUTE_MICROS;
  return busy.every(({ start, end }) => slot.start >= end + buffer || slot.end + buffer <= start);
}

/** Free slots within the period, earliest first, at most `count`. */
export function freeSlots(
  rules: SlotRules,
  within: Period,
  busy: Period[],
  count: number,
): Period[] {
  const found: Period[] = [];
  const lastDay = dayAt(within.end, rules.timeZone);
  let date = dayAt(within.start, rules.timeZone);
  for (; date <= lastDay && found.length < count; date = dayAfter(date)) {
    for (const slot of slotsOfDay(date, rules)) {
      if (found.length === count) break;
      const isInside = slot.start >= within.start && slot.end <= within.end;
      if (isInside && isFree(slot, busy, rules.bufferMinutes)) found.push(slot);
    }
  }
  return found;
}
