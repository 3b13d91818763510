// What a start over PostgreSQL owes whose sessions end, or whose database will not do.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createSecureContext, TLSSocket } from "node:tls";
import { test } from "node:test";
import pg from "pg";
import { MisconfiguredStart } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { createSystem, type System } from "#core/system.ts";
import { openSession } from "#storage/engines/postgres/session.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { translateSchema } from "#storage/engines/postgres/translate.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { askUntil } from "#support/asking.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { MAIN } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";
import { selfSignedCertificate } from "#support/vendors/realtime-server.ts";

const system = createSystem();

test("[SO46] a start whose session is terminated retries over another one", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`begun ${process.pid}`);
  await database.query("DROP SCHEMA public CASCADE");
  await database.query("CREATE SCHEMA public");
  const lock = new pg.Client({ connectionString: database.url });
  await lock.connect();
  // Where the schema is brought up to date, a start waits for the one that does it.
  await lock.query("SELECT pg_advisory_lock(7303, 0)");
  const opening = openPostgres({ url: database.url, writesMax: 100, mayForget: true });
  const starts = (): Promise<{ pid: number }[]> => database.query(`
    SELECT pid FROM pg_stat_activity WHERE datname = current_database()
      AND application_name = 'parley start' AND wait_event_type = 'Lock'`);
  const [first] = await askUntil(starts, ({ length }) => length === 1);
  await database.query("SELECT pg_terminate_backend($1)", [first?.pid]);
  await askUntil(starts, ([one]) => one !== undefined && one.pid !== first?.pid);
  await lock.query("SELECT pg_advisory_unlock(7303, 0)");
  await lock.end();
  const storage = await opening;
  assert.deepEqual(await storage.accounts.listAccounts(), []);
  await storage.close();
  await database.drop();
});

test("[ND86] a start leaves another program's database unchanged and says whose it is", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`others ${process.pid}`);
  const tables = (): Promise<{ name: string }[]> => database.query(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1");
  for (const [table, ...more] of [
    ["users"], ["schema_version", "INSERT INTO schema_version VALUES (3)"],
    ["schema_version", "INSERT INTO schema_version VALUES (9999)"],
  ] as const) {
    await database.query("DROP SCHEMA public CASCADE");
    await database.query("CREATE SCHEMA public");
    await database.query(`CREATE TABLE ${table} (version INTEGER NOT NULL)`);
    for (const text of more) await database.query(text);
    await assert.rejects(
      openPostgres({ url: database.url, writesMax: 100, mayForget: true }), (error: unknown) => {
        assert.ok(error instanceof MisconfiguredStart, String(error));
        assert.equal(error.message,
          `the database has a table ${table} of another program: Parley needs a database of its own`);
        return true;
      });
    assert.deepEqual(await tables(), [{ name: table }]);
  }
  await database.drop();
});

test("[SO100] a start waits for a running migration as long as it takes, and names it", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`waits ${process.pid}`);
  const all = shippedMigrations("postgres");
  for (const text of [
    "DROP SCHEMA public CASCADE", "CREATE SCHEMA public",
    ...all.filter(({ version }) => version <= 62).map(({ sql }) => translateSchema(sql)),
    "CREATE TABLE schema_version (version BIGINT NOT NULL)", "INSERT INTO schema_version VALUES (62)",
  ]) await database.query(text);
  const reading = new pg.Client({ connectionString: database.url });
  await reading.connect();
  await reading.query("BEGIN; LOCK TABLE webhook_deliveries IN ACCESS SHARE MODE");
  let aheadMs = 0;
  let looks = 0;
  const later: System = {
    ...system, monotonicMs: () => system.monotonicMs() + aheadMs,
    every: (ms, handler) => system.every(ms, () => {
      handler();
      looks += 1;
    }),
  };
  const told: string[] = [];
  const opening = openPostgres({
    url: database.url, writesMax: 100, mayForget: true, system: later,
    onMigration: (name) => told.push(name),
  });
  const waiting = (): Promise<{ pid: number }[]> => database.query(`
    SELECT pid FROM pg_stat_activity WHERE datname = current_database()
      AND application_name = 'parley start' AND wait_event_type = 'Lock'`);
  const before = await askUntil(waiting, ({ length }) => length === 1);
  aheadMs = 10 * LIMITS.databaseAnswerMs;
  const seen = looks;
  await askUntil(() => looks - seen, (count) => count >= 4);
  assert.deepEqual(await waiting(), before, "it still waits, over the same session");
  await reading.query("COMMIT");
  await reading.end();
  const storage = await opening;
  assert.deepEqual(told,
    all.filter(({ version }) => version > 62).map(({ name }) => name));
  await storage.close();
  await database.drop();
});

