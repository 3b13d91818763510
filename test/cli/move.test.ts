// A data folder that goes on in PostgreSQL: all of it, with its files.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { SECRET } from "#support/databases/lived-folder.ts";
import { cleanups, model, move, newDatabase, newDir, newFolder, receiver } from "#support/databases/moving.ts";
import { withoutPostgres } from "#support/engines.ts";
import { json, parley } from "#support/process.ts";
import { startTestServer } from "#support/server.ts";
import { startS3Server } from "#support/vendors/s3-server.ts";

const skip = withoutPostgres;

/** Every row of a table, in an order of its own, each value as text. */
async function rowsOf(place: { query(text: string): Promise<object[]> }, table: string) {
  const rows = await place.query(`SELECT * FROM "${table}"`);
  const text = (value: unknown): unknown => {
    if (Buffer.isBuffer(value)) return value.toString("hex");
    return value === null ? null : String(value).replaceAll("\0", "\uFFFD");
  };
  return rows.map((row) => JSON.stringify(Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, text(value)]).toSorted()))).toSorted();
}

function fileOf(dataDir: string) {
  const db = new Database(databasePath(dataDir), { readonly: true });
  return {
    query: (text: string) => Promise.resolve(db.prepare(text).all() as object[]),
    tables: (db.prepare(`SELECT name FROM pragma_table_list WHERE schema = 'main'
      AND type = 'table' AND name NOT LIKE 'sqlite_%'`).all() as { name: string }[])
      .map(({ name }) => name),
    close: () => db.close(),
  };
}

test("[CL85] a stopped folder is moved to PostgreSQL row by row, and both ledgers are right", { skip }, async () => {
  const { dataDir } = newFolder();
  const database = await newDatabase("rows");
  const moved = await move(dataDir, database);
  assert.equal(moved.code, 0, moved.err);
  const { rows, accounts, entries } = json(moved);
  assert.ok(Number(rows) > 30);
  assert.deepEqual([accounts, entries], [1, 3]);
  const file = fileOf(dataDir);
  for (const table of file.tables) {
    if (table === "nodes" || table === "message_index_state") continue;
    assert.deepEqual(await rowsOf(database, table), await rowsOf(file, table), table);
  }
  const tables = await database.query<{ name: string }>(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'");
  assert.deepEqual(tables.map(({ name }) => name).toSorted(),
    [...file.tables, "chunk_index", "message_index", "facts", "schema_version"].toSorted(), "no table is forgotten");
  file.close();
  const keys = await database.query(
    "SELECT 1 FROM pg_constraint WHERE contype = 'f' AND convalidated");
  assert.ok(keys.length > 25, `${keys.length} foreign keys`);
  for (const dir of [dataDir, newDir()]) {
    const books = await parley(dir, ["ledger", "verify"],
      dir === dataDir ? {} : { PARLEY_DATABASE_URL: database.url });
    assert.equal(books.out, "the ledger is correct: 1 accounts, 3 ledger entries\n", books.err);
  }
});

async function textUntil(response: Response, pattern: RegExp): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true });
    if (pattern.test(text)) return text;
  }
  return text;
}

