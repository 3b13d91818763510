// Calendars and appointments in the database. Booking is one command: it checks for conflicts and
// inserts the row in the same transaction, so that no time slot is given out twice.
import type {
  Appointment, Calendar, CalendarStore, NewAppointment,
} from "#features/calendar/calendar.ts";
import type { Period, WorkingHours } from "#features/calendar/slots.ts";
import type { Instant } from "#core/system.ts";
import { MINUTE_MICROS } from "#core/zones.ts";
import { orNull, type Exists, type Reader, type Sql } from "./sql.ts";
import { writes, type WriterOf } from "./writer.ts";

interface CalendarRow {
  assistant_id: number;
  account_id: number;
  feed_uuid: string;
  time_zone: string | null;
  slot_minutes: number;
  buffer_minutes: number;
  lead_minutes: number;
  days_ahead: number;
  working_hours: string;
}

interface AppointmentRow {
  id: number;
  uuid: string;
  starts_at: number;
  ends_at: number;
  name: string;
  email: string | null;
  phone: string | null;
  notes: string | null;
  state: Appointment["state"];
  created_at: number;
  updated_at: number;
}

const calendarFromRow = (row: CalendarRow): Calendar => ({
  assistantId: row.assistant_id,
  accountId: row.account_id,
  feedUuid: row.feed_uuid,
  timeZone: row.time_zone,
  slotMinutes: row.slot_minutes,
  bufferMinutes: row.buffer_minutes,
  leadMinutes: row.lead_minutes,
  daysAhead: row.days_ahead,
  workingHours: JSON.parse(row.working_hours) as WorkingHours,
});

