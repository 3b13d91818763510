// A move into PostgreSQL that is refused, or killed on the way: all of it has happened or nothing.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import pg from "pg";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { askUntil } from "#support/asking.ts";
import { SECRET } from "#support/databases/lived-folder.ts";
import { move, newDatabase, newDir, newFolder } from "#support/databases/moving.ts";
import { type VirginDatabase } from "#support/databases/virgin-database.ts";
import { withoutPostgres } from "#support/engines.ts";
import { CLI, parley } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";

const skip = withoutPostgres;

test("[CL87] a move is refused in one sentence: a running server, a database in use, an older file", { skip }, async () => {
  const { dataDir } = newFolder();
  const database = await newDatabase("refusals");
  const said = async (dir: string, url = database.url): Promise<string> => {
    const { code, err } = await move(dir, { url });
    assert.notEqual(code, 0);
    assert.match(err, /^parley: [^\n]+\n$/);
    return err;
  };
  const lock = new Database(join(dataDir, "server.lock"));
  lock.exec("BEGIN EXCLUSIVE");
  assert.match(await said(dataDir), /a server is running on the data folder: stop it first/);
  lock.close();
  assert.match(await said(newDir()), /there is no database in/);
  assert.match(await said(dataDir, "mysql://x/y"), /--to must be a URL such as postgres:/);
  assert.match(await said(dataDir, "postgres://u:hidden@127.0.0.1:1/x"), /--to is unreachable/);
  const file = new Database(databasePath(dataDir));
  const version = file.pragma("user_version", { simple: true }) as number;
  file.pragma(`user_version = ${version - 1}`);
  assert.match(await said(dataDir), /has schema \d+, this program needs \d+: start the server once/);
  file.pragma(`user_version = ${version + 1}`);
  assert.match(await said(dataDir), /newer than the \d+ this program knows/);
  file.pragma(`user_version = ${version}`);
  file.close();
  await database.query("CREATE TABLE theirs (id INTEGER)");
  assert.match(await said(dataDir), /the database is not empty: it has the table theirs/);
  await database.query("DROP TABLE theirs");
  const created = await parley(newDir(), ["account", "create", "--name", "A"], {
    PARLEY_DATABASE_URL: database.url,
  });
  assert.equal(created.code, 0, created.err);
  assert.match(await said(dataDir), /the database is not empty: its table accounts has rows/);
  await database.query("UPDATE schema_version SET version = 9999");
  assert.match(await said(dataDir), /the database has schema 9999, newer than/);
  assert.ok(!existsSync(join(dataDir, "moved.json")), "the folder goes on");
});

test("[CL351] a move checks the database it goes to before the ledger, and leaves it free where the ledger is wrong", { skip }, async () => {
  const { dataDir } = newFolder();
  const file = new Database(databasePath(dataDir));
  file.exec("DROP TRIGGER ledger_is_never_changed; UPDATE ledger SET amount_micros = 1");
  file.close();
  const database = await newDatabase("wrong ledger");
  await database.query("CREATE TABLE theirs (id INTEGER)");
  assert.match((await move(dataDir, database)).err, /the database is not empty/);
  await database.query("DROP TABLE theirs");
  assert.match((await move(dataDir, database)).err, /the ledger is not correct; nothing was moved/);
  const created = await parley(newDir(), ["account", "create", "--name", "A"], {
    PARLEY_DATABASE_URL: database.url,
  });
  assert.equal(created.code, 0, created.err);
});

/** A table of the database, until it is let go: against writing, or against ANALYZE alone. */
async function holdTable(
  database: VirginDatabase, table: string, mode: "SHARE" | "SHARE UPDATE EXCLUSIVE" = "SHARE",
) {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("BEGIN");
  await client.query(`LOCK TABLE ${table} IN ${mode} MODE`);
  return {
    /** Resolves once a move waits for it. */
    waited: () => askUntil(
      () => database.query(`SELECT 1 FROM pg_locks
        WHERE NOT granted AND relation = CAST('${table}' AS regclass)`),
      (rows) => rows.length > 0),
    letGo: async () => {
      await client.query("ROLLBACK");
      await client.end();
    },
  };
}

/** SIGKILL while it waits for a table. */
async function killMove(
  dataDir: string, { url }: { url: string }, held: Awaited<ReturnType<typeof holdTable>>,
): Promise<void> {
  const child = execFile(process.execPath, [CLI, "move", "--to", url], {
    env: { PATH: process.env.PATH ?? "", PARLEY_DATA_DIR: dataDir, PARLEY_SECRET: SECRET },
  });
  const exited = once(child, "exit");
  await held.waited();
  child.kill("SIGKILL");
  await exited;
  await held.letGo();
}

