// A start that takes long: what the port answers meanwhile, and that it ends as any other does.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import Database from "better-sqlite3";
import pg from "pg";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { askUntil } from "#support/asking.ts";
import { aboutTheFile, databaseAt, withoutPostgres } from "#support/engines.ts";
import { freePorts } from "#support/free-ports.ts";
import { MAIN, startProcess } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

const NEWEST = shippedMigrations("sqlite").at(-1)?.version ?? 0;

function olderDatabase(dataDir: string): void {
  const db = new Database(databasePath(dataDir));
  for (const { version, sql } of shippedMigrations("sqlite")) if (version < NEWEST) db.exec(sql);
  db.pragma(`user_version = ${NEWEST - 1}`);
  db.close();
}

/** Put into the process: the writer's thread changes no table until the file is there. */
const waitingFor = (gate: string, instead = ""): string => `
  import { existsSync } from "node:fs";
  import { createRequire } from "node:module";
  import { isMainThread } from "node:worker_threads";
  const { prototype } = createRequire(${JSON.stringify(MAIN)})("better-sqlite3");
  const { exec } = prototype;
  if (!isMainThread) prototype.exec = function (sql) {
    const never = new Int32Array(new SharedArrayBuffer(4));
    while (!existsSync(${JSON.stringify(gate)})) Atomics.wait(never, 0, 0, 10);
    ${instead}
    return exec.call(this, sql);
  };`;

interface Starting { child: ChildProcess; port: number; said(): string }

async function start(
  context: TestContext, dataDir: string, env: Record<string, string>,
): Promise<Starting> {
  const port = await freePorts();
  const child = spawn(process.execPath, [MAIN], {
    env: { PARLEY_PORT: String(port), PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  context.after(async () => {
    if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
    rmSync(dataDir, { recursive: true });
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => void (said += `${line}\n`));
  }
  return { child, port, said: () => said };
}

async function startSlowly(
  context: TestContext, { instead = "", isOld = true, env = {} } = {},
): Promise<Starting & { open(): void }> {
  const dataDir = testDataDir();
  if (isOld) olderDatabase(dataDir);
  const gate = join(dataDir, "gate");
  const code = encodeURIComponent(waitingFor(gate, instead));
  const starting = await start(context, dataDir, {
    NODE_OPTIONS: `--import=data:text/javascript,${code}`, ...env,
  });
  return { ...starting, open: () => writeFileSync(gate, "") };
}

interface Answer { status: number; retryAfter: string | undefined; body: unknown }

/** Over a connection of its own, as a probe asks. Null: nothing answers. */
const ask = (port: number, path: string, method = "GET"): Promise<Answer | null> =>
  new Promise((resolve, reject) => {
    const asked = request({ port, path, method, agent: false }, (answer) => {
      let text = "";
      answer.on("data", (bytes: Buffer) => void (text += bytes.toString()));
      answer.on("error", reject);
      answer.on("end", () => resolve({
        status: answer.statusCode ?? 0, retryAfter: answer.headers["retry-after"],
        body: JSON.parse(text) as unknown,
      }));
    });
    asked.on("error", () => resolve(null));
    asked.end();
  });

const untilStatus = (port: number, path: string, wanted: number): Promise<Answer | null> =>
  askUntil(() => ask(port, path), (answer) => answer?.status === wanted);

test("[OP230] during a migration the server is live but not ready, and says why in every route's shape", {
  skip: aboutTheFile,
}, async (context) => {
  const { child, port, open, said } = await startSlowly(context);
  const alive = await untilStatus(port, "/livez", 200);
  assert.deepEqual(alive?.body, { status: "ok" });
  const reason = "the database is being brought up to date";
  for (const path of ["/readyz", "/healthz"]) {
    // The port answers before the database has been looked at.
    await askUntil(() => ask(port, path), (ready) =>
      isDeepStrictEqual([ready?.status, ready?.body], [503, { status: "unavailable", reason }]));
  }
  for (const [method, path] of [["GET", "/api/user/me"], ["POST", "/api/conversations"], ["GET", "/"]] as const) {
    const error = `Try again later: ${reason}.`;
    const body = { message: error, status: false, success: false, error };
    assert.deepEqual(await ask(port, path, method), { status: 503, retryAfter: "5", body }, path);
  }
  assert.doesNotMatch(said(), /"msg":"listening"/);
  open();
  await untilStatus(port, "/readyz", 200);
  assert.equal((await ask(port, "/api/user/me"))?.status, 401);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
});

test("[OP231] a start that fails after a long time still exits with its sentence and its code", {
  skip: aboutTheFile,
}, async (context) => {
  const { child, port, open, said } = await startSlowly(context, {
    isOld: false, instead: `throw new Error("no more room");`,
  });
  await untilStatus(port, "/livez", 200);
  const { body } = await ask(port, "/readyz") ?? {};
  assert.deepEqual(body, { status: "unavailable", reason: "the server is starting" });
  const closed = once(child, "close");
  open();
  assert.deepEqual(await closed, [69, null]);
  assert.match(said(), /^parley: no more room$/m);
});

test("[OP232] a node waiting for another's PostgreSQL migration is live but not ready", {
  skip: withoutPostgres,
}, async (context) => {
  const dataDir = testDataDir();
  const database = await databaseAt(dataDir, "durable");
  for (const text of ["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"]) {
    await database.query(text);
  }
  const other = new pg.Client({ connectionString: database.url });
  await other.connect();
  await other.query("SELECT pg_advisory_lock(7303, 0)");
  const { child, port } = await start(context, dataDir, { PARLEY_DATABASE_URL: database.url });
  await untilStatus(port, "/livez", 200);
  assert.equal((await ask(port, "/readyz"))?.status, 503);
  assert.equal((await ask(port, "/api/user/me"))?.status, 503);
  await other.end();
  await untilStatus(port, "/readyz", 200);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
  await database.drop();
});

test("[OP260] a start told to stop twice exits, even in the middle of a statement", {
  skip: aboutTheFile,
}, async (context) => {
  const { child, port, open, said } = await startSlowly(context, {
    instead: "exec.call(this, 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      + "SELECT count(*) FROM n');",
  });
  await untilStatus(port, "/livez", 200);
  open();
  await askUntil(() => child.kill("SIGTERM"), () => child.signalCode !== null);
  assert.equal(child.signalCode, "SIGKILL");
  assert.match(said(), /"msg":"stopped while starting"/);
  assert.doesNotMatch(said(), /"msg":"listening"/);
});

test("[OP303] a server told to stop while starting gives no notice, since it was never ready", {
  skip: aboutTheFile,
}, async (context) => {
  const { child, port, open, said } = await startSlowly(context, {
    env: { PARLEY_STOP_NOTICE_SECONDS: "3600" },
  });
  await untilStatus(port, "/livez", 200);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  open();
  assert.deepEqual(await exited, [0, null]);
  assert.doesNotMatch(said(), /after notice/);
});

test("[CR595] a server that is ready takes calls over SIP", async (context) => {
  const dataDir = testDataDir();
  const [port, sipPort] = [await freePorts(), await freePorts()];
  const starting = startProcess(dataDir, {
    PARLEY_PORT: String(port), PARLEY_SIP_HOST: "127.0.0.1", PARLEY_SIP_PORT: String(sipPort),
  });
  context.after(async () => {
    const { process: child } = await starting;
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    await exited;
    rmSync(dataDir, { recursive: true, force: true });
  });
  await untilStatus(port, "/readyz", 200);
  const caller = connect(sipPort, "127.0.0.1");
  await once(caller, "connect");
  caller.destroy();
});
