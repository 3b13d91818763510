// Being registered at Asterisk: with right and wrong passwords, by the stronger digest, over TLS
// with encrypted sound, and after the registrar was replaced by one that knows nobody.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import { ask } from "#support/api.ts";
import { assertHello, assertTone, tone } from "#support/calls/tone.ts";
import { parseWav, wavOf } from "#support/calls/wav.ts";
import { startProcess, type Running } from "#support/process.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import {
  extension, line, LINE_PASSWORD, noAsterisk, startAsterisk, type Asterisk,
} from "#support/sip/asterisk.ts";
import { RATE } from "#support/sip/baresip.ts";
import { startSipWorld, type SipWorld } from "#support/sip/server-with-sip.ts";
import { selfSignedCertificate, type Certificate } from "#support/vendors/realtime-server.ts";

const skip = noAsterisk();
const LIMITED = { skip, timeout: 180_000 };
const CALLER = "+14155550123";
const DIALLED = "+14155550180";

const RECORDED = "MixMonitor(FOLDER/all.wav,r(FOLDER/${EXTEN}-heard.wav))";
const EXTENSIONS = [
  extension(DIALLED, "Answer()", RECORDED, "Wait(0.8)", "Playback(FOLDER/tone)", "Hangup()"),
  extension("talk", RECORDED, "Wait(0.8)", "Playback(FOLDER/tone)", "Hangup()"),
  extension("h", "StopMixMonitor()", "UserEvent(Over,Line: ${CHANNEL(endpoint)})"),
].join("");
const PJSIP = [
  line("plain"), line("strong", [], [], ["supported_algorithms_uas=SHA-256"]), line("locked"),
  line("brief", [], ["maximum_expiration=10"]),
  // Calls come back over the connection that registered: there is no other.
  line("secret", ["media_encryption=sdes", "rewrite_contact=yes"]),
  line("clear", ["rewrite_contact=yes"]),
].join("\n");

let asterisk: Asterisk;
let world: SipWorld;
let certificate: Certificate | null = null;
const folder = mkdtempSync(join(tmpdir(), "parley-certificate-"));
const files = { key: join(folder, "key.pem"), cert: join(folder, "cert.pem") };
if (!skip) {
  certificate = await selfSignedCertificate().catch(() => null);
  if (certificate) {
    writeFileSync(files.key, certificate.key);
    writeFileSync(files.cert, certificate.cert);
  }
  asterisk = await startAsterisk({
    pjsip: PJSIP, extensions: EXTENSIONS, sounds: { tone: wavOf(tone, RATE) },
    ...(certificate ? { tls: files } : {}),
  });
  world = await startSipWorld();
}
after(async () => {
  await world?.server.close();
  await asterisk?.close();
  rmSync(folder, { recursive: true });
});

const trunkTo = (name: string, password = LINE_PASSWORD) => world.trunk({
  inbound_authorization_type: "auth", allowed_inbound_ips: undefined,
  sip_username: name, sip_password: password, sip_port: asterisk.port,
});
/** Registered, and its question was answered. */
const reached = (name: string, number = 0) =>
  asterisk.saw("ContactStatus", { AOR: name, ContactStatus: "Reachable" }, number);

test("[SC70] Asterisk registers a trunk by name and password, reaches it and sees it unregister", LIMITED, async () => {
  const plain = await trunkTo("plain");
  await reached("plain");
  await trunkTo("strong");
  await reached("strong");
  const shown = await asterisk.command("pjsip show aor plain");
  assert.match(
    shown, new RegExp(`plain/sip:trunk-${plain.id}@127\\.0\\.0\\.1:${world.sipPort} .*Avail`));
  await trunkTo("locked", "wrong");
  await asterisk.saw("ChallengeResponseFailed", { AccountID: "locked" });
  assert.equal((await world.server.call("DELETE", `/user/phone-numbers/${plain.id}`)).status, 200);
  await asterisk.saw("ContactStatus", { AOR: "plain", ContactStatus: "Removed" });
  assert.equal(asterisk.count("ContactStatus", { AOR: "locked" }), 0);
});

test("[SC79] [SI138] over TLS, where audio must be encrypted or cannot be: a call each way", LIMITED, async (t) => {
  if (!certificate) return t.skip("openssl is not there to make a certificate");
  // A process of its own: which authorities are trusted is settled when it starts.
  const dataDir = testDataDir();
  const server = await startProcess(dataDir, {
    PARLEY_SIP_PORT: "0", PARLEY_SIP_HOST: "127.0.0.1", PARLEY_SPEECH: "loopback",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8", NODE_EXTRA_CA_CERTS: files.cert,
  });
  try {
    await callOverTls(server, t, { name: "secret", number: "+14155550170" });
    await callOverTls(server, t, { name: "clear", number: "+14155550171" });
  } finally {
    server.process.kill();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

async function callOverTls(
  server: Running, t: TestContext,
  { name, number }: { name: string; number: string },
): Promise<void> {
  /** The tone is on record there, once the call is over. */
  const assertHeard = async (callId: unknown): Promise<void> => {
    const ended = await accountEvent(server, ({ type, call_id: id }) =>
      type === "call_ended" && id === callId);
    assert.equal(ended.status, "ended_by_customer");
    const call = await ask(server, `/user/calls/${String(callId)}`);
    const recording = await fetch(String(call.recording_url));
    const { channels } = parseWav(Buffer.from(await recording.arrayBuffer()));
    assertTone(channels[0]!, t);
  };
  const { data: trunk } = await ask(server, "/user/phone-numbers/sip-trunks", {
    sip_trunk_type: "number", phone_number: number, country_code: "US",
    sip_username: name, sip_password: LINE_PASSWORD, sip_address: "127.0.0.1",
    sip_port: asterisk.tlsPort, sip_transport: "tls", sip_calling_format: "+e164",
    inbound_authorization_type: "auth",
  });
  await reached(name);
  const assistant = (type: string) => ask(server, "/user/assistant", assistantBody({
    type, status: "active", phone_number_id: trunk.id, record: true, post_call_evaluation: false,
  }));
  const caller = await assistant("outbound");
  const { call_id: outbound } = await ask(server, "/user/make_call", {
    assistant_id: caller.data.id, phone_number: DIALLED,
  });
  await asterisk.saw("UserEvent", { UserEvent: "Over", Line: name });
  assertHello(asterisk.recording(`${DIALLED}-heard`));
  await assertHeard(outbound);

  await assistant("inbound");
  await asterisk.originate(name, "talk", CALLER);
  await asterisk.saw("UserEvent", { UserEvent: "Over", Line: name }, 1);
  assertHello(asterisk.recording("talk-heard"));
  const { data: calls } = await ask(server, "/user/calls") as
    { data: { id: number; type: string; assistant_phone_number: string }[] };
  await assertHeard(calls.find(({ type, assistant_phone_number: at }) =>
    type === "inbound" && at === number)!.id);
}

test("[SC70] a replaced Asterisk without registrations gets a new one", LIMITED, async () => {
  const { id, number } = await trunkTo("brief");
  await world.assistant(id);
  await reached("brief");
  await asterisk.restart();
  await reached("brief", 1);
  const [callId] = await Promise.all([
    world.nextCall(number), asterisk.originate("brief", "talk", CALLER),
  ]);
  await world.when(callId, "ended_by_customer");
});
