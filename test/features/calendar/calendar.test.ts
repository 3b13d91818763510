// The embedded calendar: free times across changes of the clock, bookings that never collide, what
// a model does with them, and the feed people subscribe to.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { freeSlots, isFree, localIso, readLocal, slotsOfDay } from "#features/calendar/slots.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
});

const ALWAYS = [{ from: "00:00", to: "24:00" }];
const EVERY_DAY = {
  monday: ALWAYS, tuesday: ALWAYS, wednesday: ALWAYS, thursday: ALWAYS, friday: ALWAYS,
  saturday: ALWAYS, sunday: ALWAYS,
};
const rules = (timeZone: string, slotMinutes = 30) =>
  ({ hours: EVERY_DAY, timeZone, slotMinutes, bufferMinutes: 0 });

interface Settings {
  working_hours: object;
  [setting: string]: unknown;
}

async function withCalendar(settings: Partial<Settings> = {}) {
  const assistant = await newAssistant(server, { tools: [{ type: "calendar" }] });
  const path = `/user/assistants/${assistant.id}`;
  const { status, body } = await server.call("PUT", `${path}/calendar`, {
    body: { working_hours: EVERY_DAY, lead_minutes: 0, time_zone: "Europe/Berlin", ...settings },
  });
  assert.equal(status, 200, JSON.stringify(body));
  const { calendars, assistants } = server.app.features;
  const found = await assistants.find(server.accountId, assistant.id);
  assert.ok(found);
  const { slots } = await calendars.availability(found, { date: null, days: 7 });
  return { ...assistant, path, feedUrl: body.data.feed_url as string, slots };
}

test("[CA1] a day of a clock change has each local hour once, and none that does not exist", () => {
  const count = (date: string) => slotsOfDay(date, rules("Europe/Berlin", 60)).length;
  assert.equal(count("2026-03-28"), 24);
  assert.equal(count("2026-03-29"), 23);
  assert.equal(count("2026-10-25"), 24);
  assert.equal(readLocal("2026-03-29T02:30", "Europe/Berlin"), null);
  const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"];
  fc.assert(fc.property(
    fc.constantFrom(...zones), fc.integer({ min: 0, max: 800 }),
    fc.constantFrom(15, 30, 45, 60, 90),
    (zone, day, minutes) => {
      const date = new Date(Date.UTC(2026, 0, 1 + day)).toISOString().slice(0, 10);
      const slots = slotsOfDay(date, rules(zone, minutes));
      slots.forEach((slot, index) => {
        assert.equal(slot.end - slot.start, minutes * 60_000_000);
        assert.ok(index === 0 || slot.start >= (slots[index - 1]?.end ?? 0));
        const text = localIso(slot.start, zone);
        assert.ok(text.startsWith(date), `${text} on ${date}`);
        assert.equal(readLocal(text, zone), slot.start);
      });
    }));
});

test("[CA2] free slots avoid bookings and their buffer", () => {
  const start = Date.UTC(2026, 0, 15) * 1000;
  const within = { start, end: start + 86_400_000_000 };
  fc.assert(fc.property(
    fc.array(
      fc.tuple(fc.integer({ min: 0, max: 1400 }), fc.integer({ min: 5, max: 200 })),
      { maxLength: 6 }),
    fc.integer({ min: 0, max: 60 }),
    (booked, bufferMinutes) => {
      const busy = booked.map(([at, minutes]) => ({
        start: start + at * 60_000_000, end: start + (at + minutes) * 60_000_000,
      }));
      const free = freeSlots({ ...rules("UTC"), bufferMinutes }, within, busy, 100);
      assert.ok(free.every((slot) => isFree(slot, busy, bufferMinutes)));
      const all = slotsOfDay("2026-01-15", rules("UTC"));
      assert.equal(free.length, all.filter((slot) => isFree(slot, busy, bufferMinutes)).length);
    }));
});

test("[CA3] of a hundred requests for one time exactly one gets it; a retry gets the same booking", async () => {
  const { path, slots } = await withCalendar({ buffer_minutes: 30 });
  const [first] = slots;
  const book = (key: string) => server.call("POST", `${path}/appointments`, {
    body: { start: first?.start, name: key }, headers: { "Idempotency-Key": key },
  });
  const results = await Promise.all(Array.from({ length: 100 }, (_, index) => book(`k${index}`)));
  const booked = results.filter(({ status }) => status === 201);
  assert.equal(booked.length, 1);
  for (const { status, body } of results) {
    if (status !== 201) assert.deepEqual(body.errors, { start: ["The start is already taken."] });
  }
  const { id, name } = booked[0]?.body.data as { id: number; name: string };
  assert.equal((await book(name)).body.data.id, id);
  const next = slots.find(({ start }) => start > (first?.start ?? ""));
  const close = await server.call("POST", `${path}/appointments`, {
    body: { start: next?.start, name: "Too close" },
  });
  assert.equal(close.status, 422, "the buffer is kept");
  assert.equal((await server.call("DELETE", `/user/appointments/${id}`)).status, 200);
  assert.equal((await server.call("DELETE", `/user/appointments/${id}`)).status, 404);
  const again = await server.call("POST", `${path}/appointments`, {
    body: { start: first?.start, name: "Later" },
  });
  assert.equal(again.status, 201);
});

