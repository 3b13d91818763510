// SIGKILL of the real process in the middle of a running campaign, again and again.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { createSystem } from "#core/system.ts";
import { ask } from "#support/api.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { startProcess, type Running } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";
import { assistantBody, startTestServer, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const HOUR_ON = 61 * 60_000_000;

interface Lead { id: number; status: string; call_tries: number }
interface Call { id: number; lead_id: number; status: string; end_reason: string | null }

// Says little, so that calls are short: what is proved is what happens between them.
const model = await startScriptedModel({ tokens: 1 });
const ENV = {
  PARLEY_SPEECH: "loopback", PARLEY_CALL_PRICE: "0.001", PARLEY_MODEL_URL: model.url,
};
const ENDINGS = ["0001", "0002", "0003", "0005", "0042"];
const KILLS = IS_PROOF ? 5 : 3;
const PARALLEL = 3;
/** Enough for each life to have somebody to call: whom a kill cut off waits for minutes. */
const LEADS = IS_PROOF ? 20 : 10;

/** Every attempt that counts is one call on record, and no lead has two at a time. */
function agree(leads: Lead[], calls: Call[]): void {
  for (const { id, call_tries } of leads) {
    const own = calls.filter(({ lead_id }) => lead_id === id);
    const isLive = ({ status }: Call) => ["initiated", "ringing", "in-progress", "ended"].includes(status);
    assert.ok(own.filter(isLive).length <= 1, `lead ${id} is called twice at once`);
    const counted = own.filter(({ end_reason }) => end_reason !== "server_restarted");
    assert.equal(call_tries, counted.length, `lead ${id} has tries without calls`);
  }
}

test("[CP20] killed during a campaign: no attempt twice, nobody forgotten, charges right", async (t) => {
  const dataDir = testDataDir();
  let running: Running = await startProcess(dataDir, ENV);
  const { key } = running;
  const askServer = (path: string, body?: object) => ask({ url: running.url, key }, path, body);
  const kill = async (): Promise<void> => {
    const ended = once(running.process, "exit");
    running.process.kill("SIGKILL");
    await ended;
  };
  const { data: assistant } = await askServer("/user/assistant", assistantBody({
    type: "outbound", status: "active", initial_message: "Hi.", post_call_evaluation: false,
    ringing_time: 2, max_duration: 20, endpoint_sensitivity: 1,
  }));
  const { data: campaign } = await askServer("/user/campaigns", {
    name: "Crash", assistant_id: assistant.id, max_calls_in_parallel: PARALLEL, max_retries: 1,
    retry_interval: 10,
  });
  for (let at = 0; at < LEADS; at += 1) {
    await askServer("/user/lead", {
      campaign_id: campaign.id, phone_number: `+15550${10 + at}${ENDINGS[at % ENDINGS.length]}`,
    });
  }
  await askServer("/user/campaigns/update-status", { campaign_id: campaign.id, action: "start" });
  const made = async (): Promise<number> => (await askServer(`/user/campaigns/${campaign.id}`)).calls_made;
  for (let life = 0; life < KILLS; life += 1) {
    const before = await made();
    // Each life calls somebody; the asking goes on until it does.
    for (let now = before; now === before;) now = await made();
    await kill();
    running = await startProcess(dataDir, ENV);
  }
  await kill();

  // The last life is in this process, on a clock that is moved on past the retry interval.
  const real = createSystem();
  // Already past it, so that whom earlier kills cut off is called again beside the others.
  let ahead = HOUR_ON;
  const server = await startTestServer({
    dataDir, env: ENV, system: { ...real, now: () => real.now() + ahead },
  });
  const read = async (path: string) => (await server.call("GET", path, { key })).body;
  // As many at once as may be: nothing is cut off any more.
  const { status: changed } = await server.call("PUT", `/user/campaigns/${campaign.id}`, {
    key, body: { max_calls_in_parallel: 10 },
  });
  assert.equal(changed, 200);
  t.after(async () => {
    await server.close();
    await model.close();
    rmSync(dataDir, { recursive: true });
  });
  const leadsOf = async (): Promise<Lead[]> =>
    (await read(`/user/leads?campaign_id=${campaign.id}&per_page=100`)).data;
  const callsOf = async (): Promise<Call[]> =>
    (await read(`/user/calls?campaign_id=${campaign.id}&per_page=100`)).data;
  const { dialler, bus, calls } = server.app.features;
  const accountId = (await calls.findById((await callsOf())[0]?.id ?? 0))?.accountId ?? 0;
  const status = async (): Promise<string> => (await read(`/user/campaigns/${campaign.id}`)).status;
  let moved = Promise.withResolvers<void>();
  bus.subscribe(`account:${accountId}`, () => moved.resolve());
  while (await status() === "in-progress") {
    const leads = await leadsOf();
    const isWaiting = leads.every(({ status: state }) => state !== "processing" && state !== "created");
    if (isWaiting && leads.some(({ status: state }) => state === "rescheduled")) {
      ahead += HOUR_ON;
      dialler.wake();
    }
    await moved.promise;
    moved = Promise.withResolvers();
  }
  const leads = await leadsOf();
  agree(leads, await callsOf());
  assert.equal(leads.length, LEADS);
  for (const { id, status: state, call_tries } of leads) {
    assert.ok(["completed", "reached-max-retries"].includes(state), `lead ${id} is ${state}`);
    assert.ok(call_tries >= 1 && call_tries <= 2);
  }
  assert.equal(leads.filter(({ status: state }) => state === "completed").length, (LEADS * 2) / 5);
  const cut = (await callsOf()).filter(({ end_reason }) => end_reason === "server_restarted");
  assert.ok(cut.length >= KILLS, `only ${cut.length} calls were cut`);
  assert.deepEqual((await auditBeside(dataDir)).problems, []);
});