const appointmentFromRow = (row: AppointmentRow): Appointment => ({
  id: row.id,
  uuid: row.uuid,
  start: row.starts_at,
  end: row.ends_at,
  name: row.name,
  email: row.email,
  phone: row.phone,
  notes: row.notes,
  state: row.state,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

const FIND_CALENDAR = "SELECT * FROM calendars WHERE assistant_id = @assistantId";
const FIND_BOOKING = `
  SELECT * FROM appointments WHERE assistant_id = @assistantId AND booking_key = @bookingKey`;
/**
 * Booked ones that overlap a period. No appointment is as long as a day, so that earlier ones are
 * not read.
 */
const overlapping = (from: string, until: string): string => `
  assistant_id = @assistantId AND state = 'booked' AND starts_at > ${from} - 86400000000
    AND starts_at < ${until} AND ends_at > ${from}`;
const INSERT_CALENDAR = `
  INSERT INTO calendars (assistant_id, account_id, feed_uuid, time_zone, slot_minutes,
    buffer_minutes, lead_minutes, days_ahead, working_hours, updated_at)
  VALUES (@assistantId, @accountId, @feedUuid, @timeZone, @slotMinutes, @bufferMinutes,
    @leadMinutes, @daysAhead, @workingHours, @now)`;

export function calendarCommands(sql: Sql) {
  const create = sql.prepare(`${INSERT_CALENDAR} ON CONFLICT (assistant_id) DO NOTHING`);
  const save = sql.prepare(`${INSERT_CALENDAR}
    ON CONFLICT (assistant_id) DO UPDATE SET feed_uuid = excluded.feed_uuid,
      time_zone = excluded.time_zone, slot_minutes = excluded.slot_minutes,
      buffer_minutes = excluded.buffer_minutes, lead_minutes = excluded.lead_minutes,
      days_ahead = excluded.days_ahead, working_hours = excluded.working_hours,
      updated_at = excluded.updated_at`);
  const find = sql.prepare<object, CalendarRow>(`${FIND_CALENDAR} AND account_id = @accountId`);
  const earlier = sql.prepare<object, AppointmentRow>(
    `${FIND_BOOKING} AND account_id = @accountId`);
  const inTheWay = sql.prepare<object, Exists>(`
    SELECT 1 FROM appointments WHERE ${overlapping("@from", "@until")} LIMIT 1`);
  const insert = sql.prepare<object, AppointmentRow>(`
    INSERT INTO appointments (account_id, assistant_id, uuid, booking_key, starts_at, ends_at, name,
      email, phone, notes, state, created_at, updated_at)
    VALUES (@accountId, @assistantId, @uuid, @bookingKey, @start, @end, @name, @email, @phone,
      @notes, 'booked', @now, @now) RETURNING *`);
  const cancel = sql.prepare(`
    UPDATE appointments SET state = 'cancelled', updated_at = @now
    WHERE id = @appointmentId AND account_id = @accountId AND state = 'booked'`);
  const columnsOf = ({ calendar, now }: { calendar: Calendar; now: Instant }) => ({
    ...calendar, workingHours: JSON.stringify(calendar.workingHours), now,
  });
  return {
    "calendars.create": async (args: Parameters<typeof columnsOf>[0]): Promise<void> => {
      await create.run(columnsOf(args));
    },
    "calendars.save": async (
      args: Parameters<CalendarStore["save"]>[0],
    ): Promise<Calendar> => {
      const { changes, now } = args;
      const row = await find.get(args);
      if (!row) throw new Error("a calendar is opened before it is changed");
      const calendar = { ...calendarFromRow(row), ...changes };
      await save.run(columnsOf({ calendar, now }));
      return calendar;
    },
    "calendars.book": async (args: NewAppointment): Promise<Appointment | null> => {
      const same = await earlier.get(args);
      if (same) return appointmentFromRow(same);
      const { assistantId, start, end, bufferMinutes } = args;
      const buffer = bufferMinutes * MINUTE_MICROS;
      const from = start - buffer;
      if (await inTheWay.get({ assistantId, from, until: end + buffer })) return null;
      const row = await insert.one(args);
      return appointmentFromRow(row);
    },
    "calendars.cancel": async (
      args: { accountId: number; appointmentId: number; now: Instant },
    ): Promise<boolean> => (await cancel.run(args)).changes > 0,
  };
}

export function createCalendarStore(
  reader: Reader, writer: WriterOf<typeof calendarCommands>,
): CalendarStore {
  const find = reader.prepare<object, CalendarRow>(FIND_CALENDAR);
  const findBooking = reader.prepare<object, AppointmentRow>(FIND_BOOKING);
  const findByFeed = reader.prepare<object, CalendarRow>(
    "SELECT * FROM calendars WHERE feed_uuid = @feedUuid");
  // A day more on either side covers any buffer.
  const busy = reader.prepare<object, { start: number; end: number }>(`
    SELECT starts_at AS start, ends_at AS end FROM appointments
    WHERE ${overlapping("@start - 86400000000", "@end + 86400000000")} ORDER BY starts_at`);
  const list = reader.prepare<object, AppointmentRow>(`
    SELECT * FROM appointments WHERE assistant_id = @assistantId
      AND starts_at >= @start AND starts_at < @end ORDER BY starts_at, id LIMIT @rows`);
  const latest = reader.prepare<object, AppointmentRow>(`
    SELECT * FROM appointments WHERE assistant_id = @assistantId
      AND starts_at >= @start AND starts_at < @end ORDER BY starts_at DESC, id DESC LIMIT @rows`);
  return {
    find: async (assistantId) => orNull(await find.get({ assistantId }), calendarFromRow),
    findByFeed: async (feedUuid) => orNull(await findByFeed.get({ feedUuid }), calendarFromRow),
    create: (calendar, now) => writer.write("calendars.create", { calendar, now }),
    ...writes(writer, "calendars", "save", "cancel"),
    findBooking: async (assistantId, bookingKey) =>
      orNull(await findBooking.get({ assistantId, bookingKey }), appointmentFromRow),
    book: (appointment) => writer.write("calendars.book", appointment),
    busy: async (assistantId, within: Period) => busy.all({ assistantId, ...within }),
    list: async (assistantId, within, rows) =>
      (await list.all({ assistantId, ...within, rows })).map(appointmentFromRow),
    latest: async (assistantId, within, rows) =>
      (await latest.all({ assistantId, ...within, rows })).map(appointmentFromRow).reverse(),
  };
}
