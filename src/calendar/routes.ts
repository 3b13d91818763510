// The wire of an assistant's calendar: settings, appointments, and the public feed, whose address
// is the secret.
import { Type, type Static } from "@sinclair/typebox";
import { hash } from "node:crypto";
import type { Assistant } from "../assistants/assistants.ts";
import { Fault, fieldFault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import { Nullable, TimeZone, withMessage } from "../core/schema.ts";
import { isoMicros, type System } from "../core/system.ts";
import { json, type HttpRequest } from "../http/exchange.ts";
import { keyRoute, publicRoute, type Route } from "../http/route.ts";
import type { Appointment, Calendar, Calendars, CalendarSettings } from "./calendar.ts";
import { renderFeed } from "./feed.ts";
import { dateOf, localIso, startOfDay, WEEKDAYS, type OpenPeriod, type Period } from "./slots.ts";

const Time = Type.String({
  pattern: "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", ...withMessage("The time must be HH:MM."),
});
const Periods = Type.Array(Type.Object({ from: Time, to: Time }), { maxItems: 10 });
const Hours = Type.Object(
  Object.fromEntries(WEEKDAYS.map((day) => [day, Type.Optional(Periods)])),
);

const SETTINGS = {
  time_zone: Nullable(TimeZone("The time zone must be a valid time zone.")),
  slot_minutes: Type.Integer({ minimum: 5, maximum: 480 }),
  buffer_minutes: Type.Integer({ minimum: 0, maximum: 240 }),
  lead_minutes: Type.Integer({ minimum: 0, maximum: 43_200 }),
  days_ahead: Type.Integer({ minimum: 1, maximum: 365 }),
  working_hours: Hours,
};
const ChangeBody = Type.Object({
  ...Type.Partial(Type.Object(SETTINGS)).properties,
  /** Gives the feed a new address; the old one is dead at once. */
  rotate_feed: Type.Optional(Type.Boolean()),
});
const Text = Type.Optional(Nullable(Type.String({ maxLength: 500 })));
const BookBody = Type.Object({
  start: Type.String({ maxLength: 40 }),
  name: Type.String({ pattern: "\\S", maxLength: 500 }),
  email: Text,
  phone: Text,
  notes: Text,
});
const ListQuery = Type.Object({
  from: Type.Optional(Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\d$" })),
  to: Type.Optional(Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\d$" })),
});

const CalendarSchema = Type.Object({ ...SETTINGS, feed_url: Type.String() });
const AppointmentSchema = Type.Object({
  id: Type.Integer(),
  start: Type.String(),
  end: Type.String(),
  name: Type.String(),
  email: Nullable(Type.String()),
  phone: Nullable(Type.String()),
  notes: Nullable(Type.String()),
  status: Type.Union([Type.Literal("booked"), Type.Literal("cancelled")]),
  created_at: Type.String(),
});
const MessageSchema = Type.Object({ message: Type.String() });
const InvalidSchema = Type.Object({
  message: Type.String(), errors: Type.Record(Type.String(), Type.Array(Type.String())),
});

const LISTED_DAYS = 90;

export interface CalendarRoutesOptions {
  calendars: Calendars;
  findAssistant(accountId: number, id: number): Assistant | null;
  system: System;
}

function wireCalendar(calendar: Calendar, baseUrl: string): Static<typeof CalendarSchema> {
  return {
    time_zone: calendar.timeZone,
    slot_minutes: calendar.slotMinutes,
    buffer_minutes: calendar.bufferMinutes,
    lead_minutes: calendar.leadMinutes,
    days_ahead: calendar.daysAhead,
    working_hours: calendar.workingHours,
    feed_url: `${baseUrl}/calendars/${calendar.feedUuid}`,
  };
}

function wireAppointment(one: Appointment, timeZone: string): Static<typeof AppointmentSchema> {
  const { id, name, email, phone, notes, state } = one;
  return {
    id,
    start: localIso(one.start, timeZone),
    end: localIso(one.end, timeZone),
    name, email, phone, notes,
    status: state,
    created_at: isoMicros(one.createdAt),
  };
}

function assertHours(hours: Record<string, unknown>): void {
  for (const [day, periods] of Object.entries(hours)) {
    const field = `working_hours.${day}`;
    if (!WEEKDAYS.some((weekday) => weekday === day)) {
      throw fieldFault(field, `The working hours may only name the days ${WEEKDAYS.join(", ")}.`);
    }
    const given = periods as OpenPeriod[];
    given.forEach(({ from, to }, index) => {
      if (from >= to) throw fieldFault(`${field}.${index}.to`, "The to must be after the from.");
      const isOverlapping = given.some((other, earlier) =>
        earlier < index && other.from < to && from < other.to);
      if (!isOverlapping) return;
      throw fieldFault(`${field}.${index}.from`, "The periods of a day may not overlap.");
    });
  }
}

function changesOf(body: Static<typeof ChangeBody>): Partial<CalendarSettings> {
  assertHours(body.working_hours ?? {});
  const given: Record<keyof CalendarSettings, unknown> = {
    timeZone: body.time_zone,
    slotMinutes: body.slot_minutes,
    bufferMinutes: body.buffer_minutes,
    leadMinutes: body.lead_minutes,
    daysAhead: body.days_ahead,
    workingHours: body.working_hours,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

const COMMON = { tag: "Calendar", errorShape: "message", notFound: "Assistant not found" } as const;
const missing = { 404: { description: "No such assistant", schema: MessageSchema } };
const invalid = { 422: { description: "Fields at fault", schema: InvalidSchema } };
const data = { 200: { description: "The calendar", schema: Type.Object({ data: CalendarSchema }) } };

export function calendarRoutes(options: CalendarRoutesOptions): Route[] {
  const { calendars } = options;
  const assistantOf = (accountId: number, id: number): Assistant => {
    const assistant = options.findAssistant(accountId, id);
    if (!assistant) throw new Fault(404, "Assistant not found");
    return assistant;
  };
  const path = "/user/assistants/{id}/calendar";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      summary: "Read an assistant's calendar settings and the address of its feed",
      responses: { ...data, ...missing },
      handle: async ({ caller, id, baseUrl }) => {
        const calendar = await calendars.open(assistantOf(caller.accountId, id));
        return json(200, { data: wireCalendar(calendar, baseUrl) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "PUT",
      path,
      summary: "Change calendar settings; working hours as a whole",
      body: ChangeBody,
      responses: { ...data, ...missing, ...invalid },
      handle: async ({ caller, id, body, baseUrl }) => {
        const assistant = assistantOf(caller.accountId, id);
        const { rotate_feed: rotateFeed = false } = body;
        const calendar = await calendars.save(assistant, { ...changesOf(body), rotateFeed });
        return json(200, { data: wireCalendar(calendar, baseUrl) });
      },
    }),
    ...appointmentRoutes(options, assistantOf),
    feedRoute(options),
  ];
}

const BOOKING_REFUSALS = {
  taken: "The start is already taken.",
  closed: "No appointment can begin at the start.",
  invalid: "The start must be a time such as 2026-01-15T09:00.",
} as const;

function bookingKeyOf(http: HttpRequest, system: System): string {
  const key = http.headers["idempotency-key"] || system.uuid();
  const most = LIMITS.idempotencyKeyCharsMax;
  if (key.length <= most) return `api:${key}`;
  throw fieldFault(
    "idempotency_key", `The Idempotency-Key may not be greater than ${most} characters.`);
}

/** Days of the calendar's zone, the last one whole. */
function listedPeriod({ from, to }: Static<typeof ListQuery>, today: string, zone: string): Period {
  const first = from ?? today;
  const start = startOfDay(first, zone);
  if (start === null) throw fieldFault("from", "The from is not a valid date.");
  const end = to ? startOfDay(to, zone, 1) : startOfDay(first, zone, LISTED_DAYS);
  if (end === null) throw fieldFault("to", "The to is not a valid date.");
  return { start, end };
}

function appointmentRoutes(
  { calendars, system }: CalendarRoutesOptions,
  assistantOf: (accountId: number, id: number) => Assistant,
): Route[] {
  const path = "/user/assistants/{id}/appointments";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      summary: "List appointments, by default those of the next 90 days",
      query: ListQuery,
      responses: {
        200: { description: "Earliest first", schema: Type.Object({ data: Type.Array(AppointmentSchema) }) },
        ...missing, ...invalid,
      },
      handle: async ({ caller, id, query }) => {
        const assistant = assistantOf(caller.accountId, id);
        const zone = calendars.zoneOf(await calendars.open(assistant), assistant);
        const within = listedPeriod(query, dateOf(system.now(), zone), zone);
        const found = calendars.list(assistant.id, within);
        return json(200, { data: found.map((one) => wireAppointment(one, zone)) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      path,
      summary: "Book an appointment",
      body: BookBody,
      responses: {
        201: { description: "Booked", schema: Type.Object({ message: Type.String(), data: AppointmentSchema }) },
        ...missing, ...invalid,
      },
      handle: async ({ caller, id, body, http }) => {
        const assistant = assistantOf(caller.accountId, id);
        const { start, name, email = null, phone = null, notes = null } = body;
        const outcome = await calendars.book(assistant, {
          start, name, email, phone, notes, bookingKey: bookingKeyOf(http, system),
        });
        if (outcome.kind === "key_reused") {
          throw fieldFault(
            "idempotency_key", "The Idempotency-Key was used for another appointment.");
        }
        if (outcome.kind !== "booked") throw fieldFault("start", BOOKING_REFUSALS[outcome.kind]);
        const zone = calendars.zoneOf(await calendars.open(assistant), assistant);
        return json(201, {
          message: "Appointment booked successfully", data: wireAppointment(outcome.appointment, zone),
        });
      },
    }),
    keyRoute({
      ...COMMON,
      notFound: "Appointment not found",
      method: "DELETE",
      path: "/user/appointments/{id}",
      summary: "Cancel an appointment; it stays in the feed as cancelled",
      responses: { 200: { description: "Cancelled", schema: MessageSchema }, ...missing },
      handle: async ({ caller, id }) => {
        await calendars.cancel(caller.accountId, id);
        return json(200, { message: "Appointment cancelled successfully" });
      },
    }),
  ];
}

function feedRoute({ calendars, findAssistant }: CalendarRoutesOptions): Route {
  return publicRoute({
    tag: "Calendar",
    errorShape: "message",
    notFound: "Calendar not found",
    method: "GET",
    path: "/calendars/{uuid}",
    summary: "The calendar as an iCalendar feed",
    responses: {
      200: { description: "iCalendar", schema: Type.String(), contentType: "text/calendar" },
      304: { description: "As it was", schema: Type.String(), contentType: "text/calendar" },
      404: { description: "No such feed", schema: MessageSchema },
    },
    handle: ({ uuid, http }) => {
      const calendar = calendars.findByFeed(uuid);
      const assistant = calendar && findAssistant(calendar.accountId, calendar.assistantId);
      if (!calendar || !assistant) throw new Fault(404, "Calendar not found");
      const content = renderFeed(assistant.name, calendars.feed(assistant.id));
      const etag = `"${hash("sha256", content, "base64url")}"`;
      const headers = { ETag: etag, "Cache-Control": "private, no-cache" };
      const contentType = "text/calendar; charset=utf-8";
      // A proxy that compresses makes the tag a weak one.
      const known = (http.headers["if-none-match"] ?? "").split(",")
        .map((tag) => tag.trim().replace(/^W\//, ""));
      return known.includes(etag)
        ? { status: 304, headers, contentType, content: "" }
        : { status: 200, headers, contentType, content };
    },
  });
}
