// Days as they are counted in time zones, where clocks are changed and where they are not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dayAfter, daysBetween, isDay, mondayOf } from "#core/days.ts";
import { isoMicros } from "#core/system.ts";
import { dayAt, dayStart } from "#core/zones.ts";

const begins = (day: string, zone: string): string => isoMicros(dayStart(day, zone)).slice(0, 16);

test("[OV8] a day starts at its first instant in its zone, even if the clock changes that day or at midnight", () => {
  for (const [day, zone, at] of [
    ["2026-03-28", "UTC", "2026-03-28T00:00"],
    // Clocks go forward in the night of 29 March, back in that of 25 October.
    ["2026-03-28", "Europe/Berlin", "2026-03-27T23:00"],
    ["2026-03-29", "Europe/Berlin", "2026-03-28T23:00"],
    ["2026-03-30", "Europe/Berlin", "2026-03-29T22:00"],
    ["2026-10-25", "Europe/Berlin", "2026-10-24T22:00"],
    ["2026-10-26", "Europe/Berlin", "2026-10-25T23:00"],
    ["2026-03-08", "America/New_York", "2026-03-08T05:00"],
    ["2026-03-09", "America/New_York", "2026-03-09T04:00"],
    ["2026-06-01", "Asia/Kolkata", "2026-05-31T18:30"],
    ["2026-06-01", "Pacific/Kiritimati", "2026-05-31T10:00"],
    ["2026-06-01", "Pacific/Pago_Pago", "2026-06-01T11:00"],
    // 00:00 is not there: the day begins at 01:00.
    ["2026-04-24", "Africa/Cairo", "2026-04-23T22:00"],
    ["2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00"],
    // 00:00 comes twice, the first time in summer time.
    ["2026-11-01", "America/Havana", "2026-11-01T04:00"],
    // 24:00 is 23:00 again: the day begins an hour later.
    ["2018-02-18", "America/Sao_Paulo", "2018-02-18T03:00"],
  ] as const) {
    assert.equal(begins(day, zone), at, `${day} ${zone}`);
    assert.equal(dayAt(dayStart(day, zone), zone), day);
    assert.equal(dayAt(dayStart(day, zone) - 1, zone), dayAfter(day, -1));
  }
});

test("[OV9] calendar days are counted across months and leap years, and invalid days are refused", () => {
  assert.deepEqual(["2024-02-28", "2025-12-31"].map((day) => dayAfter(day)), ["2024-02-29", "2026-01-01"]);
  assert.equal(daysBetween("2026-03-01", "2026-04-01"), 31);
  assert.deepEqual(["2026-03-01", "2026-03-02"].map(mondayOf), ["2026-02-23", "2026-03-02"]);
  assert.deepEqual(["2026-02-29", "2026-13-01", "0000-01-01", "9999-12-31", "x"].map(isDay),
    [false, false, false, false, false]);
});
