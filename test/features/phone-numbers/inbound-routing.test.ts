// Where calls that come in go, and how telephone systems spell numbers.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { getExampleNumber } from "libphonenumber-js/max";
import examples from "libphonenumber-js/mobile/examples";
import { CALLING_FORMATS, formatForTrunk, likenessOf } from "#features/phone-numbers/dialled.ts";
import { runBeside } from "#support/databases/beside.ts";
import { runCli } from "#support/process.ts";
import { newAssistant, openBeside, startTestServer } from "#support/server.ts";
import { newTrunk } from "#support/sip/sip-trunks.ts";

const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());
const { routeInbound } = server.app.features.phoneNumbers;

test("[PN47] an inbound call matches the number in any spelling, an allowed sender and an active assistant", async () => {
  const { key, accountId } = await server.newAccount();
  const other = await server.newAccount();
  const byIp = { inbound_authorization_type: "ip", allowed_inbound_ips: ["198.51.100.0/24"] };
  const german = await newTrunk(server, { phone_number: "+493012345678", sip_username: "desk" }, key);
  const sibling = await newTrunk(server, { phone_number: "+493012345679", sip_username: "desk" }, key);
  const stranger = await newTrunk(server, { phone_number: "+493012345670" }, key);
  const american = await newTrunk(
    server, { phone_number: "+12015550177", country_code: "US", ...byIp }, key);
  const extension = await newTrunk(
    server, { sip_trunk_type: "extension", phone_number: "sales.1", sip_username: "desk" }, key);
  // Somebody else has the same number elsewhere.
  const thief = await newTrunk(server, {
    phone_number: "+12015550177", country_code: "US", ...byIp, allowed_inbound_ips: ["192.0.2.0/24"],
    sip_address: "other.example.com",
  }, other.key);
  const active = (phoneNumberId: number, by = key) => newAssistant(
    server, { status: "active", phone_number_id: phoneNumberId }, by);
  const atGerman = await active(german.id);
  const atAmerican = await active(american.id);
  const atExtension = await active(extension.id);
  const atThief = await active(thief.id, other.key);
  await newAssistant(server, { phone_number_id: sibling.id, status: "inactive" }, key);

  const route = async (
    calledNumber: string, sourceAddress: string | null, trunkId: number | null,
  ) => {
    const found = await routeInbound({ calledNumber, sourceAddress, trunkId });
    return found.kind === "assistant" ? found.assistantId : found.cause;
  };
  assert.deepEqual(
    await routeInbound({ calledNumber: "030 12345678", sourceAddress: "203.0.113.9", trunkId: german.id }),
    { kind: "assistant", assistantId: atGerman.id, accountId, number: "+493012345678" });
  const desk = german.id;
  for (const called of ["+493012345678", "493012345678", "004930 12345678", "+49-30-12345678"]) {
    assert.equal(await route(called, "203.0.113.9", desk), atGerman.id, called);
  }
  for (const called of ["+12015550177", "12015550177", "2015550177", "(201) 555-0177"]) {
    assert.equal(await route(called, "198.51.100.8", null), atAmerican.id, called);
    assert.equal(await route(called, "198.51.101.8", null), "not_allowed", called);
  }
  assert.equal(await route("+12015550177", "::ffff:198.51.100.8", null), atAmerican.id);
  assert.equal(await route("sales.1", "203.0.113.9", desk), atExtension.id);
  assert.equal(await route("Sales.1", "203.0.113.9", desk), "unknown_number");
  // The name it has shown is good for the account's numbers of that name, and for nothing else.
  assert.equal(await route("+493012345679", "203.0.113.9", desk), "inactive_assistant");
  assert.equal(await route("+493012345670", "203.0.113.9", desk), "not_allowed");
  assert.equal(await route("+493012345670", "203.0.113.9", stranger.id), "no_assistant");
  assert.equal(await route("+493012345678", "203.0.113.9", null), "not_allowed");
  assert.equal(await route("+493012345678", "203.0.113.9", 999_999), "not_allowed");
  assert.equal(await route("+493012345678", "198.51.100.8", thief.id), "unknown_number");
  assert.equal(await route("+12015550177", "192.0.2.8", thief.id), atThief.id);
  for (const called of ["", "+", "1", "+4930123456780", "12345678", "9".repeat(5000), "\u0000"]) {
    assert.equal(await route(called, "198.51.100.8", desk), "unknown_number", called.slice(0, 20));
  }
});

