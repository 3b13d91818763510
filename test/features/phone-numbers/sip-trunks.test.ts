// SIP trunks over HTTP, in the database, and as the carrier sees them.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { readSipAddress } from "#features/phone-numbers/sip-rules.ts";
import { refuseBeside, rowsBeside, runBeside } from "#support/databases/beside.ts";
import { isOverPostgres } from "#support/engines.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, openBeside, startTestServer, testDataDir } from "#support/server.ts";
import { newTrunk, trunkBody, TRUNK_PASSWORD, TRUNKS, type WireTrunk } from "#support/sip/sip-trunks.ts";

const system = createManualSystem();
const server = await startTestServer({
  system, env: { PARLEY_SPEECH: "loopback", PARLEY_ALLOW_PRIVATE_NETWORKS: "10.0.0.0/8" },
});
after(() => server.close());
const { carrier } = server.app.features.phoneNumbers.sipTrunks;

const activeTrunk = async (id: unknown) =>
  (await carrier.listActive()).find((trunk) => trunk.id === Number(id));

/** Runs it with what the carrier is told meanwhile. */
async function toldDuring(work: () => Promise<unknown>): Promise<number[]> {
  const told: number[] = [];
  const stop = carrier.onChange(async (ids) => void told.push(...ids));
  await work();
  stop();
  return onceEach(told);
}

/** Where other nodes may serve them, a look may have seen a change before it was told. */
const onceEach = (told: number[]): number[] => told.filter((id, at) => id !== told[at - 1]);

test("[SC197] a trunk's codecs are stored in order, known ones only, once each; without any it is G.711", async () => {
  const { key } = await server.newAccount();
  const make = (codecs: unknown) => server.call("POST", TRUNKS, {
    key, body: trunkBody({ phone_number: "+493090182006", sip_codecs: codecs }),
  });
  const faults = async (codecs: unknown) => {
    const { status, body } = await make(codecs);
    return [status, Object.keys(body.errors as object)];
  };
  assert.deepEqual(await faults([]), [422, ["sip_codecs"]]);
  assert.deepEqual(await faults(["g722", "g722"]), [422, ["sip_codecs"]]);
  assert.deepEqual(await faults(["g722", "gsm"]), [422, ["sip_codecs.1"]]);
  assert.deepEqual(await faults("g722"), [422, ["sip_codecs"]]);
  const { status, body } = await make(["opus", "pcma", "g722"]);
  assert.equal(status, 201);
  const { id, sip_codecs: stored } = body.data as WireTrunk & { sip_codecs: string[] };
  assert.deepEqual(stored, ["opus", "pcma", "g722"]);
  const changed = await server.call("PUT", `${TRUNKS}/${id}`, { key, body: { sip_codecs: ["g722"] } });
  assert.deepEqual((changed.body.data as { sip_codecs: string[] }).sip_codecs, ["g722"]);
  assert.deepEqual((await activeTrunk(id))!.codecs, ["g722"]);
});

test("[SO66] two concurrent changes of a SIP trunk are both kept, the password too", async () => {
  const { key } = await server.newAccount();
  const { id } = await newTrunk(server, { phone_number: "+493090182011" }, key);
  for (let turn = 1; turn <= 20; turn += 1) {
    const nickname = `Desk ${turn}`;
    const password = `a long password ${turn}`;
    const put = (body: object) => server.call("PUT", `${TRUNKS}/${id}`, { key, body });
    const answers = await Promise.all([put({ sip_password: password }), put({ nickname })]);
    assert.deepEqual(answers.map(({ status }) => status), [200, 200]);
    const trunk = await activeTrunk(id);
    assert.deepEqual([trunk?.password, trunk?.nickname], [password, nickname]);
  }
});

