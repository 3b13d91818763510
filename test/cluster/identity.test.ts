// Which database a node serves, and whose folder it runs in: nodes of two databases do not hear
// each other, and who starts again where another died knows that it is gone.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { openWire } from "#app/wire.ts";
import { leaveMark, nodeBefore } from "#app/node-mark.ts";
import type { WireFault } from "#cluster/wire.ts";
import { readConfig, type Config } from "#config/config.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { askUntil } from "#support/asking.ts";
import { databaseAt, withoutPostgres, type TestDatabase } from "#support/engines.ts";
import { startNats, withoutNats } from "#support/nodes/nats.ts";
import { newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const dirs: string[] = [];
const databases: TestDatabase[] = [];
after(async () => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
  for (const database of databases) await database.drop();
});

function newDir(): string {
  const dir = testDataDir();
  dirs.push(dir);
  return dir;
}

async function newDatabase(): Promise<TestDatabase> {
  const database = await databaseAt(newDir(), "durable");
  databases.push(database);
  return database;
}

function configOf(env: Record<string, string>): Config {
  const dir = newDir();
  const outcome = readConfig({
    PARLEY_DATA_DIR: dir, PARLEY_FILES_URL: `file://${dir}`, PARLEY_SECRET: "all have this one",
    ...env,
  });
  assert.ok(outcome.kind === "ok", JSON.stringify(outcome));
  return outcome.config;
}

test("[ND37] nodes of two databases do not hear each other, even with one name on one NATS", {
  skip: withoutPostgres || withoutNats,
}, async () => {
  const nats = await startNats();
  const urls = [await newDatabase(), await newDatabase()].map(({ url }) => url);
  const system = createSystem();
  const connect = async (url = "") => {
    const storage = await openPostgres({ url, writesMax: 1, isSmall: true });
    const config = configOf({ PARLEY_DATABASE_URL: url, PARLEY_NATS_URL: nats.url });
    const wire = await openWire(
      { config, system, log: createLogger("silent") }, storage.databaseId);
    await storage.close();
    assert.ok(wire);
    await askUntil(() => wire.state(), (state) => state === "up");
    return wire;
  };
  const [one, twin] = [await connect(urls[0]), await connect(urls[0])];
  const other = await connect(urls[1]);
  let heard = "";
  for (const [name, wire] of [["twin", twin], ["other", other]] as const) {
    wire.subscribe("there.1", (_, reply) => {
      heard += name;
      reply?.(new Uint8Array());
    });
  }
  // Subscribed at the server: what was said before is answered before.
  await askUntil(
    () => one.request("there.1", new Uint8Array(), 1000).then(() => true, () => false), Boolean);
  await twin.close();
  // One that leaves may be asked until the server has noticed, and does not answer.
  await askUntil(() => one.request("there.1", new Uint8Array(), 1000)
    .then(() => "", ({ reason }: WireFault) => reason), (reason) => reason === "nobody");
  assert.doesNotMatch(heard, /other/);
  await Promise.all([one.close(), other.close()]);
  await nats.kill();
});

test("[ND38] the next process in a data folder takes over its predecessor's work at once", {
  skip: withoutPostgres,
}, async () => {
  const dataDir = newDir();
  const database = await newDatabase();
  const model = await startScriptedModel();
  const { promise: hold, resolve: goOn } = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["Late."], hold }));
  const start = () => startTestServer({
    dataDir, holdsFolder: true,
    env: { PARLEY_DATABASE_URL: database.url, PARLEY_MODEL_URL: model.url },
  });
  const died = await start();
  const conversation = await newConversation(died, (await newAssistant(died)).uuid);
  const answer = died.call("POST", `/conversations/${conversation}/messages`, {
    body: { message: "Hello?" },
  });
  const open = () => database.query<{ id: string }>("SELECT id FROM turns WHERE state = 'open'");
  await askUntil(open, (rows) => rows.length === 1);
  const next = await start();
  assert.deepEqual(await open(), [], "before it takes requests");
  await died.app.lost;
  goOn();
  await Promise.all([died.close(), next.close()]);
  await answer;
  await model.close();
});

test("[ND39] a folder copied to another machine, or used with another database, gives up no node", () => {
  const dir = newDir();
  const place = { host: "one", databaseId: "a" };
  assert.equal(nodeBefore(dir, place), null);
  leaveMark(dir, { ...place, nodeId: 7 });
  assert.equal(nodeBefore(dir, place), 7);
  assert.equal(nodeBefore(dir, { ...place, host: "two" }), null);
  assert.equal(nodeBefore(dir, { ...place, databaseId: "b" }), null);
});
