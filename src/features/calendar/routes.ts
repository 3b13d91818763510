// The wire of an assistant's calendar: settings, appointments, and the public feed, whose address
// is the secret.
import { Type, type Static } from "@sinclair/typebox";
import { hash } from "node:crypto";
import type { Assistants } from "#features/assistants/assistants.ts";
import { WEEKDAYS } from "#core/days.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { MASK } from "#core/secrets.ts";
import { about, named, NonBlank, Nullable, OneOf, TimeOfDay, TimeZone } from "#core/schema.ts";
import { isoMicros, type System } from "#core/system.ts";
import { dayAt } from "#core/zones.ts";
import {
  dataOf, IDEMPOTENCY_KEY, IdOf, listOf, MessageSchema, Moment, replayHeaders, savedOf, Uuid,
} from "#http/answers.ts";
import { json, type HttpRequest } from "#http/exchange.ts";
import { keyRoute, seesSecrets, publicRoute, type Route } from "#http/route.ts";
import type { Appointment, Calendar, Calendars, CalendarSettings } from "./calendar.ts";
import { renderFeed } from "./feed.ts";
import { localIso, startOfDay, type OpenPeriod, type Period } from "./slots.ts";

const OpenPeriodSchema = Type.Object({
  from: TimeOfDay("Opening time, in the calendar's time zone.", "09:00"),
  to: TimeOfDay("Closing time; 24:00 is the end of the day.", "17:00"),
}, named("OpenPeriod", "Opening hours on a day."));
const Periods = (day: string) => Type.Array(OpenPeriodSchema, {
  maxItems: 10, ...about(`When appointments can be booked on a ${day}; absent or empty for never.`),
});
const Hours = Type.Object(
  Object.fromEntries(WEEKDAYS.map((day) => [day, Type.Optional(Periods(day))])),
  named("WorkingHours", "Opening hours by weekday. Replaced as a whole."),
);
const Minutes = (minimum: number, maximum: number, description: string, example: number) =>
  Type.Integer({ minimum, maximum, ...about(description, example) });

const SETTINGS = {
  time_zone: Nullable({
    ...TimeZone("The time zone must be a valid time zone."),
    ...about("The IANA time zone of the hours; null for the assistant's.", "Europe/Berlin"),
  }),
  slot_minutes: Minutes(5, 480, "The length of an appointment in minutes.", 30),
  buffer_minutes: Minutes(0, 240, "Minutes to keep free after each appointment.", 10),
  lead_minutes: Minutes(0, 43_200, "Minimum notice in minutes.", 120),
  days_ahead: Minutes(1, 365, "How many days ahead appointments can be booked.", 30),
  working_hours: Hours,
};
const ChangeBody = Type.Object({
  ...Type.Partial(Type.Object(SETTINGS)).properties,
  rotate_feed: Type.Optional(Type.Boolean(
    about("Whether to give the feed a new URL; the old one stops working at once.", false))),
});
const Text = (description: string, example: string) =>
  Nullable(Type.String({ maxLength: 500, ...about(`${description}; null if not given.`, example) }));