test("[PN40] a trunk is a number of type sip; its password is sealed and never returned", async () => {
  const { key } = await server.newAccount();
  const sent = trunkBody({
    phone_number: " +49 30 901820-05 ", nickname: "Desk", sip_address: "PBX.Example.com.",
    outbound_proxy: true, require_srtp: true, country_code: "de",
  });
  const { status, body } = await server.call("POST", TRUNKS, { key, body: sent });
  assert.equal(status, 201);
  const { id, inbound_trunk_id: inboundId, outbound_trunk_id: outboundId } = body.data as WireTrunk;
  const listed = {
    id, phone_number: "+493090182005", nickname: "Desk", sip_trunk_type: "number",
    sip_username: sent.sip_username, sip_address: "pbx.example.com", sip_port: null,
    sip_transport: "udp", sip_calling_format: "+e164", inbound_authorization_type: "auth",
    allowed_inbound_ips: null, outbound_proxy: true, require_srtp: true,
    sip_codecs: ["pcmu", "pcma"], country_code: "DE",
    created_at: "2026-01-15T12:00:00.000000Z", updated_at: "2026-01-15T12:00:00.000000Z",
  };
  assert.match(String(inboundId), /^ST_[0-9a-f]{18}$/);
  assert.match(String(outboundId), /^ST_[0-9a-f]{18}$/);
  assert.notEqual(inboundId, outboundId);
  const whole = { ...listed, inbound_trunk_id: inboundId, outbound_trunk_id: outboundId };
  assert.deepEqual(body, { message: "SIP trunk created successfully.", data: whole });
  const read = await server.call("GET", `${TRUNKS}/${id}`, { key });
  assert.deepEqual([read.status, read.body], [200, { data: whole }]);
  const list = await server.call("GET", TRUNKS, { key });
  assert.deepEqual([list.status, list.body], [200, { data: [listed] }]);

  const numbers = (await server.call("GET", "/user/phone-numbers/all", { key })).body.data as
    Record<string, unknown>[];
  assert.deepEqual(
    numbers.map(({ id: number, type, type_label: label, nickname, monthly_price: price }) =>
      ({ number, type, label, nickname, price })),
    [{ number: id, type: "sip", label: "SIP", nickname: "Desk", price: 0 }]);
  for (const type of ["inbound", "outbound"]) {
    const path = `/user/assistants/phone-numbers?type=${type}`;
    assert.deepEqual((await server.call("GET", path, { key })).body, [{
      id, phone_number: "+493090182005", country_code: "DE", type_label: "SIP", is_available: true,
    }]);
  }
  assert.equal((await activeTrunk(id))!.password, TRUNK_PASSWORD);
  const stored = "SELECT password FROM sip_trunks WHERE phone_number_id = @id";
  const [row] = await rowsBeside<{ password: string }>(server.dataDir, stored, { id });
  assert.match(String(row?.password), /^v1\./);
  for (const file of isOverPostgres ? [] : ["parley.db", "parley.db-wal"]) {
    assert.ok(!readFileSync(join(server.dataDir, file)).includes(TRUNK_PASSWORD), file);
  }
});

const AT_LEAST_ONE =
  'At least one allowed IP address is required when authorization type is "ip".';
const ADDRESS = "SIP server address must be a host name or an IP address, without a port.";
const FORMATS = "SIP calling format must be one of: +e164, e164, national.";
const E164 = "The phone number must be in E.164 format (e.g. +1234567890).";
const NETWORK = "Each allowed inbound ip must be an IP address, or a network such as 192.0.2.0/24.";