test("[CL88] killed midway, a move leaves nothing a server starts on, and a second one completes it", { skip }, async () => {
  const { dataDir, accountId } = newFolder();
  const database = await newDatabase("killed", { hasSchema: true });
  await killMove(dataDir, database, await holdTable(database, "turns"));
  const begun = await parley(newDir(), ["serve"], {
    PARLEY_DATABASE_URL: database.url, PARLEY_SECRET: SECRET, PARLEY_PORT: "0",
    PARLEY_LOG_LEVEL: "silent",
  });
  assert.equal(begun.code, 78);
  assert.match(begun.err, /^parley: a move into the database of PARLEY_DATABASE_URL began at \S+ and is not complete: wait for it, or run parley move again\n$/);
  const listed = await parley(newDir(), ["account", "list"], { PARLEY_DATABASE_URL: database.url });
  assert.equal(listed.code, 1, "nor does a command go on with it");
  assert.equal((await database.query("SELECT 1 FROM accounts")).length, 0);
  const second = await askUntil(
    () => move(dataDir, database), ({ err }) => !err.includes("another move"));
  assert.equal(second.code, 0, second.err);
  assert.equal((await database.query(`SELECT 1 FROM accounts WHERE id = ${accountId}`)).length, 1);
  const third = await move(dataDir, database);
  assert.match(third.err, /a move into this database was completed at \S+/);
});

test("[CL105] killed once the database has everything, the move is done: no server uses the old file", { skip }, async () => {
  const { dataDir, accountId } = newFolder();
  const database = await newDatabase("killed late", { hasSchema: true });
  await killMove(
    dataDir, database, await holdTable(database, "facts", "SHARE UPDATE EXCLUSIVE"));
  assert.equal((await database.query(`SELECT 1 FROM accounts WHERE id = ${accountId}`)).length, 1);
  const onFile = await parley(dataDir, ["account", "list"]);
  assert.equal(onFile.code, 1, onFile.out);
  assert.match(onFile.err, /was moved to PostgreSQL at \S+: set PARLEY_DATABASE_URL to it/);
});

test("[CL121] a database that fills up or disappears aborts a move with a message; a second move completes", { skip }, async () => {
  const { dataDir } = newFolder();
  const database = await newDatabase("full", { hasSchema: true });
  const said = (why: string) => new RegExp(`^parley: the target database ended the move: ${why}`
    + "\\. Either everything was moved or nothing: repeat the command once the database is available\n$");
  await database.query(`CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE 'could not extend file' USING ERRCODE = 'disk_full', HINT = 'Check free disk space.'; END $$`);
  await database.query("CREATE TRIGGER full_disk BEFORE INSERT ON turns EXECUTE FUNCTION fill()");
  assert.match((await move(dataDir, database)).err,
    said("could not extend file \\(Check free disk space\\.\\)"));
  await database.query("DROP FUNCTION fill CASCADE");
  const held = await holdTable(database, "turns");
  const ended = move(dataDir, database);
  await held.waited();
  await database.query(`SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE NOT granted AND relation = CAST('turns' AS regclass)`);
  assert.match((await ended).err, said("terminating connection due to administrator command"));
  await held.letGo();
  assert.equal((await move(dataDir, database)).code, 0);
});

const SHARES = IS_PROOF ? [0.6, 0.8, 0.95] : [0.6 + Math.random() * 0.4];

test("[CL88] killed at any moment, a move is done or not done", { skip }, async () => {
  const { dataDir } = newFolder();
  const startedMs = performance.now();
  const whole = await move(dataDir, await newDatabase("whole"));
  assert.equal(whole.code, 0, whole.err);
  const tookMs = performance.now() - startedMs;
  for (const share of SHARES) {
    const database = await newDatabase(`any ${share}`);
    const child = execFile(process.execPath, [CLI, "move", "--to", database.url], {
      env: { PATH: process.env.PATH ?? "", PARLEY_DATA_DIR: dataDir, PARLEY_SECRET: SECRET },
    });
    const exited = once(child, "exit");
    const timer = setTimeout(() => child.kill("SIGKILL"), tookMs * share);
    await exited;
    clearTimeout(timer);
    const again = await askUntil(
      () => move(dataDir, database), ({ err }) => !err.includes("another move"));
    if (again.code !== 0) assert.match(again.err, /was completed at/);
    assert.equal((await database.query("SELECT 1 FROM accounts")).length, 1);
    const books = await parley(newDir(), ["ledger", "verify"], { PARLEY_DATABASE_URL: database.url });
    assert.equal(books.code, 0, books.out + books.err);
  }
});
