// What nodes cannot be meant to be set up as keeps them from starting, each in one sentence.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { readConfig, type Config } from "#config/config.ts";
import { MisconfiguredStart } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import { openConfigured } from "#storage/engines/open.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { startOwnPostgres } from "#support/databases/own-postgres.ts";
import { virginDatabase } from "#support/databases/virgin-database.ts";
import { withoutPostgres } from "#support/engines.ts";
import { testDataDir } from "#support/server.ts";

const skip = withoutPostgres;
const dirs: string[] = [];
after(() => dirs.forEach((dir) => rmSync(dir, { recursive: true, force: true })));

function newDir(): string {
  const dir = testDataDir();
  dirs.push(dir);
  return dir;
}

function outcomeOf(env: Record<string, string>) {
  return readConfig({ PARLEY_DATA_DIR: newDir(), PARLEY_LOG_LEVEL: "silent", ...env });
}

function problemsOf(env: Record<string, string>): string[] {
  const outcome = outcomeOf(env);
  return outcome.kind === "invalid" ? outcome.problems : [];
}

function configOf(env: Record<string, string>): Config {
  const outcome = outcomeOf(env);
  assert.ok(outcome.kind === "ok", JSON.stringify(outcome));
  return outcome.config;
}

const SECRETS = ["the first node's secret", "another node's secret"] as const;

/** Starts as a node does, up to its database; it is refused in one sentence. */
async function refusal(start: () => Promise<{ close(): Promise<void> }>): Promise<string> {
  try {
    await (await start()).close();
  } catch (error) {
    assert.ok(error instanceof MisconfiguredStart, String(error));
    assert.doesNotMatch(error.message, /\n/);
    return error.message;
  }
  return "";
}

test("[ND30] NATS is refused without PostgreSQL, and without shared files", () => {
  const shared = `file://${newDir()}`;
  const nats = { PARLEY_NATS_URL: "nats://127.0.0.1" };
  const [alone, ...more] = problemsOf({ ...nats, PARLEY_FILES_URL: shared });
  assert.match(alone ?? "", /PARLEY_NATS_URL.*PARLEY_DATABASE_URL/);
  assert.deepEqual(more, []);
  const joined = { ...nats, PARLEY_DATABASE_URL: "postgres://u@h/d" };
  const [files, ...others] = problemsOf(joined);
  assert.match(files ?? "", /^PARLEY_NATS_URL joins nodes, which need files all of them reach/);
  assert.deepEqual(others, []);
  assert.deepEqual(problemsOf({ ...joined, PARLEY_FILES_URL: shared }), []);
});

test("[ND31] a PostgreSQL that may lose acknowledged writes is refused, whichever way", { skip }, async () => {
  const own = await startOwnPostgres();
  const open = () => refusal(() => openPostgres({ url: own.url, writesMax: 1, isSmall: true }));
  assert.equal(await open(), "");
  for (const name of ["fsync", "full_page_writes", "synchronous_commit"]) {
    await own.set(name, "off");
    assert.equal(await open(),
      `the PostgreSQL of PARLEY_DATABASE_URL has ${name} off, so confirmed commits could be lost: turn it on`);
    await own.set(name, "on");
  }
  await own.close();
});

test("[ND32] a node with another secret than the database's first is refused", { skip }, async () => {
  const { url, drop } = await virginDatabase("secrets");
  const start = (secret: string) => () => openConfigured(
    configOf({ PARLEY_DATABASE_URL: url, PARLEY_SECRET: secret }), "thread");
  assert.equal(await refusal(start(SECRETS[0])), "");
  assert.equal(await refusal(start(SECRETS[1])),
    "PARLEY_SECRET is not the one the database of PARLEY_DATABASE_URL was created with: all nodes"
    + " need the same secret");
  assert.equal(await refusal(start(SECRETS[0])), "");
  await drop();
});

test("[ND33] a machine whose clock is more than a minute off the database's is refused", { skip }, async () => {
  const { url, drop } = await virginDatabase("clocks");
  const system = createSystem();
  const offBy = (seconds: number) => refusal(() => openPostgres({
    url, writesMax: 1, isSmall: true,
    system: { ...system, now: () => system.now() + seconds * 1_000_000 },
  }));
  assert.equal(await offBy(50), "");
  assert.equal(await offBy(-50), "");
  assert.match(await offBy(600), /^this machine's clock is (599|600) s ahead of that of the database of PARLEY_DATABASE_URL: synchronise both by NTP$/);
  assert.match(await offBy(-600), /^this machine's clock is (599|600) s behind that of the database/);
  await drop();
});

test("[ND34] a database that a newer version has migrated is refused", { skip }, async () => {
  const { url, query, drop } = await virginDatabase("schemas");
  const open = () => refusal(() => openPostgres({ url, writesMax: 1, isSmall: true }));
  assert.equal(await open(), "");
  await query("UPDATE schema_version SET version = 9999");
  assert.match(await open(), /^the database has schema 9999, newer than the \d+ this program knows: use a newer Parley, or restore a backup .*$/);
  await drop();
});

test("[ND35] a node with another cluster name is refused while nodes of the first one live", { skip }, async () => {
  const { url, drop } = await virginDatabase("names");
  const start = (cluster: string) => openConfigured(configOf({
    PARLEY_DATABASE_URL: url, PARLEY_SECRET: SECRETS[0], PARLEY_CLUSTER: cluster,
  }), "thread");
  const first = await start("north");
  await first.join({ name: "one", url: null, protocol: 1 });
  assert.equal(await refusal(() => start("south")),
    "the other nodes of the database of PARLEY_DATABASE_URL have PARLEY_CLUSTER=north, this one has"
    + " south: use the same on all nodes");
  assert.equal(await refusal(() => start("north")), "");
  await first.nodes.leave({ now: await first.nodes.clock() });
  await first.close();
  assert.equal(await refusal(() => start("south")), "", "a cluster that has stopped may be renamed");
  await drop();
});
