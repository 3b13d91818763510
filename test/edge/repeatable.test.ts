// Requests that create something and are sent again with their Idempotency-Key, because the answer
// was lost.
import assert from "node:assert/strict";
import { once } from "node:events";
import { globSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import Database from "better-sqlite3";
import { LIMITS } from "#core/limits.ts";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { callApi } from "#support/api.ts";
import { askUntil } from "#support/asking.ts";
import { documentOf, operationsOf } from "#support/document.ts";
import { isOverPostgres } from "#support/engines.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { startProcess } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";
import { assistantBody, newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";
import { trunkBody } from "#support/sip/sip-trunks.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

/** Starts take half a second each. */
const LIVES = IS_PROOF ? 60 : 4;
const HOUR_MS = 3_600_000;
const PHONE = "+4366012345678";
const system = createManualSystem();
const model = await startScriptedModel();
const server = await startTestServer({
  system, env: { PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url, PARLEY_TOPUP_URL: "https://pay.example.com" },
});
after(async () => {
  await server.close();
  await model.close();
});

const REUSED = { idempotency_key: ["The Idempotency-Key was used for another request."] };

const keyed = (key: string): Record<string, string> => ({ "Idempotency-Key": key });
const create = (path: string, body: unknown, key: string) =>
  server.call("POST", path, { body, headers: keyed(key) });
const isReplay = ({ headers }: { headers: Headers }): boolean =>
  headers.get("idempotency-replayed") === "true";
const names = async (path: string): Promise<string[]> => {
  const { body } = await server.call("GET", path);
  return (body.data ?? body).map(({ name }: { name: string }) => name);
};

async function campaign(): Promise<number> {
  const { id } = await newAssistant(server, { type: "outbound" });
  const { body } = await server.call("POST", "/user/campaigns", {
    body: { name: "Autumn", assistant_id: id },
  });
  return body.data.id;
}

function form(fields: Record<string, string>, text: string): FormData {
  const sent = new FormData();
  for (const [name, value] of Object.entries(fields)) sent.set(name, value);
  sent.set("file", new Blob([text]), "file.txt");
  return sent;
}

/** A body for each path that creates something. */
async function bodiesToCreate(campaignId: number, documents: string, notes: string) {
  const { id: assistantId } = await newAssistant(server, { type: "outbound" });
  const fields = { campaign_id: String(campaignId), duplicates: "add" };
  return {
    "/user/assistant": assistantBody({ name: "Once" }),
    "/user/folders": { name: "Once" },
    "/user/label": { name: "Once" },
    "/user/tools": { name: "once", description: "Once", method: "GET", endpoint: "https://example.com/" },
    "/user/phone-numbers/sip-trunks": trunkBody(),
    "/user/knowledgebases": { name: "Once" },
    [documents]: form({ type: "txt", name: "Once" }, "Once"),
    "/user/lead": { campaign_id: campaignId, phone_number: PHONE, allow_dupplicate: true },
    "/user/leads/import": form(fields, `phone\n${PHONE}`),
    "/user/campaigns": { name: "Once", assistant_id: assistantId },
    "/user/template-sets": { template: "support", test_call: false },
    "/user/webhook-endpoints": { url: "https://example.com/hook", events: ["call_ended"] },
    [notes]: { text: "Once" },
    "/user/canned-replies": { shortcut: "once", text: "Once" },
    "/user/api-keys": { name: "Once" },
    "/user/invitations": { email: "once@example.com", role: "viewer" },
    "/user/top-ups": {},
  };
}

const count = async (path: string): Promise<number> => {
  const { body } = await server.call("GET", path);
  return body.total ?? (body.data ?? body).length;
};

test("[ER650] a request that creates something is answered again under its key, and creates nothing more", async () => {
  const campaignId = await campaign();
  const { body: base } = await server.call("POST", "/user/knowledgebases", { body: { name: "Base" } });
  const documents = `/user/knowledgebases/${base.data.id}/documents`;
  const uuid = await newConversation(server, (await newAssistant(server, { status: "active" })).uuid);
  const bodies = await bodiesToCreate(campaignId, documents, `/user/conversations/${uuid}/notes`);
  for (const [path, body] of Object.entries(bodies)) {
    const first = await create(path, body, "the same");
    assert.ok(first.status < 300 && !isReplay(first), `${path}: ${JSON.stringify(first.body)}`);
    const again = await create(path, body, "the same");
    assert.deepEqual([again.status, again.body], [first.status, first.body], path);
    assert.ok(isReplay(again), path);
  }
  assert.equal(await count(documents), 1);
  assert.equal(await count(`/user/leads?campaign_id=${campaignId}`), 2);
  assert.equal(await count("/user/webhook-endpoints"), 1);
});

test("[ER651] a key belongs to one body, route and sender, and to nothing that was refused", async () => {
  const body = { name: "Mine" };
  const refused = await create("/user/knowledgebases", { name: "" }, "a key");
  assert.equal(refused.status, 422);
  const first = await create("/user/knowledgebases", body, "a key");
  assert.deepEqual([first.status, isReplay(first)], [201, false]);
  const other = await create("/user/knowledgebases", { name: "Not mine" }, "a key");
  assert.deepEqual([other.status, other.body.errors], [422, REUSED]);
  assert.ok(!(await names("/user/knowledgebases")).includes("Not mine"));
  const elsewhere = await create("/user/folders", body, "a key");
  assert.deepEqual([elsewhere.status, isReplay(elsewhere)], [201, false]);
  const { key: another } = await server.newAccount();
  const { body: { api_key: second } } = await server.call("POST", "/user/api-keys", { body: { name: "2" } });
  for (const key of [another, second.token]) {
    const theirs = await server.call("POST", "/user/knowledgebases", {
      key, body, headers: keyed("a key"),
    });
    assert.deepEqual([theirs.status, isReplay(theirs)], [201, false]);
    assert.notEqual(theirs.body.data.id, first.body.data.id);
  }
  const tooLong = await create("/user/knowledgebases", body, "x".repeat(256));
  assert.equal(tooLong.status, 422);
});

test("[ER652] of simultaneous requests with one Idempotency-Key one creates something, and all get its answer", async () => {
  const sent = await Promise.all(Array.from({ length: 20 }, () =>
    create("/user/folders", { name: "At once" }, "at once")));
  assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([201]));
  assert.equal(new Set(sent.map(({ body }) => body.data.id)).size, 1);
  assert.equal(sent.filter((one) => !isReplay(one)).length, 1);
  const campaignId = String(await campaign());
  const fields = { campaign_id: campaignId, duplicates: "add" };
  const files = await Promise.all(["+4930200001", "+4930200002"].map((number) =>
    create("/user/leads/import", form(fields, `phone\n${number}`), "a file")));
  assert.deepEqual(files.map(({ status }) => status).toSorted(), [200, 422]);
  const late = await create("/user/leads/import", form(fields, "phone\n+4930200003"), "a file");
  assert.deepEqual([late.status, late.body.errors], [422, REUSED]);
  assert.equal(await count(`/user/leads?campaign_id=${campaignId}`), 1);
});

test("[OA800] routes that create something list the Idempotency-Key; those that only let in do not", async () => {
  const posts = operationsOf(await documentOf()).filter(({ method, operation }) =>
    method === "post" && "201" in operation.responses && (operation.security?.length ?? 0) > 0);
  assert.ok(posts.length > 20);
  const without = posts.filter(({ operation }) =>
    !operation.parameters?.some(({ name }) => name === "Idempotency-Key"));
  assert.deepEqual(without.map(({ path }) => path).toSorted(),
    ["/user/dashboard-sessions", "/user/stream-tickets"]);
});

function keptRows(): number {
  const database = new Database(databasePath(server.dataDir), { readonly: true });
  const rows = database.prepare("SELECT count(*) FROM kept_answers").pluck().get() as number;
  database.close();
  return rows;
}

test("[ER653] an answer is kept encrypted for a day, and no longer than what is stored about a person", async () => {
  const first = await create("/user/api-keys", { name: "Kept" }, "kept");
  const again = await create("/user/api-keys", { name: "Kept" }, "kept");
  assert.deepEqual([again.body, isReplay(again)], [first.body, true]);
  for (const file of isOverPostgres ? [] : globSync(join(server.dataDir, "parley.db*"))) {
    assert.ok(!readFileSync(file).includes(first.body.api_key.token), file);
  }
  system.advance(25 * HOUR_MS);
  if (!isOverPostgres) {
    await askUntil(() => {
      system.advance(LIMITS.retentionSweepMs);
      return keptRows();
    }, (rows) => rows === 0);
  }
  assert.ok(!isReplay(await create("/user/api-keys", { name: "Kept" }, "kept")));
  const person = { campaign_id: await campaign(), phone_number: PHONE, allow_dupplicate: true };
  assert.equal((await create("/user/lead", person, "a person's")).status, 200);
  const gone = await server.call("POST", "/user/people/delete", { body: { phone_number: PHONE } });
  assert.equal(gone.status, 200);
  assert.ok(!isReplay(await create("/user/api-keys", { name: "Kept" }, "kept")));
});

test("[ER654] killed in between, a request sent again under its key creates nothing twice", async () => {
  const dataDir = testDataDir();
  let running = await startProcess(dataDir);
  const { key } = running;
  const send = (life: number) => callApi(running.url, "POST", "/user/folders", {
    key, body: { name: `Life ${life}` }, headers: keyed(`life ${life}`),
  });
  const stored = async (life: number): Promise<number> =>
    (await callApi(running.url, "GET", "/user/folders", { key })).body.data
      .filter(({ name }: { name: string }) => name === `Life ${life}`).length;
  const ends = new Set<string>();
  for (let life = 0; life < LIVES; life += 1) {
    const sent = send(life).catch(() => null);
    // Each life is a little longer than the one before.
    for (let step = 0; step < life; step += 1) await fetch(`${running.url}/livez`);
    const ended = once(running.process, "exit");
    running.process.kill("SIGKILL");
    await ended;
    const answered = await sent;
    running = await startProcess(dataDir);
    const again = await send(life);
    assert.ok([201, 409].includes(again.status), JSON.stringify(again.body));
    if (answered?.status === 201) assert.ok(isReplay(again), String(again.status));
    const there = await stored(life);
    assert.ok(again.status === 201 ? there === 1 : there <= 1, `${again.status} ${there}`);
    ends.add(`${again.status} ${isReplay(again)}`);
  }
  assert.ok(ends.has("201 true") || ends.has("409 false"), [...ends].join());
  const left = once(running.process, "exit");
  running.process.kill("SIGTERM");
  await left;
  rmSync(dataDir, { recursive: true });
});
