// Calls over a hosted carrier whose interface fails, or answers too late, in the middle of them;
// and keys that are pressed over what the assistant says.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTwilioWorld } from "#support/carriers/server-with-twilio.ts";
import type { Behaviour } from "#support/carriers/twilio-front.ts";
import { callingOnce, startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const world = await startTwilioWorld({
  PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
});
after(async () => {
  await world.close();
  await model.close();
});
const { front } = world;

/** A call that is handed on, whose stream stops before Twilio answers so. */
async function handingOn(answer: Behaviour) {
  model.script(callingOnce("transfer_call", {}, ["One ", "moment."]));
  const desk = await world.desk({ tools: [
    { type: "collect_keypad" },
    { type: "call_transfer", description: "", phone_number: "+14155550177", custom: false },
  ] });
  const placed = await world.dial(desk.id);
  const phone = await world.phone({ document: placed.document, callSid: placed.sid });
  await phone.hears("Hi there.");
  await phone.until(() => phone.messages.some(({ event }) => event === "mark"));
  front.behave(async ({ kind, form }) => {
    if (kind !== "update" || !form.has("Twiml")) return "pass";
    phone.hangUp();
    await phone.closed();
    return answer;
  });
  phone.press("1#");
  return placed;
}

/** Its record at its end, whichever. */
const endOf = (callId: number) => Promise.race(
  ["ended_by_customer", "completed", "failed"].map((status) => world.when(callId, status)));

test("[TW110] hanging up during a transfer request is a hang-up, and the call has not failed", async () => {
  const { callId } = await handingOn({ status: 404, body: { code: 20404 } });
  const call = await endOf(callId);
  assert.deepEqual([call.end_reason, call.failure_reason], ["customer_hung_up", null]);
  assert.equal(call.total_cost, 0.05);
  assert.equal(call.transfers[0].status, "failed");
});

test("[CR560] keys that interrupt speech come after what was heard of it: on record, in time and for the model", async () => {
  const asked: unknown[] = [];
  model.script(({ messages }) => {
    asked.push(messages.slice(1).map(({ role, content }) => `${role}: ${String(content)}`));
    return { tokens: ["Sales."] };
  });
  const { id } = await world.desk({
    tools: [{ type: "collect_keypad" }],
    initial_message: "For sales press one, for all the rest stay on the line until we come.",
  });
  const { callId, document, sid } = await world.dial(id);
  const phone = await world.phone({ document, callSid: sid });
  await phone.until(() => phone.words.length === 6);
  phone.press("1#");
  await phone.until(() => asked.length === 1);
  phone.hangUp();
  const call = await endOf(callId);
  const [menu, keys] = call.transcript_entries as { text: string; start_ms: number }[];
  assert.match(menu!.text, /^For sales press one,/);
  assert.equal(keys!.text, "[Keypad input: 1]");
  assert.ok(keys!.start_ms > menu!.start_ms, `${keys!.start_ms}`);
  assert.deepEqual(asked, [[`assistant: ${menu!.text}`, `user: ${keys!.text}`]]);
});

test("[CR562] a hang-up the carrier rejects is repeated a moment later", { timeout: 20_000 }, async () => {
  const { id } = await world.desk();
  const { callId, sid } = await world.dial(id);
  let refused = 0;
  front.behave(({ kind }) => {
    if (kind !== "update" || refused === 2) return "pass";
    refused += 1;
    return { status: refused === 1 ? 500 : 429, body: {} };
  });
  assert.equal((await world.server.call("POST", `/user/calls/${callId}/end`)).status, 200);
  assert.equal((await front.update(sid, 2)).get("Status"), "completed");
  assert.equal((await endOf(callId)).end_reason, "operator");
});

test("[TW111] a transfer that succeeded but whose response was lost is not hung up", async () => {
  const { callId, sid } = await handingOn("lose");
  const call = await endOf(callId);
  assert.deepEqual([call.end_reason, call.transfers[0].status], ["transferred", "completed"]);
  await world.server.app.close();
  assert.equal(front.count("update", sid), 1);
});
