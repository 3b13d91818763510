// A calendar as an iCalendar feed that people subscribe to in their own calendar program.
import { ICalCalendar, ICalCalendarMethod, ICalEventStatus } from "ical-generator";
import type { Appointment } from "./calendar.ts";

const REFRESH_SECONDS = 15 * 60;

/** Removes characters the format forbids; a bare CR would begin a new line in some programs. */
const clean = (text: string): string =>
  text.toWellFormed().replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");

const date = (instant: number): Date => new Date(Math.floor(instant / 1000));

export function renderFeed(name: string, appointments: Appointment[]): string {
  const feed = new ICalCalendar({
    // The library does not escape the calendar's name, as it does all other texts.
    name: clean(name).replaceAll(/[\n,;\\]+/g, " "), method: ICalCalendarMethod.PUBLISH, ttl: REFRESH_SECONDS,
    prodId: { company: "Parley", product: "calendar" },
  });
  for (const { uuid, start, end, state, ...appointment } of appointments) {
    const { email, phone, notes } = appointment;
    const lines = [email, phone, notes].filter((line) => line !== null && line !== "");
    const isBooked = state === "booked";
    feed.createEvent({
      id: uuid,
      start: date(start),
      end: date(end),
      stamp: date(appointment.updatedAt),
      created: date(appointment.createdAt),
      lastModified: date(appointment.updatedAt),
      // Calendar programs accept a change only when the sequence number has grown.
      sequence: isBooked ? 0 : 1,
      summary: clean(appointment.name),
      ...(lines.length > 0 ? { description: clean(lines.join("\n")) } : {}),
      status: isBooked ? ICalEventStatus.CONFIRMED : ICalEventStatus.CANCELLED,
    });
  }
  return `${feed.toString().trimEnd()}\r\n`;
}
