// Calls that a hosted carrier brings to several nodes: it asks again where it was not answered in
// time, and its request reaches whichever node.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import twilio from "twilio";
import { createHostedDesks } from "#support/carriers/hosted-calls.ts";
import { CUSTOMER, EMULATED_TOKEN, ENV, phoneAt } from "#support/carriers/server-with-twilio.ts";
import { startTwilioEmulator } from "#support/carriers/twilio-emulator.ts";
import { openPublicDoor, startTwilioFront } from "#support/carriers/twilio-front.ts";
import { withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodes } from "#support/nodes/nodes.ts";
import type { TestServer } from "#support/server.ts";

test("[ND71] a call a carrier delivers again, to another node, gets the same answer and has one record", {
  skip: withoutPostgres || withoutNats,
}, async () => {
  const door = await openPublicDoor();
  const emulator = await startTwilioEmulator(`${door.url}/unused`);
  const front = await startTwilioFront(emulator.url);
  const nodes = await startNodes(2, {
    ...ENV, PARLEY_TWILIO_URL: front.url, PARLEY_PUBLIC_URL: door.url, PARLEY_NODE_URL: door.url,
  });
  after(async () => {
    await nodes.close();
    await Promise.all([front.close(), emulator.close(), door.close()]);
  });
  const [here, there] = nodes.all;
  assert.ok(here && there);
  door.lead(here.port);
  await here.app.features.accounts.credit(here.accountId, 500_000_000);
  const world = createHostedDesks("twilio", () => here, (number) =>
    Promise.resolve(void front.numbers.push(number)));
  world.watch(here);
  const { number } = await world.desk();
  const bring = async (node: TestServer, CallSid: string) => {
    const form = {
      CallSid, CallStatus: "ringing", Direction: "inbound", From: CUSTOMER, To: number,
    };
    const response = await fetch(`${node.url}/carriers/twilio/voice`, {
      method: "POST", body: new URLSearchParams(form),
      headers: { "X-Twilio-Signature": twilio.getExpectedTwilioSignature(
        EMULATED_TOKEN, `${door.url}/carriers/twilio/voice`, form) },
    });
    return { status: response.status, document: await response.text() };
  };
  const calls = async () => (await here.call("GET", "/user/calls")).body.total as number;

  const first = await bring(here, "CA1");
  assert.deepEqual(await bring(there, "CA1"), first);
  assert.deepEqual(await bring(here, "CA1"), first);
  const { id } = await world.newestCall();
  const phone = await phoneAt({ document: first.document, callSid: "CA1" });
  await phone.hears("Hi there.");
  assert.deepEqual(await bring(there, "CA1"), first, "while it is talked on");
  assert.equal(await calls(), 1);
  phone.hangUp();
  await world.when(id, "ended_by_customer");

  const second = await bring(here, "CA2");
  assert.match(second.document, /<Stream/);
  await nodes.nats.kill();
  // Whoever has it cannot be asked: the carrier is to ask again.
  assert.equal((await bring(there, "CA2")).status, 503);
  assert.deepEqual(await bring(here, "CA2"), second);
  assert.equal((await bring(there, "CA3")).status, 200, "others are taken");
  assert.equal(await calls(), 3);
  await nodes.nats.start();
});
