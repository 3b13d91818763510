// Figures as the dashboard writes them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { csvLine } from "#core/csv.ts";
import { isDay } from "#core/days.ts";
import {
  inOneLine, minutesOf, money, moneyExactly, whenExactly, words,
} from "#ui/dashboard/kit/format.ts";
import { filled, t } from "#ui/dashboard/kit/texts.ts";
import { showIn, today } from "#ui/dashboard/kit/zone.ts";
import { createSay } from "#ui/widget/texts.ts";
import { periodLabels } from "#ui/dashboard/pages/campaigns/words.ts";
import { happeningOf } from "#ui/dashboard/pages/overview/happenings.ts";
import { labelsOf } from "#ui/dashboard/pages/overview/range.ts";

test("[DB460] amounts have one format, cents, and less than a cent is not shown as zero", () => {
  assert.deepEqual(
    [104.9, 104.6517, 100.43, 0.58, 0, -2.5, 12_345.6789].map(money),
    ["$104.90", "$104.65", "$100.43", "$0.58", "$0.00", "-$2.50", "$12,345.68"],
  );
  assert.deepEqual([0.0015, -0.000_012].map(money), ["$0.0015", "-$0.000012"]);
  assert.equal(moneyExactly(104.6517), "$104.6517");
  assert.equal(moneyExactly(-0.000_012), "-$0.000012");
});

test("[DB591] a sum of daily amounts is displayed like its total, even at half a cent", () => {
  const days = [0.195, 0.085, 0.105, 0.03, 0.05, 0.145, 0.195];
  const sum = days.reduce((total, day) => total + day, 0);
  assert.notEqual(sum, 0.805);
  assert.equal(money(sum), money(0.805));
  assert.equal(money(0.1 + 0.2 - 0.3), "$0.00");
});

test("[DB592] minutes talked are the calls' sum, not a sum of rounded days", () => {
  // As the server has a call of 20 s on each of 30 days: ten minutes.
  const days = Array.from({ length: 30 }, () => ({ minutes: 0.33 }));
  assert.equal(minutesOf(days), 10);
  assert.equal(minutesOf([{ minutes: 1.5 }, { minutes: 0.02 }, { minutes: 0 }]), 1.5);
});

test("[DB647] charts tell apart the hours that a clock change repeats", () => {
  const points = ["01:00", "02:00", "02:00", "03:00"].map((time) => ({ date: `2025-10-26T${time}` }));
  const day = labelsOf([{ date: "2025-10-26" }], "day", "UTC");
  assert.deepEqual(labelsOf(points, "hour", "Europe/Berlin"), [
    `${day}, 01:00`, `${day}, 02:00 GMT+2`, `${day}, 02:00 GMT+1`, `${day}, 03:00`,
  ]);
  const hours = ["00:00", "01:00", "02:00"].map((time) => ({ start: `2025-10-26T${time}:00Z` }));
  showIn("Europe/Berlin");
  assert.deepEqual(periodLabels(hours, "hour", "UTC").map((label) => label.replace(/^.+, /, "")),
    ["02:00 AM GMT+2", "02:00 AM GMT+1", "03:00 AM"]);
  const west = ["01:00", "01:00"].map((time) => ({ date: `2025-11-02T${time}` }));
  assert.match(String(labelsOf(west, "hour", "America/New_York")), /01:00 EDT,.* 01:00 EST$/);
});

