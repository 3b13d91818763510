// The words of the assistant's editor: every setting has its label, and what the server minds of
// one is said in that label's words. Without a browser; assistants.test.ts has what is shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TSchema } from "@sinclair/typebox";
import { errorsOf } from "#core/schema.ts";
import { UpdateBody } from "#features/assistants/settings.ts";
import { compileValidation } from "#http/validation.ts";

// What a browser has: the page's time zone is kept there.
Object.assign(globalThis, { localStorage: { getItem: () => null } });
const { labelOf, reworded, tellings } =
  await import("#ui/dashboard/pages/assistants/labels.ts");
const { BUILT_INS } = await import("#ui/dashboard/pages/assistants/sections/built-ins.ts");

const validate = compileValidation(UpdateBody);
const minded = (field: string, value: unknown): [string, string][] =>
  Object.entries(errorsOf(validate({ [field]: value })))
    .map(([name, [message = ""]]) => [name, reworded(name, message)]);

/** Another spelling of `noise_cancellation`, which the editor has. */
const WITHOUT = new Set(["enable_noise_cancellation"]);

test("[DB430] every setting has a label, and its errors use that label and no name of the API", () => {
  const fields = Object.keys(UpdateBody.properties).filter((name) => !WITHOUT.has(name));
  const told = new Map(tellings());
  for (const field of fields) {
    assert.ok(told.has(field), `${field} has no label`);
    const complaints = [Infinity, "", { none: true }, "x".repeat(200_000)]
      .flatMap((value) => minded(field, value));
    for (const [name, text] of complaints) {
      assert.doesNotMatch(text, /_|^The (selected )?[a-z ]+ id\b/, `${name}: ${text}`);
    }
  }
  assert.deepEqual(minded("max_duration", 2000), [
    ["max_duration", "“Longest call (s)” may not be greater than 1200."],
  ]);
  assert.deepEqual(minded("speech_speed", 2), [
    ["speech_speed", "“Speed” must be between 0.7 and 1.2."],
  ]);
  assert.deepEqual(minded("tools", [{ type: "call_transfer", phone_number: "none" }]), [
    ["tools.0.phone_number",
      "“Phone number” must be in E.164 format (e.g. +1234567890) or a SIP URI."],
  ]);
  assert.deepEqual(minded("desk", { after_unanswered: 99 }), [
    ["desk.after_unanswered", "“Ask for a person after failed replies” may not be greater than 10."],
  ]);
  assert.deepEqual(minded("widget_settings", { greeting: { text: "Hi", after_seconds: -1 } }), [
    ["widget_settings.greeting.after_seconds", "“After (s)” must be at least 0."],
  ]);
});

test("[DB717] the editor's texts are plain words without code markup", () => {
  for (const [name, telling] of tellings()) assert.doesNotMatch(JSON.stringify(telling), /`/, name);
});

test("[DB431] every number in the editor explains its direction or range with an example", () => {
  const isNumber = ({ type }: TSchema) => type === "number" || type === "integer";
  const numbers = Object.entries(UpdateBody.properties)
    .filter(([name, schema]) => !name.endsWith("_id")
      && [schema, ...(schema.anyOf as TSchema[] | undefined) ?? []].some(isNumber))
    .map(([name]) => name);
  assert.ok(numbers.includes("max_duration") && numbers.includes("daily_spend_cap"), numbers.join());
  const told = new Map(tellings());
  for (const name of numbers) {
    const { hint = "" } = told.get(name) ?? { label: labelOf(name) };
    assert.match(hint, /\d/, `${name}: ${hint}`);
  }
  const members = BUILT_INS.flatMap((spec) => spec.members);
  for (const { kind, hint, name } of members) {
    if (kind === "number") assert.match(hint ?? "", /\d.*e\.g\. \d/, name);
  }
});