test("[PN153] a call that matches two accounts rings nowhere, unless the operator decides", async () => {
  const [one, other] = [await server.newAccount(), await server.newAccount()];
  const changes = (network: string) => ({
    phone_number: "+12015550171", country_code: "US", inbound_authorization_type: "ip",
    allowed_inbound_ips: [network], sip_address: `at-${network.slice(0, 3)}.example.com`,
  });
  const first = await newTrunk(server, changes("198.51.100.0/24"), one.key);
  const second = await newTrunk(server, changes("203.0.113.0/24"), other.key);
  const active = (phoneNumberId: number, by: string) => newAssistant(
    server, { status: "active", phone_number_id: phoneNumberId }, by);
  await active(first.id, one.key);
  const atSecond = await active(second.id, other.key);
  const arrival = { calledNumber: "12015550171", sourceAddress: "203.0.113.9", trunkId: null };
  const number = "+12015550171";
  const rings = { kind: "assistant", assistantId: atSecond.id, accountId: other.accountId, number };
  assert.deepEqual(await routeInbound(arrival), rings);
  // As it was stored before anybody looked.
  await runBeside(server.dataDir, `UPDATE sip_trunks SET allowed_networks = '["203.0.113.0/28"]'
    WHERE phone_number_id = ${first.id}`);
  await server.app.features.phoneNumbers.sipTrunks.removed(0);
  assert.deepEqual(await routeInbound(arrival), { kind: "refused", cause: "tied" });
  const approved = runCli(server.dataDir, [
    "number", "approve", number, "--account", String(other.accountId), "--json"]);
  assert.deepEqual(JSON.parse(approved), { phone_number: number, account_id: other.accountId });
  assert.deepEqual(await routeInbound(arrival), rings);
});

test("[PN48] purchased numbers ring only through hosted carriers, never through someone's trunk", async () => {
  const { key } = await server.newAccount();
  const buy = async (phoneNumber: string) => {
    const storage = await openBeside(server.dataDir);
    await storage.numberInventory.stock({
      now: 1,
      numbers: [{ phoneNumber, countryCode: "US", smsCapable: false, monthlyMicros: 0, carrier: null }],
    });
    await storage.close();
    const { body } = await server.call("POST", "/user/phone-numbers/purchase", {
      key, body: { phone_number: phoneNumber },
    });
    return (body.data as { id: number }).id;
  };
  const id = await buy("+12015550190");
  const open = { inbound_authorization_type: "ip", allowed_inbound_ips: ["198.51.100.0/24"] };
  const thief = await newTrunk(server, { phone_number: "+12015550190", country_code: "US", ...open });
  await newAssistant(server, { status: "active", phone_number_id: thief.id });
  const route = async (calledNumber: string, sourceAddress: string | null) => {
    const found = await routeInbound({ calledNumber, sourceAddress, trunkId: null });
    return found.kind === "assistant" ? found.assistantId : found.cause;
  };
  assert.equal(await route("+12015550190", null), "no_assistant");
  const assistant = await newAssistant(server, { status: "inactive", phone_number_id: id }, key);
  assert.equal(await route("+12015550190", null), "inactive_assistant");
  await server.call("PUT", `/user/assistant/${assistant.id}`, { key, body: { status: "active" } });
  assert.equal(await route("+12015550190", null), assistant.id);
  assert.equal(await route("12015550190", null), assistant.id);
  assert.equal(await route("+12015550190", "203.0.113.1"), "not_allowed");
  // A trunk's number does not come through a hosted carrier.
  const trunk = await newTrunk(server, { phone_number: "+12015550191", country_code: "US", ...open });
  assert.equal(await route(trunk.phone_number, null), "unknown_number");
  assert.equal(await route("+12015550199", null), "unknown_number");
});

test("[PN49] a number in its trunk's calling format is recognised again, for every country", () => {
  const known = Object.keys(examples).flatMap((countryCode) => {
    const number = getExampleNumber(countryCode as "DE", examples);
    return number ? [{ phoneNumber: number.number as string, countryCode }] : [];
  });
  assert.ok(known.length > 200);
  for (const number of known) {
    for (const callingFormat of CALLING_FORMATS) {
      const spelt = formatForTrunk(
        { callingFormat, countryCode: number.countryCode }, number.phoneNumber);
      assert.match(spelt, callingFormat === "+e164" ? /^\+\d+$/ : /^\d+$/);
      assert.notEqual(likenessOf(spelt, number), null, `${spelt} for ${number.phoneNumber}`);
      // And abroad, from another country's trunk.
      const abroad = formatForTrunk({ callingFormat, countryCode: "DE" }, number.phoneNumber);
      const called = { ...number, countryCode: "DE" };
      assert.notEqual(likenessOf(abroad, called), null, `${abroad} for ${number.phoneNumber}`);
    }
  }
  const spell = (countryCode: string, phoneNumber: string) =>
    CALLING_FORMATS.map((callingFormat) =>
      formatForTrunk({ callingFormat, countryCode }, phoneNumber));
  assert.deepEqual(
    spell("DE", "+493012345678"), ["+493012345678", "493012345678", "03012345678"]);
  assert.deepEqual(spell("US", "+12015550123"), ["+12015550123", "12015550123", "2015550123"]);
  assert.deepEqual(spell("DE", "+12015550123")[2], "0012015550123");
  assert.deepEqual(spell("US", "+493012345678")[2], "011493012345678");
  assert.deepEqual(spell("DE", "1001"), ["1001", "1001", "1001"]);
  fc.assert(fc.property(fc.string({ maxLength: 100 }), (text) => {
    const likeness = likenessOf(text, { phoneNumber: "+493012345678", countryCode: "DE" });
    assert.ok(likeness === null || text.replace(/\D/g, "").endsWith("3012345678"));
  }));
});
