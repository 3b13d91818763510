// The appointment calendar of an assistant: settings, free times, bookings. Records, store port,
// rules; the arithmetic of times is in slots.ts.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import type { Instant, System } from "#core/system.ts";
import { DAY_MICROS, dayAt, MINUTE_MICROS } from "#core/zones.ts";
import {
  freeSlots, localIso, readLocal, slotsOfDay, spokenTime, startOfDay, type Period,
  type SlotRules, type WorkingHours,
} from "./slots.ts";

export interface CalendarSettings {
  /** IANA name; null: the assistant's. */
  timeZone: string | null;
  slotMinutes: number;
  bufferMinutes: number;
  /** Minimum notice: nothing that starts sooner than this from now is booked. */
  leadMinutes: number;
  daysAhead: number;
  workingHours: WorkingHours;
}

export interface Calendar extends CalendarSettings {
  accountId: number;
  assistantId: number;
  feedUuid: string;
}

export interface Appointment extends Period {
  id: number;
  uuid: string;
  name: string;
  email: string | null;
  phone: string | null;
  notes: string | null;
  state: "booked" | "cancelled";
  createdAt: Instant;
  updatedAt: Instant;
}

export interface Person {
  name: string;
  email: string | null;
  phone: string | null;
  notes: string | null;
}

export interface NewAppointment extends Period, Person {
  accountId: number;
  assistantId: number;
  uuid: string;
  bookingKey: string;
  bufferMinutes: number;
  now: Instant;
}

/** Absent members stay as they are. */
interface CalendarChanges extends Partial<CalendarSettings> {
  feedUuid?: string;
}

export interface CalendarStore {
  find(assistantId: number): Promise<Calendar | null>;
  findByFeed(feedUuid: string): Promise<Calendar | null>;
  /** Nothing happens when the assistant has one. */
  create(calendar: Calendar, now: Instant): Promise<void>;
  /** Changes the current row in one transaction, so that no concurrent change is undone. */
  save(args: {
    accountId: number; assistantId: number; changes: CalendarChanges; now: Instant;
  }): Promise<Calendar>;
  findBooking(assistantId: number, bookingKey: string): Promise<Appointment | null>;
  /**
   * One transaction: looks up the key, then overlapping appointments, then books. Resolves to what
   * the key booked before, if anything; null: the time is taken.
   */
  book(appointment: NewAppointment): Promise<Appointment | null>;
  cancel(args: { accountId: number; appointmentId: number; now: Instant }): Promise<boolean>;
  /** Booked appointments that overlap the period, earliest first. */
  busy(assistantId: number, within: Period): Promise<Period[]>;
  /** Those that begin in the period, cancelled ones too, earliest first, at most `rows`. */
  list(assistantId: number, within: Period, rows: number): Promise<Appointment[]>;
  /** As `list`, but the last `rows` of them, earliest first. */
  latest(assistantId: number, within: Period, rows: number): Promise<Appointment[]>;
}

type BookOutcome =
  /** `isRepeat`: by an earlier request with the same key. */
  | { kind: "booked"; appointment: Appointment; isRepeat: boolean }
  | { kind: "taken" }
  /** No bookable slot begins then. */
  | { kind: "closed" }
  | { kind: "invalid" }
  /** The key was used before for another time or person. */
  | { kind: "key_reused" };

interface Slot {
  start: string;
  end: string;
  label: string;
}

const SLOTS_MAX = 20;
const APPOINTMENTS_LISTED_MAX = 1000;
const FEED_PAST = 90 * DAY_MICROS;
const FEED_AHEAD = 400 * DAY_MICROS;

const OFFICE = [{ from: "09:00", to: "17:00" }];
const CALENDAR_DEFAULTS: CalendarSettings = {
  timeZone: null,
  slotMinutes: 30,
  bufferMinutes: 0,
  leadMinutes: 60,
  daysAhead: 60,
  workingHours: {
    monday: OFFICE, tuesday: OFFICE, wednesday: OFFICE, thursday: OFFICE, friday: OFFICE,
  },
};

export type Calendars = ReturnType<typeof createCalendars>;

/** What every use of a calendar needs: its row, its rules and its booking window. */
function createBasis({ store, system }: { store: CalendarStore; system: System }) {
  const zoneOf = (calendar: Calendar, { settings }: Assistant): string =>
    calendar.timeZone ?? settings.timezone;
  return {
    zoneOf,
    /** Creates the calendar with its defaults on first use. */
    open: async ({ id: assistantId, accountId }: Assistant): Promise<Calendar> => {
      const known = await store.find(assistantId);
      if (known) return known;
      const fresh = { ...CALENDAR_DEFAULTS, accountId, assistantId, feedUuid: system.uuid() };
      await store.create(fresh, system.now());
      return await store.find(assistantId) ?? fresh;
    },
    rulesOf: (calendar: Calendar, assistant: Assistant): SlotRules => ({
      hours: calendar.workingHours,
      timeZone: zoneOf(calendar, assistant),
      slotMinutes: calendar.slotMinutes,
      bufferMinutes: calendar.bufferMinutes,
    }),
    /** The window in which times can be booked. */
    horizon: ({ leadMinutes, daysAhead }: Calendar): Period => ({
      start: system.now() + leadMinutes * MINUTE_MICROS, end: system.now() + daysAhead * DAY_MICROS,
    }),
  };
}

