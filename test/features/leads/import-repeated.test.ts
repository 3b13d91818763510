// SIGKILL of the real process in the middle of an import that would add every lead once more.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import { ask, callApi } from "#support/api.ts";
import { startProcess } from "#support/process.ts";
import { assistantBody, testDataDir } from "#support/server.ts";

const ROWS = 10_000;
const ENV = { PARLEY_SPEECH: "loopback" };

test("[LD800] an import whose server was killed is not begun again under its Idempotency-Key; an answered request is answered again after it", async () => {
  const dataDir = testDataDir();
  let running = await startProcess(dataDir, ENV);
  const { key } = running;
  const { data: assistant } = await ask(running, "/user/assistant", assistantBody({ type: "outbound" }));
  const { data: campaign } = await ask(running, "/user/campaigns", {
    name: "Cut off", assistant_id: assistant.id,
  });
  const post = (path: string, body: unknown) => callApi(running.url, "POST", path, {
    key, body, headers: { "Idempotency-Key": "one" },
  });
  const rows = Array.from({ length: ROWS }, (_, at) => `+4915${String(300_000_000 + at)}`);
  const send = () => {
    const form = new FormData();
    form.set("campaign_id", String(campaign.id));
    form.set("duplicates", "add");
    form.set("import_id", "cut");
    form.set("file", new Blob([["phone", ...rows].join("\n")]), "leads.csv");
    return post("/user/leads/import", form);
  };
  const stored = async (): Promise<number> =>
    (await ask({ url: running.url, key }, `/user/leads?campaign_id=${campaign.id}&per_page=1`)).total;

  const first = await post("/user/knowledgebases", { name: "Kept" });
  assert.equal(first.status, 201);
  const isUnderWay = accountEvent({ url: running.url, key }, (event) =>
    event.type === "lead_import_progress" && Number(event.imported) > 0);
  const cut = assert.rejects(send());
  await isUnderWay;
  const ended = once(running.process, "exit");
  running.process.kill("SIGKILL");
  await Promise.all([ended, cut]);

  running = await startProcess(dataDir, ENV);
  const before = await stored();
  assert.ok(before > 0 && before < ROWS, String(before));
  const again = await send();
  assert.deepEqual([again.status, again.headers.get("retry-after")], [409, "1"]);
  assert.equal(await stored(), before);
  const repeated = await post("/user/knowledgebases", { name: "Kept" });
  assert.deepEqual([repeated.status, repeated.body], [201, first.body]);
  assert.equal(repeated.headers.get("idempotency-replayed"), "true");
  const left = once(running.process, "exit");
  running.process.kill("SIGTERM");
  await left;
  rmSync(dataDir, { recursive: true });
});