test("[CA4] only times the calendar offers can be booked", async () => {
  const { path, slots } = await withCalendar({ days_ahead: 10 });
  const start = slots[0]?.start ?? "";
  const closed = "No appointment can begin at the start: it is too soon, too far ahead, or no "
    + "beginning of a slot in the opening hours.";
  for (const [wrong, text] of [
    [start.replace(/T\d\d:\d\d/, "T00:07"), closed],
    ["2020-01-01T09:00", closed],
    ["2099-01-01T09:00", closed],
    ["tomorrow", "The start must be a time such as 2026-01-15T09:00."],
  ]) {
    const { status, body } = await server.call("POST", `${path}/appointments`, {
      body: { start: wrong, name: "A" },
    });
    assert.equal(status, 422);
    assert.deepEqual(body.errors, { start: [text] });
  }
  const bad = await server.call("PUT", `${path}/calendar`, {
    body: { working_hours: { monday: [{ from: "17:00", to: "09:00" }] }, slot_minutes: 0 },
  });
  assert.equal(bad.status, 422);
});

test("[CA5] a model looks up times, books once however often it asks, and is told when it is too late", async () => {
  const { uuid: assistant, slots } = await withCalendar();
  const uuid = await newConversation(server, assistant);
  const calls = [
    ["check_availability", "{}"],
    ["book_appointment", JSON.stringify({ start: slots[2]?.start, name: "Ann", email: "a@b.c" })],
    ["book_appointment", JSON.stringify({ start: slots[2]?.start, name: "Ann", email: "a@b.c" })],
    ["book_appointment", JSON.stringify({ start: slots[2]?.start, name: "Bob" })],
    ["book_appointment", "{}"],
    ["check_availability", '{"date":"soon"}'],
  ];
  let step = 0;
  model.script(() => {
    step += 1;
    if (step > 1) return { tokens: ["Done."] };
    const toolCalls = calls.map(([name = "", args = ""], index) => ({
      id: `c${index}`, name, arguments: args,
    }));
    return { tokens: [], toolCalls, finishReason: "tool_calls" };
  });
  const { body } = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "Book me in" },
  });
  model.script(null);
  const results = (body.function_calls as { result: Record<string, unknown> }[])
    .map(({ result }) => result);
  const [looked, booked, again, late, nameless, odd] = results;
  assert.equal(looked?.time_zone, "Europe/Berlin");
  assert.deepEqual((looked?.free_times as unknown[])[0], slots[0]);
  assert.equal(booked?.booked, true);
  assert.equal(booked?.start, slots[2]?.start);
  assert.equal(again?.appointment_id, booked?.appointment_id);
  assert.match(String(late?.error), /taken/);
  assert.ok((late?.free_times as unknown[]).length > 0);
  assert.match(String(nameless?.error), /name is missing/);
  assert.match(String(odd?.error), /YYYY-MM-DD/);
});

test("[CA6] the feed is iCalendar at a secret address that can be changed; strangers see nothing", async () => {
  const { id, path, feedUrl, slots } = await withCalendar();
  const name = "Ümlaut, with; signs\\ and a very long name ".repeat(4).trim();
  await server.call("POST", `${path}/appointments`, {
    body: { start: slots[1]?.start, name, notes: "line one\nline two" },
  });
  const response = await fetch(feedUrl);
  assert.match(response.headers.get("content-type") ?? "", /^text\/calendar/);
  const text = await response.text();
  const lines = text.split("\r\n");
  assert.ok(lines.every((line) => Buffer.byteLength(line) <= 75 && !line.includes("\n")));
  const unfolded = text.replaceAll("\r\n ", "");
  const start = new Date(slots[1]?.start ?? "").toISOString().replaceAll(/[-:]|\.000/g, "");
  assert.ok(unfolded.includes(`DTSTART:${start}`));
  assert.ok(unfolded.includes("SUMMARY:Ümlaut\\, with\\; signs\\\\ and"));
  assert.match(unfolded, /STATUS:CONFIRMED/);
  const other = await server.newAccount();
  for (const method of ["GET", "PUT"]) {
    const { status } = await server.call(method, `/user/assistants/${id}/calendar`, {
      key: other.key, ...(method === "PUT" ? { body: {} } : {}),
    });
    assert.equal(status, 404);
  }
  await server.call("PUT", `${path}/calendar`, { body: { rotate_feed: true } });
  assert.equal((await fetch(feedUrl)).status, 404);
});