type Basis = ReturnType<typeof createBasis>;
type Wanted = Person & { start: string; bookingKey: string };

/** What the key has booked, which another request may have done: `uuid` is this request's. */
function bookedOutcome(
  appointment: Appointment, start: Instant, person: Person, uuid: string,
): BookOutcome {
  const isSame = appointment.start === start && appointment.name === person.name
    && appointment.email === person.email && appointment.phone === person.phone
    && appointment.notes === person.notes;
  const isRepeat = appointment.uuid !== uuid;
  return isSame ? { kind: "booked", appointment, isRepeat } : { kind: "key_reused" };
}

function createBooking(
  { store, system }: { store: CalendarStore; system: System },
  { open, rulesOf, horizon }: Basis,
) {
  return async (
    assistant: Assistant,
    { start: text, bookingKey, ...person }: Wanted,
  ): Promise<BookOutcome> => {
    const calendar = await open(assistant);
    const rules = rulesOf(calendar, assistant);
    const start = readLocal(text, rules.timeZone);
    if (start === null) return { kind: "invalid" };
    // Checked before the rules: by now the time may be too near, or the working hours changed.
    const earlier = await store.findBooking(assistant.id, bookingKey);
    const uuid = system.uuid();
    if (earlier) return bookedOutcome(earlier, start, person, uuid);
    const { start: soonest, end: latest } = horizon(calendar);
    if (start < soonest || start >= latest) return { kind: "closed" };
    const slot = slotsOfDay(dayAt(start, rules.timeZone), rules)
      .find((candidate) => candidate.start === start);
    if (!slot || slot.end > latest) return { kind: "closed" };
    const { accountId, id: assistantId } = assistant;
    const appointment = await store.book({
      ...slot, ...person, accountId, assistantId, bookingKey, uuid,
      bufferMinutes: calendar.bufferMinutes, now: system.now(),
    });
    return appointment ? bookedOutcome(appointment, start, person, uuid) : { kind: "taken" };
  };
}

export function createCalendars(options: { store: CalendarStore; system: System }) {
  const { store, system } = options;
  const basis = createBasis(options);
  const { open, zoneOf, rulesOf, horizon } = basis;
  return {
    open,
    zoneOf,
    findByFeed: (feedUuid: string) => store.findByFeed(feedUuid),
    save: async (
      assistant: Assistant,
      changes: Partial<CalendarSettings> & { rotateFeed?: boolean },
    ): Promise<Calendar> => {
      const { rotateFeed = false, ...settings } = changes;
      await open(assistant);
      return store.save({
        accountId: assistant.accountId,
        assistantId: assistant.id,
        changes: rotateFeed ? { ...settings, feedUuid: system.uuid() } : settings,
        now: system.now(),
      });
    },
    /** Free times from `date` on, a day in the calendar's zone; null: today. */
    availability: async (
      assistant: Assistant,
      { date, days }: { date: string | null; days: number },
    ): Promise<{ timeZone: string; slots: Slot[] }> => {
      const calendar = await open(assistant);
      const rules = rulesOf(calendar, assistant);
      const { timeZone } = rules;
      const { start: soonest, end: latest } = horizon(calendar);
      const first = date ?? dayAt(system.now(), timeZone);
      const within = {
        start: Math.max(soonest, startOfDay(first, timeZone) ?? latest),
        end: Math.min(latest, startOfDay(first, timeZone, days) ?? latest),
      };
      const busy = await store.busy(assistant.id, within);
      const slots = within.start < within.end ? freeSlots(rules, within, busy, SLOTS_MAX) : [];
      return {
        timeZone,
        slots: slots.map((slot) => ({
          start: localIso(slot.start, timeZone),
          end: localIso(slot.end, timeZone),
          label: spokenTime(slot.start, timeZone),
        })),
      };
    },
    /** The same key books the same appointment. */
    book: createBooking(options, basis),
    cancel: async (accountId: number, appointmentId: number): Promise<void> => {
      const done = await store.cancel({ accountId, appointmentId, now: system.now() });
      if (!done) throw new Fault(404, "Appointment not found");
    },
    list: (assistantId: number, within: Period): Promise<Appointment[]> =>
      store.list(assistantId, within, APPOINTMENTS_LISTED_MAX),
    /** What the feed shows; where it reaches its limit, past appointments are left out first. */
    feed: async (assistantId: number): Promise<Appointment[]> => {
      const now = system.now();
      const yesterday = now - DAY_MICROS;
      const ahead = await store.list(
        assistantId, { start: yesterday, end: now + FEED_AHEAD }, APPOINTMENTS_LISTED_MAX);
      const rows = APPOINTMENTS_LISTED_MAX - ahead.length;
      const past = { start: now - FEED_PAST, end: yesterday };
      return [...await store.latest(assistantId, past, rows), ...ahead];
    },
  };
}
