// The edges of the calendar: keys used again, days without a midnight, clocks that change by half
// an hour, arguments of any kind, and a feed that programs can read.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { renderFeed } from "#features/calendar/feed.ts";
import { callCalendar } from "#features/calendar/functions.ts";
import { localIso, readLocal, slotsOfDay, type WorkingHours } from "#features/calendar/slots.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, startTestServer } from "#support/server.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import { awayOf } from "#features/conversations/desk/office-hours.ts";

const system = createManualSystem(Date.UTC(2026, 0, 15, 6));
const server = await startTestServer({ system });
after(() => server.close());

const ALWAYS = [{ from: "00:00", to: "24:00" }];
const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const every = (periods: object[]): WorkingHours =>
  Object.fromEntries(DAYS.map((day) => [day, periods])) as WorkingHours;
const rules = (timeZone: string, slotMinutes: number, periods: object[] = ALWAYS) =>
  ({ hours: every(periods), timeZone, slotMinutes, bufferMinutes: 0 });

async function withCalendar(settings: object = {}) {
  const { id } = await newAssistant(server, { tools: [{ type: "calendar" }] });
  const path = `/user/assistants/${id}`;
  const { status, body } = await server.call("PUT", `${path}/calendar`, {
    body: {
      working_hours: every(ALWAYS), lead_minutes: 0, time_zone: "Europe/Berlin", ...settings,
    },
  });
  assert.equal(status, 200, JSON.stringify(body));
  const found = await server.app.features.assistants.find(server.accountId, id);
  assert.ok(found);
  return { path, id, feed: body.data.feed_url as string, found };
}

const book = (path: string, start: string, key?: string, name = "Eva") =>
  server.call("POST", `${path}/appointments`, {
    body: { start, name }, headers: key === undefined ? {} : { "Idempotency-Key": key },
  });

test("[CA7] any arguments a model writes are answered, nothing throws", async () => {
  const { calendars } = server.app.features;
  const { found } = await withCalendar({ time_zone: "Pacific/Kiritimati" });
  const odd = fc.oneof(fc.anything(), fc.string(), fc.constantFrom<unknown>(
    "9999-12-31T23:59Z", "9999-12-31", "0000-01-01T00:00", "2026-02-31T09:00", "2026-13-45", -1, 1e308));
  const names = fc.constantFrom("check_availability", "book_appointment");
  let booking = 0;
  const law = fc.asyncProperty(names, odd, odd, odd, odd, async (name, ...values) => {
    const [start, date, days, other] = values;
    booking += 1;
    const result = await callCalendar(calendars, found, {
      name, arguments: { start, date, days, name: other, email: days }, bookingKey: `k${booking}`,
    });
    assert.equal(typeof result, "object");
  });
  await fc.assert(law, { numRuns: 300 });
});

test("[CA277] a repeated booking says that it is repeated, the first does not", async () => {
  const { path } = await withCalendar({});
  const replayed = async () => {
    const { status, headers } = await book(path, "2026-01-15T09:00", "once");
    return [status, headers.get("idempotency-replayed")];
  };
  assert.deepEqual(await replayed(), [201, null]);
  assert.deepEqual(await replayed(), [201, "true"]);
});

test("[CA8] a key books once: a repeat returns the same booking, another time under it is refused", async () => {
  const { path } = await withCalendar({ lead_minutes: 60 });
  const first = await book(path, "2026-01-15T09:00", "k");
  assert.equal(first.status, 201);
  system.advance(3 * 3_600_000);
  const again = await book(path, "2026-01-15T09:00", "k");
  assert.deepEqual([again.status, again.body.data?.id], [201, first.body.data.id]);
  const other = await book(path, "2026-01-16T09:00", "k", "Ben");
  assert.equal(other.status, 422);
  assert.ok(other.body.errors.idempotency_key);
  assert.equal((await book(path, "2026-01-16T09:00", "k".repeat(300))).status, 422);
});

test("[CA9] days without midnight and half-hour clock changes work, and no slot outlasts closing time", async () => {
  const { found } = await withCalendar({ time_zone: "Africa/Cairo", days_ahead: 365 });
  assert.equal(readLocal("2026-04-24T00:00", "Africa/Cairo"), null);
  const { slots } = await server.app.features.calendars.availability(
    found, { date: "2026-04-24", days: 1 });
  assert.ok(slots[0]?.start.startsWith("2026-04-24"));
  assert.equal(readLocal("2026-04-05T01:45", "Australia/Lord_Howe"), Date.UTC(2026, 3, 4, 14, 45) * 1000);
  assert.equal(readLocal("2026-10-25T02:30", "Antarctica/Troll"), Date.UTC(2026, 9, 25, 0, 30) * 1000);
  for (const slot of slotsOfDay("2026-03-29", rules("Europe/Berlin", 90, [{ from: "00:00", to: "03:00" }]))) {
    assert.ok(localIso(slot.end, "Europe/Berlin").slice(11, 16) <= "03:00");
  }
  const unsorted = [{ from: "13:00", to: "17:00" }, { from: "09:00", to: "12:00" }];
  assert.equal(slotsOfDay("2026-01-15", rules("UTC", 30, unsorted)).length, 14);
});

test("[CA10] concurrent changes do not undo each other", async () => {
  for (let round = 0; round < 5; round += 1) {
    const { path, feed } = await withCalendar();
    const change = (body: object) => server.call("PUT", `${path}/calendar`, { body });
    await Promise.all([
      change({ rotate_feed: true }), change({ slot_minutes: 45 }), change({ buffer_minutes: 7 }),
    ]);
    const { body } = await server.call("GET", `${path}/calendar`);
    assert.deepEqual([body.data.slot_minutes, body.data.buffer_minutes], [45, 7]);
    assert.equal((await fetch(feed)).status, 404);
  }
});

