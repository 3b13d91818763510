// SIGKILL of the real process in the middle of an import, which is then sent once more.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import { ask, callApi } from "#support/api.ts";
import { startProcess, type Running } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";
import { assistantBody, testDataDir } from "#support/server.ts";

const ROWS = IS_PROOF ? 20_000 : 10_000;
const KILLS = IS_PROOF ? 2 : 1;
const PER_PAGE = 100;
const ENV = { PARLEY_SPEECH: "loopback" };

test("[LD138] [LD139] killed or stopped during an import and resent with duplicates skipped, every lead is there once", async () => {
  const dataDir = testDataDir();
  let running: Running = await startProcess(dataDir, ENV);
  const { key } = running;
  const { data: assistant } = await ask(running, "/user/assistant", assistantBody({ type: "outbound" }));
  const { data: campaign } = await ask(running, "/user/campaigns", {
    name: "Cut off", assistant_id: assistant.id,
  });
  const numbers = Array.from({ length: ROWS }, (_, at) => `+4915${String(300_000_000 + at)}`);
  const file = ["phone,place", ...numbers.map((number, at) => `${number},${at}`)].join("\n");
  const send = async (importId: string) => {
    const form = new FormData();
    form.set("campaign_id", String(campaign.id));
    form.set("duplicates", "skip");
    form.set("import_id", importId);
    form.set("file", new Blob([file]), "leads.csv");
    const { status, body } =
      await callApi(running.url, "POST", "/user/leads/import", { key, body: form });
    return { status, ...body };
  };
  const stored = async (): Promise<number> =>
    (await ask({ url: running.url, key }, `/user/leads?campaign_id=${campaign.id}&per_page=1`)).total;

  let before = 0;
  for (let life = 0; life < KILLS; life += 1) {
    const isUnderWay = accountEvent({ url: running.url, key }, (event) =>
      event.type === "lead_import_progress" && event.import_id === `life ${life}`
        && Number(event.imported) > 0);
    const cut = assert.rejects(send(`life ${life}`));
    const { imported } = await isUnderWay;
    const ended = once(running.process, "exit");
    running.process.kill("SIGKILL");
    await Promise.all([ended, cut]);
    running = await startProcess(dataDir, ENV);
    const now = await stored();
    // What was told to be stored is; the rest was not begun.
    assert.ok(now >= before + Number(imported) && now < ROWS, `${before} ${String(imported)} ${now}`);
    before = now;
  }
  const stopping = accountEvent({ url: running.url, key }, (event) =>
    event.type === "lead_import_progress" && Number(event.imported) > 0);
  const stopped = send("stopped");
  await stopping;
  const left = once(running.process, "exit");
  running.process.kill("SIGTERM");
  assert.deepEqual(await stopped, {
    status: 503, message: "The server is restarting. Please try again.",
  });
  assert.deepEqual(await left, [0, null]);
  running = await startProcess(dataDir, ENV);
  before = await stored();
  assert.ok(before < ROWS);
  const { data: report } = await send("last");
  assert.deepEqual(
    [report.imported, report.duplicates, report.updated, report.failed],
    [ROWS - before, before, 0, 0]);
  const { data: again } = await send("once more");
  assert.deepEqual([again.imported, again.duplicates], [0, ROWS]);

  const found = new Map<string, string>();
  for (let page = 1; page <= ROWS / PER_PAGE; page += 1) {
    const { data } = await ask(
      { url: running.url, key },
      `/user/leads?campaign_id=${campaign.id}&per_page=${PER_PAGE}&page=${page}`);
    for (const { phone_number: number, variables } of data) found.set(number, variables.place);
  }
  assert.equal(await stored(), ROWS);
  assert.deepEqual(numbers.filter((number, at) => found.get(number) !== String(at)), []);
  const ended = once(running.process, "exit");
  running.process.kill("SIGTERM");
  await ended;
  rmSync(dataDir, { recursive: true });
});