test("[PN41] all invalid fields are named at once, in the contract's words; nothing is saved", async () => {
  const { key } = await server.newAccount();
  const ip = { inbound_authorization_type: "ip" };
  const required = (field: string) => `The ${field} field is required.`;
  const cases: [Record<string, unknown>, Record<string, string>][] = [
    [{ sip_address: undefined }, { sip_address: "SIP server address is required." }],
    [{ sip_address: " " }, { sip_address: "SIP server address is required." }],
    [{ sip_address: "pbx.example.com:5061" }, { sip_address: ADDRESS }],
    [{ sip_address: "sip:pbx.example.com" }, { sip_address: ADDRESS }],
    [{ sip_address: "10.0.0.256" }, { sip_address: ADDRESS }],
    [{ sip_address: 12 }, { sip_address: ADDRESS }],
    [{ sip_calling_format: "E164" }, { sip_calling_format: FORMATS }],
    [{ sip_calling_format: undefined }, { sip_calling_format: FORMATS }],
    [{ phone_number: "1001" }, { phone_number: E164 }],
    [{ phone_number: "+49" }, { phone_number: E164 }],
    [{ sip_username: "ab" },
      { sip_username: "The sip username must be 3 to 128 characters without spaces or quotes." }],
    [{ sip_username: "a\r\nVia: x" },
      { sip_username: "The sip username must be 3 to 128 characters without spaces or quotes." }],
    [{ sip_password: "ab", nickname: "n".repeat(51) }, {
      sip_password: "The sip password must be 3 to 256 characters.",
      nickname: "The nickname must not exceed 50 characters.",
    }],
    [{ country_code: "ZZ" }, { country_code: "The country code must be the two letters of a country." }],
    [{ sip_port: 65_536 }, { sip_port: "The sip port may not be greater than 65535." }],
    [{ sip_port: 25 }, {
      sip_port: "The sip port must be 443 or above 1023, and not one of a database or another service.",
    }],
    [{ sip_transport: "ws" }, { sip_transport: "The sip transport must be udp, tcp or tls." }],
    [ip, { allowed_inbound_ips: AT_LEAST_ONE }],
    [{ ...ip, allowed_inbound_ips: [] }, { allowed_inbound_ips: AT_LEAST_ONE }],
    [{ ...ip, allowed_inbound_ips: ["192.0.2.1", "192.0.2.0/33"] },
      { "allowed_inbound_ips.1": NETWORK }],
    // The whole Internet is nobody's telephone system.
    [{ ...ip, allowed_inbound_ips: ["0.0.0.0/0"] }, { "allowed_inbound_ips.0": NETWORK }],
    [{ ...ip, allowed_inbound_ips: ["::/1"] }, { "allowed_inbound_ips.0": NETWORK }],
    [{ ...ip, allowed_inbound_ips: Array.from({ length: 51 }, (_, at) => `192.0.2.${at}`) },
      { allowed_inbound_ips: "The allowed inbound ips may not have more than 50 items." }],
    [{ sip_trunk_type: undefined, sip_password: undefined, phone_number: "" }, {
      sip_trunk_type: required("sip trunk type"), sip_password: required("sip password"),
      phone_number: required("phone number"),
    }],
  ];
  for (const [changes, expected] of cases) {
    const { status, body } = await server.call("POST", TRUNKS, { key, body: trunkBody(changes) });
    const errors = Object.fromEntries(
      Object.entries(expected).map(([field, message]) => [field, [message]]));
    assert.deepEqual([status, body], [422, { message: "The given data was invalid.", errors }]);
  }
  const extension = await server.call("POST", TRUNKS, {
    key, body: trunkBody({ sip_trunk_type: "extension", phone_number: "1".repeat(16) }),
  });
  assert.deepEqual([extension.status, Object.keys(extension.body.errors as object)],
    [422, ["phone_number"]]);
  assert.deepEqual((await server.call("GET", TRUNKS, { key })).body.data, []);
  // Extensions may be anything of 1 to 15 characters, sent as a number too.
  assert.equal((await newTrunk(server, { sip_trunk_type: "extension", phone_number: 7 }, key)).phone_number, "7");
});

test("[PN42] the same number, name and address a second time answers 409", async () => {
  const [{ key }, other] = [await server.newAccount(), await server.newAccount()];
  const body = trunkBody();
  const post = (changes = {}, by = key) =>
    server.call("POST", TRUNKS, { key: by, body: { ...body, ...changes } });
  assert.equal((await post()).status, 201);
  const EXISTS = {
    error: "A SIP trunk with the same phone number, username, and address already exists.",
  };
  const again = await post({ sip_address: "SIP.example.com", sip_password: "another" });
  assert.deepEqual([again.status, again.body], [409, EXISTS]);
  const second = await post({ sip_username: "another" });
  assert.equal(second.status, 201);
  assert.equal((await post({}, other.key)).status, 409);
  const id = (second.body.data as WireTrunk).id;
  const put = (changes: object, by = key) =>
    server.call("PUT", `${TRUNKS}/${id}`, { key: by, body: changes });
  const collided = await put({ sip_username: body.sip_username });
  assert.deepEqual([collided.status, collided.body], [409, EXISTS]);
  // What it is already it may be told to be.
  assert.equal((await put({ sip_username: "another" })).status, 200);
  const NOT_FOUND = { error: "SIP trunk not found." };
  for (const [method, path] of [["GET", id], ["PUT", id], ["GET", 999_999], ["PUT", "x"]]) {
    const { status, body: refused } = await server.call(
      String(method), `${TRUNKS}/${path}`, { key: other.key, ...(method === "PUT" ? { body: {} } : {}) });
    assert.deepEqual([status, refused], [404, NOT_FOUND]);
  }
  const deleted = await server.call("DELETE", `/user/phone-numbers/${id}`, { key: other.key });
  assert.deepEqual([deleted.status, deleted.body], [404, { error: "Phone number not found." }]);
});