test("[CL86] a server continues with what was moved: chats, stream positions, searches, webhooks, balances", { skip }, async () => {
  const { dataDir, key, accountId, uuid, knowledgebaseId } = newFolder();
  const before = receiver.received.length;
  const database = await newDatabase("goes on");
  const moved = await parley(dataDir, ["move", "--json"], {
    PARLEY_SECRET: SECRET, PARLEY_DATABASE_URL: database.url,
  });
  assert.equal(moved.code, 0, moved.err);
  const server = await startTestServer({
    dataDir: newDir(),
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
      PARLEY_DATABASE_URL: database.url, PARLEY_SECRET: SECRET,
    },
  });
  assert.ok(server.accountId > accountId, "a new account has an id that was never given");
  const me = await server.call("GET", "/user/me", { key });
  assert.equal(me.body.total_balance, 4.98);
  const again = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "When do you open?" }, headers: { "Idempotency-Key": "When d" },
  });
  assert.equal(again.body.message, "At nine.", "what was answered under the key");
  model.script(() => ({ tokens: ["Until ", "six."] }));
  const stream = await fetch(`${server.url}/api/conversations/${uuid}/stream`, {
    headers: { "Last-Event-ID": "3" },
  });
  const sent = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "And close?" },
  });
  assert.equal(sent.body.message, "Until six.");
  const told = await textUntil(stream, /"content":"Until six\."/);
  const ids = [...told.matchAll(/^id: ?(\d+)$/gm)].map(([, id]) => Number(id))
    .filter((id) => id > 3);
  const following = Array.from({ length: Math.max(...ids) - 3 }, (_, at) => at + 4);
  assert.deepEqual([...new Set(ids)], following, "from the old position on, without a hole");
  assert.equal((await server.call("GET", "/user/me", { key })).body.total_balance, 4.97);
  const { search } = server.app.features.knowledge.retrieval;
  const found = await search(accountId, knowledgebaseId, "when is the office opening");
  assert.match(JSON.stringify(found), /The harbour office opens at nine/);
  const [tool] = (await server.call("GET", "/user/tools", { key })).body;
  assert.deepEqual(tool.headers, [{ name: "Authorization", value: "Bearer canary" }]);
  const messages = await receiver.until(before + 1);
  assert.equal(messages.at(-1)?.body.type, "balance_changed");
  const nodes = await database.query<{ id: string; state: string }>(
    "SELECT id, state FROM nodes ORDER BY id");
  assert.deepEqual(nodes.map(({ state }) => state), ["gone", "live"]);
  assert.ok(Number(nodes.at(-1)?.id) > 5000, "above the ids that were ever given");
  await server.close();
  const books = await parley(newDir(), ["ledger", "verify"], { PARLEY_DATABASE_URL: database.url });
  assert.equal(books.code, 0, books.out);
});

test("[CL89] [CL141] files are copied to PARLEY_FILES_URL or stay; the old database is not used", { skip }, async () => {
  const { dataDir } = newFolder();
  for (const folder of ["recordings", "documents", "scratch"]) {
    mkdirSync(join(dataDir, folder), { recursive: true });
  }
  writeFileSync(join(dataDir, "recordings", "one.wav"), "RIFF");
  writeFileSync(join(dataDir, "documents", "two.pdf"), "PDF");
  writeFileSync(join(dataDir, "recordings", "gone.wav"), "RIFF");
  const db = new Database(databasePath(dataDir));
  db.exec("INSERT INTO unwanted_files (name, due_at) VALUES ('recordings/gone.wav', 1)");
  db.close();
  const s3 = await startS3Server();
  cleanups.push(s3.close);
  const bucket = await move(dataDir, await newDatabase("bucket"), s3.env);
  assert.equal(bucket.code, 0, bucket.err);
  assert.equal((json(bucket).files as { copied: number }).copied, 2);
  assert.equal(readFileSync(s3.pathOf("recordings/one.wav"), "utf8"), "RIFF");
  assert.equal(readFileSync(s3.pathOf("documents/two.pdf"), "utf8"), "PDF");
  assert.ok(!existsSync(s3.pathOf("recordings/gone.wav")), "what was to be removed does not come back");
  assert.ok(existsSync(join(dataDir, "recordings", "one.wav")), "a copy");
  const broken = await newDatabase("no bucket");
  await s3.stop();
  const failed = await move(dataDir, broken, s3.env);
  assert.equal(failed.code, 1);
  assert.equal((await broken.query("SELECT 1 FROM accounts")).length, 0);
  const stays = await parley(dataDir, ["move", "--to", broken.url], {});
  assert.equal(stays.code, 0, stays.err);
  assert.match(stays.err, /^parley: rows of ledger: 3\n.*^parley: comparing both sides\n$/ms);
  assert.equal(bucket.err, "", "with --json");
  assert.match(stays.out, /3 files stay in \S+: a single node keeps using them there, several need PARLEY_FILES_URL/);
  const onFile = await parley(dataDir, ["account", "list"]);
  assert.equal(onFile.code, 1);
  assert.match(onFile.err, /^parley: the database of \S+ was moved to PostgreSQL at \S+: set PARLEY_DATABASE_URL to it; to go back to the file as it was then, delete \S+moved\.json\n$/);
  const started = await parley(dataDir, ["serve"], { PARLEY_PORT: "0", PARLEY_LOG_LEVEL: "silent" });
  assert.equal(started.code, 78);
});
