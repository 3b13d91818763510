// A calendar as an iCalendar feed that people subscribe to in their own calendar program.
import { ICalCalendar, ICalCalendarMethod, ICalEventStatus } from "ical-generator";
import type { Appointment } from "./calendar.ts";

const REFRESH_SECONDS = 15 * 60;

/** Without what no line of the format may have; a bare CR would begin a line in some programs. */
const clean = (text: string): string =>
  text.toWellFormed().replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");

const date = (instant: number): Date => new Date(Math.floor(instant / 1000));

export function renderFeed(name: string, appointments: Appointment[]): string {
  const feed = new ICalCalendar({
    // The library escapes line breaks everywhere but here.
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
      // Programs take a change over only when the number has grown.
      sequence: isBooked ? 0 : 1,
      summary: clean(appointment.name),
      ...(lines.length > 0 ? { description: clean(lines.join("\n")) } : {}),
      status: isBooked ? ICalEventStatus.CONFIRMED : ICalEventStatus.CANCELLED,
    });
  }
  return `${feed.toString().trimEnd()}\r\n`;
}