test("[DB753] only exact times that a clock change repeats show their zone", () => {
  const shown = (zone: string, times: string[]): string[] => {
    showIn(zone);
    return times.map((time) => whenExactly(time).replace(/^.+, /, "").replaceAll("\u202f", " "));
  };
  assert.deepEqual(
    shown("America/New_York", ["04:59:59", "05:30:00", "06:30:00", "07:00:00"]
      .map((time) => `2026-11-01 ${time}`)),
    ["12:59:59 AM", "1:30:00 AM EDT", "1:30:00 AM EST", "2:00:00 AM"]);
  assert.deepEqual(
    shown("Australia/Lord_Howe", ["14:29:59", "14:45:00", "15:15:00", "15:30:00"]
      .map((time) => `2026-04-04T${time}Z`)),
    ["1:29:59 AM", "1:45:00 AM GMT+11", "1:45:00 AM GMT+10:30", "2:00:00 AM"]);
  // Where clocks are put forward nothing is shown twice.
  assert.deepEqual(
    shown("Europe/Berlin", ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"]),
    ["1:30:00 AM", "3:30:00 AM"]);
});

test("[DB522] in lists a Markdown message is one plain line", () => {
  assert.equal(
    inOneLine("## Prices\n\n| Bike | A day |\n|---|:---:|\n| City | $20 |\n\nSee `order_status`, **today**."),
    "Prices Bike A day City $20 See order_status, today.");
  assert.equal(inOneLine("5 - 3 = 2 # really\n- one"), "5 - 3 = 2 # really - one");
});

test("[DB549] today is a calendar day, however the browser formats dates", (given) => {
  // Safari's engine writes 11/23/2026 in English of Canada, where others write 2026-11-23.
  given.mock.getter(Intl.DateTimeFormat.prototype, "format", () => () => "11/23/2026");
  assert.ok(isDay(today()), today());
});

test("[DB574] no cell of a CSV file is a formula, even if a spreadsheet splits at semicolons", () => {
  const line = csvLine([
    "=1+1", "a;=1+1", "b; @SUM(A1)", 'c;"=1+1', "d\n+1", "-5", -5, "See you ;-)", "x-y = z+1",
    "Two:\n- one\n-A1",
  ]);
  assert.equal(line, [
    "'=1+1", "a;'=1+1", "b; '@SUM(A1)", '"c;""\'=1+1"', "\"d\n'+1\"", "'-5", "-5", "See you ;-)",
    "x-y = z+1", "\"Two:\n- one\n'-A1\"",
  ].join(","));
  const cells = line.split(/[;\n]/).map((cell) => cell.replace(/^[ "]+/, ""));
  assert.deepEqual(cells.filter((cell) => /^[=+@]/.test(cell)), []);
  // A long cell of spaces and signs takes no longer than any other.
  const startedMs = performance.now();
  csvLine([` ${" ".repeat(300_000)}=`, `;${" =".repeat(300_000)}`]);
  assert.ok(performance.now() - startedMs < 2000);
});

test("[DB649] text within an exported object never becomes a formula, and the object stays JSON", () => {
  const variables = { note: "Two;=1+1;", "a; -1": ["b;@SUM(A1)", ";-)"], count: -5 };
  const line = csvLine([7, variables]);
  const cells = line.split(";").map((cell) => cell.replace(/^[ "]+/, ""));
  assert.deepEqual(cells.filter((cell) => /^(?:[=+@]|-[^)])/.test(cell)), []);
  assert.deepEqual(JSON.parse(line.slice(3, -1).replaceAll('""', '"')),
    { note: "Two;'=1+1;", "a; '-1": ["b;'@SUM(A1)", ";-)"], count: -5 });
});

test("[DB656] no name reorders the text around it", () => {
  assert.equal(t("Delete {name}?", { name: "gno\u202Elive\u2066" }), "Delete gnolive?");
  assert.deepEqual(filled("By {name}.", { name: "\u2067Ada" }), ["By ", "Ada", "."]);
  const say = createSay(() => ({ joined: "{name} joined" }));
  assert.equal(say("joined", { name: "\u202EAda" }), "Ada joined");
});

test("[DB751] [WG307] a right-to-left name in our texts is isolated with its punctuation", () => {
  assert.equal(t("Delete {name}?", { name: "\u202Eמשרד!" }), "Delete \u2068משרד!\u2069?");
  assert.deepEqual(filled("By {name}.", { name: "مكتب" }), ["By ", "\u2068مكتب\u2069", "."]);
  const say = createSay(() => ({ joined: "{name} joined" }));
  assert.equal(say("joined", { name: "משרד!" }), "\u2068משרד!\u2069 joined");
});

test("[DB589] a code is displayed as words, with abbreviations in capitals", () => {
  assert.deepEqual(["ai_toggled", "in-progress", "aired"].map(words),
    ["AI toggled", "In progress", "Aired"]);
});

test("[DB936] a conversation whose person may no longer answer is not news of somebody who asked", () => {
  const told = ["lost", "asked"].map((reason) => happeningOf({
    type: "desk_changed", conversation_id: "c", desk: "waiting", holder: null, reason,
  })?.text);
  assert.deepEqual(told, [
    "A conversation waits for a person again", "Somebody asked for a person",
  ]);
});