test("[PN43] PUT changes only what is sent; switching to auth clears the list of addresses", async () => {
  const trunk = await newTrunk(server, {
    inbound_authorization_type: "ip", allowed_inbound_ips: ["192.0.2.1", "2001:db8::/32"],
    sip_port: 5080, sip_transport: "tls",
  });
  const { id, created_at: createdAt, inbound_trunk_id: inboundId } = trunk;
  assert.deepEqual(trunk.allowed_inbound_ips, ["192.0.2.1", "2001:db8::/32"]);
  const put = async (body: object) => server.call("PUT", `${TRUNKS}/${id}`, { body });
  system.advance(1000);
  const renamed = await put({ nickname: "Front", sip_port: null });
  assert.deepEqual([renamed.status, renamed.body], [200, {
    message: "SIP trunk updated successfully.",
    data: {
      ...trunk, nickname: "Front", sip_port: null, updated_at: "2026-01-15T12:00:01.000000Z",
    },
  }]);
  const emptied = await put({ allowed_inbound_ips: [] });
  assert.deepEqual([emptied.status, emptied.body], [422, {
    message: "The given data was invalid.", errors: { allowed_inbound_ips: [AT_LEAST_ONE] },
  }]);
  const toAuth = await put({ inbound_authorization_type: "auth" });
  assert.equal(toAuth.body.data.allowed_inbound_ips, null);
  // The list is gone for good.
  const back = await put({ inbound_authorization_type: "ip" });
  assert.deepEqual(back.body.errors, { allowed_inbound_ips: [AT_LEAST_ONE] });
  assert.equal((await activeTrunk(id))!.password, TRUNK_PASSWORD);
  const moved = await put({
    sip_password: "new one", phone_number: "+12015550123", country_code: "US", nickname: "",
    sip_calling_format: "national",
  });
  assert.deepEqual(
    [moved.body.data.phone_number, moved.body.data.nickname, moved.body.data.inbound_trunk_id],
    ["+12015550123", null, inboundId]);
  assert.equal(moved.body.data.created_at, createdAt);
  assert.equal((await activeTrunk(id))!.password, "new one");
  // One rule of two fields holds whichever of them is sent.
  const extension = await put({ sip_trunk_type: "extension", phone_number: "1001" });
  assert.equal(extension.body.data.phone_number, "1001");
  assert.deepEqual((await put({ sip_trunk_type: "number" })).body.errors, { phone_number: [E164] });
  assert.equal((await server.call("GET", `/user/phone-numbers/${id}`)).body.data.phone_number, "1001");
});

test("[PN44] deleting the number deletes the trunk and detaches it from assistants and campaigns", async () => {
  const { key, accountId } = await server.newAccount();
  const [trunk, kept] = [await newTrunk(server, {}, key), await newTrunk(server, {}, key)];
  const { id } = trunk;
  const inbound = await newAssistant(server, { phone_number_id: id }, key);
  const outbound = await newAssistant(server, { type: "outbound", phone_number_id: id }, key);
  const campaign = await server.call("POST", "/user/campaigns", {
    key, body: { name: "C", assistant_id: outbound.id, phone_number_ids: [id, kept.id] },
  });
  assert.equal(campaign.status, 201);
  const told = await toldDuring(async () => {
    const { status, body } = await server.call("DELETE", `/user/phone-numbers/${id}`, { key });
    assert.deepEqual([status, body], [200, { message: "Phone number deleted successfully." }]);
    assert.equal(await activeTrunk(id), undefined);
  });
  assert.deepEqual(told, [id]);
  const gone = await server.call("GET", `${TRUNKS}/${id}`, { key });
  assert.deepEqual([gone.status, gone.body], [404, { error: "SIP trunk not found." }]);
  assert.deepEqual(
    ((await server.call("GET", TRUNKS, { key })).body.data as WireTrunk[]).map((one) => one.id),
    [kept.id]);
  const { assistants, campaigns } = server.app.features;
  for (const one of [inbound, outbound]) {
    assert.equal((await assistants.find(accountId, one.id))!.phoneNumberId, null);
  }
  const { phoneNumberIds } = await campaigns.get(accountId, campaign.body.data.id as number);
  assert.deepEqual(phoneNumberIds, [kept.id]);
  assert.deepEqual(await rowsBeside(
    server.dataDir, "SELECT password FROM sip_trunks WHERE phone_number_id = @id", { id }), []);
});

