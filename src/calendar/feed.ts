// A calendar as an iCalendar feed that people subscribe to in their own calendar program.
import { ICalCalendar, ICalCalendarMethod, ICalEventStatus } from "ical-generator";
import type { Appointment } from "./calendar.ts";

const REFRESH_SECONDS = 15 * 60;

const date = (instant: number): Date => new Date(Math.floor(instant / 1000));

export function renderFeed(name: string, appointments: Appointment[]): string {
  const feed = new ICalCalendar({
    name, method: ICalCalendarMethod.PUBLISH, ttl: REFRESH_SECONDS,
    prodId: { company: "Parley", product: "calendar" },
  });
  for (const { uuid, start, end, state, ...appointment } of appointments) {
    const lines = [appointment.email, appointment.phone, appointment.notes];
    feed.createEvent({
      id: uuid,
      start: date(start),
      end: date(end),
      stamp: date(appointment.updatedAt),
      created: date(appointment.createdAt),
      lastModified: date(appointment.updatedAt),
      summary: appointment.name,
      description: lines.filter((line) => line !== null && line !== "").join("\n"),
      status: state === "booked" ? ICalEventStatus.CONFIRMED : ICalEventStatus.CANCELLED,
    });
  }
  return feed.toString();
}