async function startedWith(databaseUrl: string): Promise<{ code: number | null; said: string }> {
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PARLEY_PORT: "0", PARLEY_DATA_DIR: testDataDir(), PARLEY_LOG_LEVEL: "silent",
      PARLEY_DATABASE_URL: databaseUrl,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  return { code: code as number | null, said: said.trim() };
}

test("[SO47] a start whose sessions all end retries for a while, then says so and exits", async () => {
  const AUTHENTICATED = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
  const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
  const beganMs: number[] = [];
  // Lets everybody in, and ends at the first statement.
  const server = createServer((client) => {
    client.on("error", () => undefined);
    client.once("data", () => {
      beganMs.push(system.monotonicMs());
      client.write(Buffer.concat([AUTHENTICATED, READY]));
      client.once("data", () => client.destroy());
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { code, said } = await startedWith(`postgres://parley@127.0.0.1:${port}/parley?sslmode=disable`);
  assert.deepEqual([code, beganMs.length], [69, LIMITS.databaseStartTries], said);
  assert.match(said, /^parley: [^\n]+$/);
  for (const [index, atMs] of beganMs.slice(1).entries()) {
    assert.ok(atMs - beganMs[index]! >= LIMITS.databaseRetryMs - 5);
  }
  server.close();
});

test("[SO25] a database that is missing or may lose acknowledged writes stops the start with one sentence", {
  skip: withoutPostgres,
}, async () => {
  const { url } = await databaseAt(`start ${process.pid}`);
  const forgetful = await startedWith(url);
  assert.equal(forgetful.code, 78);
  assert.equal(forgetful.said,
    "parley: the PostgreSQL of PARLEY_DATABASE_URL has fsync off, so confirmed commits could be lost: turn it on");
  const nowhere = await startedWith("postgres://parley:secret@127.0.0.1:1/parley");
  // It may come back: whoever looks after the program is to start it again.
  assert.equal(nowhere.code, 69);
  assert.match(nowhere.said, /^parley: the database of PARLEY_DATABASE_URL is unreachable: [^\n]+$/);
  assert.ok(!nowhere.said.includes("secret"));
});

test("[SO70] sslmode=require verifies the database; an unknown authority is explained with what to do", async () => {
  const secureContext = createSecureContext(await selfSignedCertificate());
  const server = createServer((client) => {
    client.on("error", () => undefined);
    client.once("data", () => {
      client.write("S");
      new TLSSocket(client, { isServer: true, secureContext }).on("error", () => undefined);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { code, said } = await startedWith(`postgres://parley@127.0.0.1:${port}/parley?sslmode=require`);
  assert.equal(code, 69);
  assert.match(said, /^parley: the database of PARLEY_DATABASE_URL is unreachable: self-signed certificate \(NODE_EXTRA_CA_CERTS names a file of authorities to trust\)$/);
  server.close();
});

test("[ND80] transactions are read committed, strings keep their meaning, whatever the database's defaults", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`isolated ${process.pid}`);
  const set = (setting: string) => database.query(`ALTER DATABASE ${database.name} SET ${setting}`);
  await set("default_transaction_isolation = 'serializable'");
  await set("standard_conforming_strings = off");
  const session = await openSession({
    url: database.url, purpose: "test", statementMs: LIMITS.databaseAnswerMs,
    idleMs: LIMITS.databaseGoneMs, system,
  });
  await session.run("BEGIN");
  const { isolation, backslash } = await session.sql.prepare<object, Record<string, string>>(
    "SELECT current_setting('transaction_isolation') AS isolation, '\\' AS backslash").one({});
  assert.deepEqual([isolation, backslash], ["read committed", "\\"]);
  await session.close();
  await database.drop();
});

test("[OP240] a pooler that accepts no settings is reported in one sentence, exit 78", async () => {
  const refusal = Buffer.from("SERROR\0C08P01\0Munsupported startup parameter: options\0\0");
  const head = Buffer.from([0x45, 0, 0, 0, refusal.length + 4]);
  const server = createServer((client) => {
    client.on("error", () => undefined);
    client.once("data", () => client.end(Buffer.concat([head, refusal])));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { code, said } = await startedWith(`postgres://parley@127.0.0.1:${port}/parley?sslmode=disable`);
  assert.equal(code, 78);
  assert.equal(said,
    "parley: PARLEY_DATABASE_URL points to a connection pooler; it must point to PostgreSQL itself");
  server.close();
});

test("[OP241] a user who may not create tables, or lacks a schema, is reported in one sentence, exit 78", {
  skip: withoutPostgres,
}, async () => {
  const database = await databaseAt(`unowned ${process.pid}`, "durable");
  await database.query("DROP SCHEMA public CASCADE");
  const { code, said } = await startedWith(
    `postgres://parley@127.0.0.1:${database.port}/${database.name}`);
  assert.equal(code, 78);
  assert.equal(said, "parley: the database of PARLEY_DATABASE_URL could not be prepared: no schema has"
    + " been selected to create in");
  await database.drop();
});