test("[PN45] addresses: plain names and IP addresses; private ones where allowed", async () => {
  const read: Record<string, string | null> = {
    "PBX.example.com": "pbx.example.com", "pbx": "pbx", "my_pbx.local.": "my_pbx.local",
    "192.0.2.7": "192.0.2.7", "[2001:DB8::7]": "2001:db8::7", "2001:db8::7": "2001:db8::7",
    "pbx:5060": null, "[::1]:5060": null, "fe80::1%eth0": null, "a..b": null, "-a.b": null,
    "a-.b": null, "127.1": null, "0x7f.1": null, "2130706433": null, "a.0x1f": null, "": null,
    "a b": null, "a/b": null, "a@b": null, "pbx.example.com;transport=tcp": null, "[pbx]": null,
    ["a".repeat(64)]: null, [`${"a.".repeat(127)}example`]: null,
  };
  for (const [text, expected] of Object.entries(read)) {
    assert.equal(readSipAddress(text), expected, text);
  }
  const refusedOf = async (address: string) => {
    const { status, body } = await server.call(
      "POST", TRUNKS, { body: trunkBody({ sip_address: address }) });
    return status === 201 ? null : body.errors.sip_address as string[];
  };
  const PRIVATE = ["SIP server address is in a network this server may not reach."];
  for (const address of ["192.168.1.5", "127.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"]) {
    assert.deepEqual(await refusedOf(address), PRIVATE, address);
  }
  for (const address of ["10.1.2.3", "198.51.101.7", "localhost"]) {
    assert.equal(await refusedOf(address), null, address);
  }
  const trunk = await newTrunk(server);
  const { status, body } = await server.call(
    "PUT", `${TRUNKS}/${trunk.id}`, { body: { sip_address: "192.168.1.5" } });
  assert.deepEqual([status, body.errors], [422, { sip_address: PRIVATE }]);
});

test("[PN46] the carrier lists the trunks of all accounts, is told of each change, survives a wrong secret", async (t) => {
  const dataDir = testDataDir();
  const env = { PARLEY_SECRET: "the first secret of this server", PARLEY_SPEECH: "loopback" };
  const first = await startTestServer({ dataDir, env });
  t.after(() => first.close());
  const port = first.app.features.phoneNumbers.sipTrunks.carrier;
  const told: number[] = [];
  port.onChange(async (ids) => void told.push(...ids));
  const other = await first.newAccount();
  const post = async (key: string) => {
    const { body } = await first.call("POST", TRUNKS, { key, body: trunkBody() });
    return (body.data as WireTrunk).id;
  };
  const ids = [await post(first.key), await post(other.key), await post(first.key)];
  await first.call("PUT", `${TRUNKS}/${ids[0]}`, { body: { sip_transport: "tcp" } });
  await first.call("PUT", `${TRUNKS}/${ids[0]}`, { body: { sip_transport: "sctp" } });
  assert.deepEqual(onceEach(told), [...ids, ids[0]]);
  assert.deepEqual(
    (await port.listActive()).map(({ id, accountId, password, transport }) =>
      ({ id, accountId, password, transport })),
    [
      { id: ids[0], accountId: first.accountId, password: TRUNK_PASSWORD, transport: "tcp" },
      { id: ids[1], accountId: other.accountId, password: TRUNK_PASSWORD, transport: "udp" },
      { id: ids[2], accountId: first.accountId, password: TRUNK_PASSWORD, transport: "udp" },
    ]);
  await first.close();
  const restart = async (secret: string) => {
    const again = await startTestServer({ dataDir, env: { ...env, PARLEY_SECRET: secret } });
    const active = (await again.app.features.phoneNumbers.sipTrunks.carrier.listActive()).length;
    const { status } = await again.call("GET", TRUNKS);
    await again.close();
    return [active, status];
  };
  assert.deepEqual(await restart(env.PARLEY_SECRET), [3, 200]);
  assert.deepEqual(await restart("quite another secret now"), [0, 200]);
  // A password moved to another row opens nowhere.
  await runBeside(dataDir, `UPDATE sip_trunks SET password = (
    SELECT password FROM sip_trunks WHERE phone_number_id = ${ids[0]})`);
  assert.deepEqual(await restart(env.PARLEY_SECRET), [1, 200]);
  rmSync(dataDir, { recursive: true });
});