test("[CA11] an invalid calendar or day is refused by name", async () => {
  const { path } = await withCalendar();
  for (const [working_hours, field] of [
    [{ mondy: [] }, "working_hours.mondy"],
    [{ monday: [{ from: "09:00", to: "12:00" }, { from: "11:00", to: "13:00" }] }, "working_hours.monday.1.from"],
  ] as const) {
    const { status, body } = await server.call("PUT", `${path}/calendar`, { body: { working_hours } });
    assert.equal(status, 422);
    assert.deepEqual(Object.keys(body.errors), [field]);
  }
  assert.equal((await server.call("GET", `${path}/appointments?from=2026-13-45`)).status, 422);
  assert.equal((await book(path, "2026-01-20T00:00")).status, 201);
  const { body } = await server.call("GET", `${path}/appointments?from=2026-01-20&to=2026-01-20`);
  assert.equal(body.data.length, 1);
});

test("[CA12] no text breaks the feed's lines; a cancelled appointment has a higher sequence number", async () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom("a\rBEGIN:VEVENT", "a\u0000b", "a\u2028b", "😀".repeat(60), "\ud800x", "a\\nb"));
  fc.assert(fc.property(text, text, (name, notes) => {
    const feed = renderFeed(name, [{
      id: 1, uuid: "u-1", start: 1e15, end: 1e15 + 1e9, name: name || "x", email: null, phone: null,
      notes, state: "cancelled", createdAt: 1e15, updatedAt: 1e15,
    }]);
    for (const line of feed.split("\r\n")) {
      assert.ok(Buffer.byteLength(line) <= 75);
      assert.doesNotMatch(line, /[\u0000-\u0008\u000a-\u001f\u007f]/);
    }
    const begun = feed.replaceAll("\r\n ", "").split("\r\n").filter((line) => line.startsWith("BEGIN:"));
    assert.equal(begun.length, 2);
  }), { numRuns: 300 });
  const { path, feed } = await withCalendar();
  const { body } = await book(path, "2026-02-03T10:00");
  const before = await fetch(feed);
  await server.call("DELETE", `/user/appointments/${body.data.id}`);
  const later = await fetch(feed, { headers: { "If-None-Match": before.headers.get("etag") ?? "" } });
  const [first, second] = [await before.text(), await later.text()];
  assert.match(first, /SEQUENCE:0/);
  assert.match(second, /SEQUENCE:1[\s\S]*STATUS:CANCELLED/);
  const same = await fetch(feed, { headers: { "If-None-Match": later.headers.get("etag") ?? "" } });
  assert.equal(same.status, 304);
});

test("[DK35] office hours that begin or end in a skipped hour do so when the clock moves forward", () => {
  const opens = (from: string, to: string, zone: string, iso: string) => {
    const office = { time_zone: zone, hours: { sunday: [{ from, to }] } };
    const settings = { timezone: "UTC", desk: { office_hours: office } };
    return awayOf({ settings: settings as unknown as AssistantSettings } as Assistant,
      Date.parse(iso) * 1000)?.opens_at ?? null;
  };
  const berlin = "Europe/Berlin";
  const next = "2027-04-03T22:00:00.000000Z";
  assert.equal(opens("00:00", "02:30", berlin, "2027-03-28T00:59:59Z"), null);
  assert.equal(opens("00:00", "02:30", berlin, "2027-03-28T01:00:00Z"), next, "closed at three");
  assert.equal(opens("02:30", "06:00", berlin, "2027-03-28T00:59:59Z"),
    "2027-03-28T01:00:00.000000Z", "open at three");
  assert.equal(opens("02:30", "06:00", berlin, "2027-03-28T01:00:00Z"), null);
  assert.equal(opens("02:10", "02:50", berlin, "2027-03-28T00:59:59Z"),
    "2027-04-04T00:10:00.000000Z", "a period that is none");
  // Half an hour, from two to half past.
  assert.equal(opens("02:15", "04:00", "Australia/Lord_Howe", "2026-10-03T15:00:00Z"),
    "2026-10-03T15:30:00.000000Z");
  assert.equal(opens("02:00", "02:30", berlin, "2026-10-25T00:29:59Z"), null);
});

test("[DK34] office hours that end no later than they begin run past midnight, across clock changes too", () => {
  const hours = {
    saturday: [{ from: "22:00", to: "02:30" }], monday: [{ from: "00:00", to: "00:00" }],
  };
  const office = { time_zone: "Europe/Berlin", hours, holidays: ["2026-11-28"] };
  const assistant = {
    settings: { timezone: "UTC", desk: { office_hours: office } } as unknown as AssistantSettings,
  } as Assistant;
  const opens = (iso: string) => awayOf(assistant, Date.parse(iso) * 1000)?.opens_at ?? null;
  assert.equal(opens("2026-11-21T20:59:00Z"), "2026-11-21T21:00:00.000000Z");
  assert.equal(opens("2026-11-21T21:00:00Z"), null);
  assert.equal(opens("2026-11-22T01:29:59Z"), null, "past midnight");
  assert.equal(opens("2026-11-22T01:30:00Z"), "2026-11-22T23:00:00.000000Z");
  assert.equal(opens("2026-11-23T22:59:59Z"), null, "a whole day");
  assert.equal(opens("2026-11-23T23:00:00Z"), "2026-11-29T23:00:00.000000Z", "not on the holiday");
  assert.equal(opens("2026-10-25T00:29:59Z"), null, "until the first half past two");
  assert.equal(opens("2026-10-25T00:30:00Z"), "2026-10-25T23:00:00.000000Z");
  assert.equal(opens("2027-03-28T00:59:59Z"), null, "a half past two that is none");
});
