// A real process that is killed while it has two real telephones on the line, a caller and the
// colleague it was put through to: what the next process says of it, bills and has left to play.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import { ask } from "#support/api.ts";
import { askUntil } from "#support/asking.ts";
import { parseWav } from "#support/calls/wav.ts";
import { freePorts } from "#support/free-ports.ts";
import { runCli, startProcess } from "#support/process.ts";
import { onlyProof } from "#support/proof.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { noBaresip, RATE, startBaresip, type Baresip } from "#support/sip/baresip.ts";
import { trunkBody, TRUNKS } from "#support/sip/sip-trunks.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

/** Half a minute for what the tests of warm transfers show with numbers: recovered after a kill. */
const skip = onlyProof || noBaresip();
/** Longer than beats of a call are apart: until the last one it is known to have lasted. */
const TALK_MS = 8000;
const NUMBERS = { caller: "+14155550181", out: "+14155550182", colleague: "+14155550183" };

test("[WT28] killed with caller and colleague connected: both legs closed, billed once, reported and recorded", { skip, timeout: 180_000 }, async () => {
  const model = await startScriptedModel();
  model.script(({ messages }) => /Keypad input: 5/.test(JSON.stringify(messages.at(-1)))
    ? { toolCalls: [{ id: "c1", name: "transfer_to_colleague", arguments: "{}" }] }
    : { tokens: ["A ", "caller."] });
  const sipPort = await freePorts(1);
  const folder = testDataDir();
  const env = {
    PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback", PARLEY_SIP_PORT: String(sipPort),
    PARLEY_SIP_HOST: "127.0.0.1", PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  };
  let child = await startProcess(folder, env);
  const { key } = child;
  assert.ok(key);
  const phones: Baresip[] = [];
  after(async () => {
    for (const phone of phones) await phone.close("SIGKILL");
    const exited = once(child.process, "exit");
    child.process.kill("SIGTERM");
    await exited;
    await model.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const askChild = (path: string, body?: object) => ask({ url: child.url, key }, path, body);
  const hum = Int16Array.from({ length: 80 * RATE }, (_, at) =>
    4000 * Math.sin((2 * Math.PI * 250 * at) / RATE));
  const colleague = await startBaresip({ microphone: hum, number: NUMBERS.colleague });
  const caller = await startBaresip({ microphone: new Int16Array(80 * RATE) });
  phones.push(caller, colleague);
  const trunk = async (phoneNumber: string, port: object) => (await askChild(TRUNKS, trunkBody({
    phone_number: phoneNumber, sip_address: "127.0.0.1", country_code: "US",
    inbound_authorization_type: "ip", allowed_inbound_ips: ["127.0.0.1"], ...port,
  }))).data.id as number;
  const outbound = await trunk(NUMBERS.out, { sip_port: colleague.port });
  const inbound = await trunk(NUMBERS.caller, {});
  await askChild("/user/assistant", assistantBody({
    status: "active", type: "inbound", phone_number_id: inbound, initial_message: "Hello",
    post_call_evaluation: false, record: true,
    tools: [
      {
        type: "warm_call_transfer", supervisor_phone: NUMBERS.colleague,
        outbound_phone_id: outbound, description: "When a person is asked for",
        hold_message: "Please hold",
      },
      { type: "collect_keypad", timeout: 1, stop_key: "#" },
    ],
  }));
  const balance = async () => Number((await askChild("/user/me")).total_balance);
  const before = await balance();
  const newsOf = (holds: Parameters<typeof accountEvent>[1]) =>
    accountEvent({ url: child.url, key }, holds);
  const reached = (stage: string) => newsOf(({ type, transfer }) =>
    type === "call_transfer_changed" && (transfer as { stage: string }).stage === stage);
  await caller.command("dial", `sip:${NUMBERS.caller}@127.0.0.1:${sipPort}`);
  const { call_id: id } = await newsOf(({ type, status }) =>
    type === "call_status_changed" && status === "in-progress");
  for (const digit of ["5", "#"]) await caller.command("sndcode", digit);
  await reached("asking");
  await colleague.command("sndcode", "1");
  await reached("connected");
  await new Promise((resolve) => setTimeout(resolve, TALK_MS));
  const gone = once(child.process, "exit");
  child.process.kill("SIGKILL");
  await gone;

  child = await startProcess(folder, env);
  const call = await askUntil(
    () => askChild(`/user/calls/${String(id)}`), ({ status }) => status === "failed");
  assert.deepEqual([call.end_reason, call.transfers.length], ["server_restarted", 1]);
  const [transfer] = call.transfers;
  assert.deepEqual(
    [transfer.kind, transfer.status, transfer.outcome, transfer.stage],
    ["warm", "completed", "completed", "over"]);
  assert.ok(transfer.ended_at !== null && transfer.duration >= 1, JSON.stringify(transfer));
  assert.ok(transfer.duration < call.duration, "the caller was there before");
  // At ten cents a minute, as long as each is known to have lasted: the record has begun seconds.
  const paid = before - await balance();
  const most = ((call.duration + transfer.duration) * 0.1) / 60;
  assert.ok(paid <= most + 1e-6 && paid > most - (2 * 0.1) / 60, `${paid} of ${most}`);
  assert.ok(Math.abs(paid - call.total_cost) < 1e-6, `${paid}, ${call.total_cost}`);
  assert.match(runCli(folder, ["ledger", "verify"]), /ok|right|agree/i);
  const charges: unknown[] = [];
  await newsOf((event) => {
    if (event.type === "balance_changed" && event.kind === "call") charges.push(event);
    return event.type === "call_ended" && event.call_id === id;
  });
  assert.equal(charges.length, 1);
  assert.deepEqual((await askChild("/user/calls/live")).calls, []);
  const hums: number[] = [];
  for (const url of [call.recording_url, transfer.recording_url] as string[]) {
    const sound = parseWav(Buffer.from(await (await fetch(url)).arrayBuffer()));
    const own = url === call.recording_url ? sound.channels[1] : sound.channels[0];
    hums.push(own!.filter((sample) => Math.abs(sample) > 3000).length / RATE);
  }
  assert.ok(hums.every((seconds) => seconds > 1), `the colleague's hum on both: ${hums.join(" ")}`);
});