const WHO = {
  name: NonBlank(500, about("The attendee's name.", "Ada Lovelace")),
  email: Text("The attendee's e-mail address", "ada@example.org"),
  phone: Text("Their telephone number", "+4915112345678"),
  notes: Text("What it is about", "First consultation"),
};
const BookBody = Type.Object({
  start: Type.String({
    maxLength: 40,
    ...about("When it starts, in the calendar's time zone or with an offset.", "2026-03-02T09:00"),
  }),
  name: WHO.name,
  email: Type.Optional(WHO.email),
  phone: Type.Optional(WHO.phone),
  notes: Type.Optional(WHO.notes),
});
const Day = (description: string) => Type.Optional(
  Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\d$", ...about(description, "2026-03-02") }));
const ListQuery = Type.Object({
  from: Day("The first day, in the calendar's time zone. Defaults to today."),
  to: Day("The last day. Defaults to 90 days after the first."),
});

const CalendarSchema = Type.Object({
  ...SETTINGS,
  feed_url: Type.String(about(
    "The feed's URL for calendar programs. Its end is a secret, masked for read-only keys.",
    "https://talk.example.com/api/calendars/0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")),
}, named("Calendar", "An assistant's calendar settings."));
const AppointmentSchema = Type.Object({
  id: Type.Integer(about("The appointment's number.", 5)),
  start: Type.String(about("When it starts, in the calendar's time zone.",
    "2026-03-02T09:00:00+01:00")),
  end: Type.String(about("When it ends.", "2026-03-02T09:30:00+01:00")),
  ...WHO,
  status: OneOf(["booked", "cancelled"], about("Whether it is booked or cancelled.")),
  created_at: Moment("When it was booked, in UTC."),
}, named("Appointment", "An appointment in an assistant's calendar."));

const LISTED_DAYS = 90;

interface CalendarRoutesOptions {
  calendars: Calendars;
  assistants: Pick<Assistants, "find" | "get">;
  system: System;
}

function wireCalendar(
  calendar: Calendar, baseUrl: string, isShown: boolean,
): Static<typeof CalendarSchema> {
  return {
    time_zone: calendar.timeZone,
    slot_minutes: calendar.slotMinutes,
    buffer_minutes: calendar.bufferMinutes,
    lead_minutes: calendar.leadMinutes,
    days_ahead: calendar.daysAhead,
    working_hours: calendar.workingHours,
    feed_url: `${baseUrl}/calendars/${isShown ? calendar.feedUuid : MASK}`,
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

const COMMON = {
  tag: "Calendar", errorShape: "message", notFound: "Assistant not found",
  params: { id: IdOf("assistant", "GET /user/assistants/get") },
} as const;
const data = { 200: { description: "The calendar", schema: dataOf(CalendarSchema) } };

export function calendarRoutes(options: CalendarRoutesOptions): Route[] {
  const { calendars, assistants } = options;
  const path = "/user/assistants/{id}/calendar";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      summary: "Read an assistant's calendar settings and feed URL",
      responses: data,
      handle: async ({ caller, id, baseUrl }) => {
        const calendar = await calendars.open(await assistants.get(caller.accountId, id));
        return json(200, { data: wireCalendar(calendar, baseUrl, seesSecrets(caller)) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "PUT",
      path,
      summary: "Update calendar settings",
      body: ChangeBody,
      responses: data,
      handle: async ({ caller, id, body, baseUrl }) => {
        const assistant = await assistants.get(caller.accountId, id);
        const { rotate_feed: rotateFeed = false } = body;
        const calendar = await calendars.save(assistant, { ...changesOf(body), rotateFeed });
        return json(200, { data: wireCalendar(calendar, baseUrl, seesSecrets(caller)) });
      },
    }),
    ...appointmentRoutes(options),
    feedRoute(options),
  ];
}

const BOOKING_REFUSALS = {
  taken: "The start is already taken.",
  closed: "No appointment can begin at the start: it is too soon, too far ahead, or no beginning of "
    + "a slot in the opening hours.",
  invalid: "The start must be a time such as 2026-01-15T09:00.",
} as const;

function bookingKeyOf(http: HttpRequest, system: System): string {
  const key = http.headers["idempotency-key"] || system.uuid();
  const most = LIMITS.idempotencyKeyCharsMax;
  if (key.length <= most) return `api:${key}`;
  throw fieldFault(
    "idempotency_key", `The Idempotency-Key may not be greater than ${most} characters.`);
}

/** Days in the calendar's zone; the last is included in full. */
function listedPeriod({ from, to }: Static<typeof ListQuery>, today: string, zone: string): Period {
  const first = from ?? today;
  const start = startOfDay(first, zone);
  if (start === null) throw fieldFault("from", "The from is not a valid date.");
  const end = to ? startOfDay(to, zone, 1) : startOfDay(first, zone, LISTED_DAYS);
  if (end === null) throw fieldFault("to", "The to is not a valid date.");
  return { start, end };
}

function appointmentRoutes({ calendars, assistants, system }: CalendarRoutesOptions): Route[] {
  const path = "/user/assistants/{id}/appointments";
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path,
      summary: "List appointments, by default those of the next 90 days",
      query: ListQuery,
      responses: {
        200: {
          description: "The appointments, earliest first",
            schema: dataOf(listOf(AppointmentSchema, "The appointments, earliest first.")),
        },
      },
      handle: async ({ caller, id, query }) => {
        const assistant = await assistants.get(caller.accountId, id);
        const zone = calendars.zoneOf(await calendars.open(assistant), assistant);
        const within = listedPeriod(query, dayAt(system.now(), zone), zone);
        const found = await calendars.list(assistant.id, within);
        return json(200, { data: found.map((one) => wireAppointment(one, zone)) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      path,
      summary: "Book an appointment",
      body: BookBody,
      description: "The time must be free and within the opening hours; otherwise 422 says why "
        + "not.",
      headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
      responses: { 201: { description: "Booked", schema: savedOf(AppointmentSchema) } },
      handle: async ({ caller, id, body, http }) => {
        const assistant = await assistants.get(caller.accountId, id);
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
        }, replayHeaders(outcome.isRepeat));
      },
    }),
    keyRoute({
      ...COMMON,
      notFound: "Appointment not found",
      method: "DELETE",
      path: "/user/appointments/{id}",
      summary: "Cancel an appointment",
      params: { id: IdOf("appointment", "GET /user/assistants/{id}/appointments") },
      responses: { 200: { description: "Cancelled", schema: MessageSchema } },
      handle: async ({ caller, id }) => {
        await calendars.cancel(caller.accountId, id);
        return json(200, { message: "Appointment cancelled successfully" });
      },
    }),
  ];
}

const FEED = Type.String(named("CalendarFeed", "Appointments as iCalendar, RFC 5545.", "BEGIN:VCALENDAR"));

function feedRoute({ calendars, assistants }: CalendarRoutesOptions): Route {
  return publicRoute({
    tag: "Calendar",
    errorShape: "message",
    notFound: "Calendar not found",
    method: "GET",
    path: "/calendars/{uuid}",
    summary: "Get the calendar feed",
    description: "For calendar programs. Anyone who has the URL can see the appointments.",
    params: { uuid: Uuid("The feed's secret: the end of `feed_url`.") },
    responses: {
      200: { description: "iCalendar", schema: FEED, contentType: "text/calendar" },
      304: { description: "Not modified" },
    },
    handle: async ({ uuid, http }) => {
      const calendar = await calendars.findByFeed(uuid);
      const assistant = calendar
        && await assistants.find(calendar.accountId, calendar.assistantId);
      if (!calendar || !assistant) throw new Fault(404, "Calendar not found");
      const content = renderFeed(assistant.name, await calendars.feed(assistant.id));
      const etag = `"${hash("sha256", content, "base64url")}"`;
      const headers = { ETag: etag, "Cache-Control": "private, no-cache" };
      const contentType = "text/calendar; charset=utf-8";
      // A proxy that compresses turns the ETag into a weak one.
      const known = (http.headers["if-none-match"] ?? "").split(",")
        .map((tag) => tag.trim().replace(/^W\//, ""));
      return known.includes(etag)
        ? { status: 304, headers, contentType, content: "" }
        : { status: 200, headers, contentType, content };
    },
  });
}