test("[PN152] a number another account has at the carrier answers 409, unless the operator decides", async () => {
  const [{ key }, other] = [await server.newAccount(), await server.newAccount()];
  const number = "+493034340001";
  const byIp = { inbound_authorization_type: "ip", allowed_inbound_ips: ["203.0.113.0/24", "9.9.9.0/24"] };
  await newTrunk(server, { phone_number: number, sip_address: "a.example.com", ...byIp }, key);
  const ext = { sip_trunk_type: "extension" };
  const CLAIMED = {
    error: "Another account has this phone number at the same carrier. If it is yours, ask the operator of this server to approve it for your account.",
  };
  const post = (changes: object) => server.call("POST", TRUNKS, {
    key: other.key, body: trunkBody({ phone_number: number, ...changes }),
  });
  const collisions = [
    { sip_address: "a.example.com" },
    { sip_address: "9.9.9.9" },
    { sip_address: "b.example.com" },
    { ...byIp, allowed_inbound_ips: ["203.0.113.7"] },
    { ...byIp, allowed_inbound_ips: ["192.0.2.1", "203.0.0.0/16"] },
    { ...byIp, ...ext, phone_number: "493034340001" },
    { ...byIp, ...ext, phone_number: "03034340001" },
  ];
  for (const changes of collisions) {
    const { status, body } = await post(changes);
    assert.deepEqual([status, body], [409, CLAIMED], JSON.stringify(changes));
  }
  assert.deepEqual((await server.call("GET", TRUNKS, { key: other.key })).body.data, []);
  const elsewhere = { ...byIp, allowed_inbound_ips: ["198.51.100.0/24"] };
  const { status, body } = await post(elsewhere);
  assert.equal(status, 201);
  const { id } = body.data as WireTrunk;
  const put = (changes: object) =>
    server.call("PUT", `${TRUNKS}/${id}`, { key: other.key, body: changes });
  const moved = await put({ allowed_inbound_ips: ["203.0.113.7"] });
  assert.deepEqual([moved.status, moved.body], [409, CLAIMED]);
  assert.equal((await put({ nickname: "Desk" })).status, 200);
  const storage = await openBeside(server.dataDir);
  const approve = (accountId: number) =>
    storage.sipTrunks.approve({ phoneNumber: number, accountId, now: system.now() });
  assert.equal(await approve(999_999), false);
  assert.equal(await approve(other.accountId), true);
  await storage.close();
  assert.equal((await put({ allowed_inbound_ips: ["203.0.113.7"] })).status, 200);
});

test("[PN50] an account has a bounded number of trunks", async () => {
  const { key } = await server.newAccount();
  for (let at = 0; at < LIMITS.sipTrunksMax; at += 1) await newTrunk(server, {}, key);
  const { status, body } = await server.call("POST", TRUNKS, { key, body: trunkBody() });
  assert.deepEqual([status, body], [422, {
    message: "The given data was invalid.",
    errors: { phone_number: ["An account may not have more than 100 SIP trunks."] },
  }]);
});

test("[PN51] a trunk that cannot be stored answers 500, and neither half of it remains", async () => {
  const { key } = await server.newAccount();
  const trunk = await newTrunk(server, {}, key);
  const refused = [
    await refuseBeside(server.dataDir, "INSERT", "sip_trunks"),
    await refuseBeside(server.dataDir, "UPDATE", "sip_trunks"),
  ];
  const created = await server.call("POST", TRUNKS, { key, body: trunkBody() });
  const updated = await server.call(
    "PUT", `${TRUNKS}/${trunk.id}`, { key, body: { phone_number: "+12015550166" } });
  for (const { allow } of refused) await allow();
  assert.deepEqual([created.status, created.body],
    [500, { error: "Failed to create SIP trunk. Please try again or contact support." }]);
  assert.deepEqual([updated.status, updated.body],
    [500, { error: "Failed to update SIP trunk. Please try again or contact support." }]);
  const { body } = await server.call("GET", "/user/phone-numbers/all", { key });
  assert.deepEqual(
    (body.data as WireTrunk[]).map((one) => one.phone_number), [trunk.phone_number]);
});
