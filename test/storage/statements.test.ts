// Every statement of every store and command, as both engines read it.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import pg from "pg";
import { createCommands, type AllCommands } from "#storage/commands.ts";
import { createSearchCommands, createSearchIndex } from "#storage/engines/postgres/search.ts";
import { createSql } from "#storage/engines/postgres/sql.ts";
import { translate, translateSchema } from "#storage/engines/postgres/translate.ts";
import { openReader, openWriter, type Db } from "#storage/engines/sqlite/database.ts";
import { createSql as createSqliteSql } from "#storage/engines/sqlite/sql.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import type { SearchCommands, SearchIndex } from "#storage/search/search.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { storesOver } from "#storage/stores.ts";
import type { Writer } from "#storage/writer.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { testDataDir } from "#support/server.ts";

const nobody = (): Promise<never> => Promise.reject(new Error("nothing is asked here"));

/** What stores and commands prepare over such an engine, what they ask in snapshots included. */
async function textsOf(
  over: Sql, commands: (sql: Sql) => SearchCommands, index: (reader: Reader) => SearchIndex,
): Promise<Set<string>> {
  const texts = new Set<string>();
  const empty = {
    get: () => Promise.resolve(undefined), one: nobody, insert: nobody,
    all: () => Promise.resolve([]), run: () => Promise.resolve({ changes: 0 }),
  };
  const recording: Sql = {
    ...over,
    prepare: (text) => {
      texts.add(text);
      return empty;
    },
  };
  createCommands(recording, commands(recording));
  const reader: Reader = { ...recording, snapshot: (read) => read(recording) };
  const writer: Writer<AllCommands> = {
    write: nobody, failure: () => null, isRefusing: () => false, close: () => Promise.resolve(),
  };
  const stores = storesOver(
    { ...reader, close: () => Promise.resolve() }, writer, index(reader));
  const page = { page: 1, perPage: 1 };
  const scope = { accountId: 1, assistantId: null, from: 0, to: 1 };
  await Promise.all([
    stores.folders.page(1, page), stores.labels.page(1, page), stores.assistants.list(1, "inbound"),
    stores.statements.page(1, {}, 0, 1), stores.overview.present(scope),
    stores.webhooks.waiting(0), stores.ledger.audit(nobody), stores.calls.snapshot(1),
  ]);
  return texts;
}

/** What is prepared over SQLite, whose own search has its statements. */
async function sqliteTexts(db: Db): Promise<Set<string>> {
  const search = await import("#storage/engines/sqlite/search.ts");
  return textsOf(createSqliteSql(db), search.createSearchCommands, search.createSearchIndex);
}

test("[SO21] every statement compiles in PostgreSQL, with integers wide enough", {
  skip: withoutPostgres,
}, async () => {
  const texts = await textsOf(
    createSql(nobody), createSearchCommands, createSearchIndex);
  assert.ok(texts.size > 330, String(texts.size));
  const database = await databaseAt(`statements ${process.pid}`);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const wrong: string[] = [];
  let number = 0;
  // Only queries and changes of rows can be prepared by name in SQL.
  for (const text of [...texts].filter((one) => !one.startsWith("TRUNCATE"))) {
    const name = `s${(number += 1)}`;
    const { text: translated, names } = translate(text);
    try {
      await client.query(`PREPARE ${name} AS ${translated}`);
    } catch (error) {
      wrong.push(`${(error as Error).message}: ${text}`);
      continue;
    }
    const { rows: [row] } = await client.query<{ types: string }>(
      `SELECT array_to_string(parameter_types, ',') AS types FROM pg_prepared_statements
       WHERE name = $1`, [name]);
    for (const [index, type] of (row?.types ?? "").split(",").entries()) {
      const parameter = names[index] ?? "";
      if (type === "integer" && !text.includes(`CAST(@${parameter} AS INTEGER`)) {
        wrong.push(`@${parameter} is of 32 bits: ${text}`);
      }
    }
  }
  await client.end();
  await database.drop();
  assert.deepEqual(wrong, []);
});

test("[SO20] every statement compiles in SQLite", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const reading = openReader(place);
  const texts = await sqliteTexts(db);
  assert.ok(texts.size > 330, String(texts.size));
  for (const text of texts) reading.prepare(text);
  reading.close();
  db.close();
  rmSync(place, { recursive: true });
});

/** How SQLite finds the rows of the statements that match, in the order of the marks. */
async function plansOf(...marks: RegExp[]): Promise<string[]> {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const texts = [...await sqliteTexts(db)];
  const plans = marks.map((mark) => {
    const text = texts.find((one) => mark.test(one));
    assert.ok(text, String(mark));
    const parameters = [...text.matchAll(/@([A-Za-z]+)/g)].map(([, name]) => [name, 1]);
    return db.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all(Object.fromEntries(parameters)).map(({ detail }) => detail).join("\n");
  });
  db.close();
  rmSync(place, { recursive: true });
  return plans;
}

/** What grows with every message, call and lead. */
const GROWING = new Set([
  "turns", "messages", "events", "conversations", "calls", "call_entries", "leads", "ledger",
  "tool_calls", "webhook_deliveries", "attachments",
]);
/** Statements that may, by their beginning, and why. */
const MAY_LOOK_THROUGH_ALL = {
  "WITH billed AS": "the ledger is verified whole",
  "INSERT INTO": "only where a key were changed would its references be looked for",
  "SELECT id, \"accountId\" FROM ( SELECT id, account_id": "the oldest events, bounded",
};

test("[SO61] no statement scans all turns, messages, calls, leads or deliveries", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const reading = openReader(place);
  const narrow = new Set(reading.prepare<[], { name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'",
  ).all().map(({ name }) => name));
  const looked = new Set<string>();
  for (const text of await sqliteTexts(db)) {
    const parameters = [...text.matchAll(/@([A-Za-z]+)/g)].map(([, name]) => [name, 1]);
    const plan = reading.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all(Object.fromEntries(parameters));
    const isWhole = plan.some(({ detail }) => {
      const [, name, index] =
        /^SCAN (\w+)(?: EXISTS| USING (?:COVERING )?INDEX (\w+))?$/.exec(detail) ?? [];
      // A partial index holds a few rows only: `... WHERE state = 'open'`.
      if (name === undefined || (index !== undefined && narrow.has(index))) return false;
      const named = new RegExp(`(?:FROM|JOIN) (\\w+) (?:AS )?${name}\\b`).exec(text);
      return GROWING.has(named?.[1] ?? name);
    });
    if (isWhole) looked.add(text.trim().replace(/\s+/g, " "));
  }
  reading.close();
  db.close();
  rmSync(place, { recursive: true });
  for (const beginning of Object.keys(MAY_LOOK_THROUGH_ALL)) {
    const allowed = [...looked].filter((text) => text.startsWith(beginning));
    assert.notEqual(allowed.length, 0, `${beginning} does not any more`);
    for (const text of allowed) looked.delete(text);
  }
  assert.deepEqual([...looked], []);
});

test("[SO71] a page of conversations or of the audit log starts at its position by index", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const pages = [...await sqliteTexts(db)].filter((text) =>
    text.includes("@before") && !text.includes("@offset") && /ORDER BY (c\.id|number) DESC LIMIT/.test(text));
  const plans = pages.map((text) => {
    const parameters = [...text.matchAll(/@([A-Za-z]+)/g)].map(([, name]) => [name, 1]);
    return db.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all(Object.fromEntries(parameters)).map(({ detail }) => detail).join("\n");
  });
  db.close();
  rmSync(place, { recursive: true });
  assert.equal(plans.length, 2);
  for (const plan of plans) assert.match(plan, /account_id=\? AND (id|number)<\?/);
});

test("[SO92] events of a conversation, deliveries of an endpoint and expired rows are found by index", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const texts = [...await sqliteTexts(db)];
  const planOf = (mark: RegExp): string => {
    const text = texts.find((one) => mark.test(one));
    assert.ok(text, String(mark));
    const parameters = [...text.matchAll(/@([A-Za-z]+)/g)].map(([, name]) => [name, 1]);
    return db.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all(Object.fromEntries(parameters)).map(({ detail }) => detail).join("\n");
  };
  const plans = [
    planOf(/UPDATE events SET type = 'conversation_deleted', data = @data/),
    planOf(/DELETE FROM webhook_deliveries WHERE id IN \(/),
    planOf(/finished_at < @/),
  ];
  const { kept } = db.prepare<[], { kept: number }>(`
    SELECT count(*) AS kept FROM pragma_index_list('webhook_deliveries') l
    JOIN pragma_index_info(l.name) i ON i.seqno = 0 AND i.name = 'endpoint_id'
    WHERE l.partial = 0`).get() ?? { kept: 0 };
  db.close();
  rmSync(place, { recursive: true });
  assert.match(plans[0] ?? "", /events_about_conversation \(about_conversation=\?\)/);
  assert.match(plans[1] ?? "", /\(endpoint_id=\?\)/);
  assert.match(plans[2] ?? "", /\(state=\? AND finished_at.*finished_at</);
  assert.equal(kept, 1, "the rows that a foreign key takes along");
});

test("[SO85] the ledger audit uses joins: no list is scanned per entry", {
  skip: withoutPostgres,
}, async () => {
  const texts = await textsOf(createSql(nobody), createSearchCommands, createSearchIndex);
  const database = await databaseAt(`books ${process.pid}`);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const books = [...texts].filter((text) => text.startsWith("WITH billed"));
  const plans = await Promise.all(books.map(async (text) =>
    (await client.query<{ "QUERY PLAN": string }>(`EXPLAIN ${translate(text).text}`)).rows
      .map((row) => row["QUERY PLAN"]).join("\n")));
  await client.end();
  await database.drop();
  assert.equal(plans.length, 2);
  for (const plan of plans) assert.doesNotMatch(plan, /SubPlan/);
});

test("[SO87] [SO102] deliveries of a call, pending and given-up ones, and a thing's ledger entries are found by index", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const texts = await sqliteTexts(db);
  const counts = [...texts].filter((text) => /^\s*SELECT count.* (webhook_deliveries d|ledger) WHERE/s.test(text));
  const used = counts.map((text) => {
    const parameters = [...text.matchAll(/@([A-Za-z]+)/g)].map(([, name]) => [name, 1]);
    const plan = db.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all(Object.fromEntries(parameters)).map(({ detail }) => detail).join();
    return /^SEARCH (?:d|ledger) USING (?:COVERING )?INDEX (\w+)/.exec(plan)?.[1] ?? plan;
  });
  db.close();
  rmSync(place, { recursive: true });
  for (const name of [
    "webhook_deliveries_of_call", "webhook_deliveries_pending", "webhook_deliveries_dead",
    "sqlite_autoindex_ledger_1",
  ]) assert.ok(used.includes(name), `${name} is not used: ${used.join("; ")}`);
});

test("[SO110] rare calls and deliveries, and entries of a kind or some days, are found by index", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const texts = [...await sqliteTexts(db)];
  const marked = (mark: RegExp): string[] => texts.filter((text) => mark.test(text));
  const plansOf = (mark: RegExp): string[] => marked(mark).map((text) => {
    const parameters = [...text.matchAll(/@([A-Za-z]+)/g)].map(([, name]) => [name, 1]);
    return db.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all(Object.fromEntries(parameters)).map(({ detail }) => detail).join("\n");
  });
  const plans = {
    calls: plansOf(/FROM calls c\s+WHERE(?!.*@search).*@phoneNumber/s),
    deliveries: plansOf(/FROM webhook_deliveries d\s+WHERE d\.account(?!.*'dead').*@type/s),
    dead: plansOf(/FROM webhook_deliveries d\s+WHERE d\.account.*'dead'/s),
    kinds: plansOf(/FROM ledger WHERE account_id = @accountId AND kind <> 'message'/),
    days: plansOf(/count\(\*\) AS entries,.* FROM ledger WHERE account_id.* AND created_at >= @from/s),
    pages: plansOf(/SELECT number FROM ledger WHERE account_id = @accountId AND \(CAST/),
  };
  db.close();
  rmSync(place, { recursive: true });
  const uses = { calls: 2, deliveries: 2, dead: 2, kinds: 3, days: 1, pages: 2 };
  for (const [name, count] of Object.entries(uses)) {
    assert.equal(plans[name as keyof typeof plans].length, count, name);
  }
  for (const plan of plans.calls) assert.match(plan, /c USING COVERING INDEX calls_by_account/);
  for (const plan of plans.deliveries) {
    assert.match(plan, /d USING COVERING INDEX webhook_deliveries_by_account/);
  }
  for (const plan of plans.dead) assert.match(plan, /d USING COVERING INDEX webhook_deliveries_dead/);
  for (const plan of plans.kinds) {
    assert.match(plan, /ledger USING COVERING INDEX ledger_of_kind \(account_id=\?/);
  }
  for (const plan of plans.pages) assert.doesNotMatch(plan, /TEMP B-TREE/);
  for (const plan of plans.days) assert.match(plan, /COVERING INDEX ledger_by_time .*created_at<\?/);
});

test("[SO22] a parameter has one number wherever it is named; quoted text stays", () => {
  assert.deepEqual(
    translate("SELECT '@a', x FROM t WHERE y = +@b AND (@rows + 0) > @b AND z = 'it''s @c'"),
    {
      text: "SELECT '@a', x FROM t WHERE y = $1 AND $2 > $1 AND z = 'it''s @c'",
      names: ["b", "rows"],
    });
  const name = fc.stringMatching(/^[a-z]{1,8}$/);
  fc.assert(fc.property(fc.array(name, { maxLength: 20 }), (named) => {
    const { text, names } = translate(named.map((one) => `x = @${one}`).join(" AND "));
    assert.deepEqual(names, [...new Set(named)]);
    assert.deepEqual(
      [...text.matchAll(/\$(\d+)/g)].map(([, at]) => names[Number(at) - 1]), named);
  }));
});

test("[SO22] the schema keeps its columns and loses what is SQLite's", () => {
  assert.equal(
    translateSchema(`-- TEXT of a comment
CREATE TABLE a (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- INTEGER
  b  TEXT NOT NULL DEFAULT 'x', c INTEGER, d BLOB
) STRICT, WITHOUT ROWID;
UPDATE a SET b = CAST(c AS TEXT);`),
    `CREATE TABLE a (
  id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, -- BIGINT
  b  TEXT COLLATE "C" NOT NULL DEFAULT 'x', c BIGINT, d BYTEA
);
UPDATE a SET b = CAST(c AS TEXT);`);
  for (const { sql } of shippedMigrations("sqlite")) {
    assert.doesNotMatch(sql, /tsvector|plpgsql/);
  }
  for (const { sql } of shippedMigrations("postgres")) {
    assert.doesNotMatch(translateSchema(sql), /STRICT|ROWID|AUTOINCREMENT|fts5|\bINTEGER\b|BLOB/);
  }
});

test("[SO41] a charge takes 14 statements, and none of them builds a temporary table", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const { createSearchCommands: search } =
    await import("#storage/engines/sqlite/search.ts");
  const over = createSqliteSql(db);
  const run: string[] = [];
  const noting: Sql = {
    ...over,
    prepare: <P extends object, Row>(text: string) => {
      const statement = over.prepare<P, Row>(text);
      const noted = <T>(how: (parameters: P) => T) => (parameters: P): T => {
        run.push(text);
        return how(parameters);
      };
      return {
        get: noted(statement.get), one: noted(statement.one), all: noted(statement.all),
        run: noted(statement.run), insert: noted(statement.insert),
      };
    },
  };
  const commands = createCommands(noting, search(noting));
  const now = 1_795_349_800_000_000;
  const { id: accountId } = await commands["accounts.create"](
    { name: "", email: "", plan: "", now });
  await commands["accounts.credit"]({ accountId, amountMicros: 100, reference: "first", now });
  db.exec(`INSERT INTO assistants (uuid, account_id, name, type, status, mode, settings, created_at,
    updated_at) VALUES ('a', ${accountId}, '', 'inbound', 'active', 'pipeline', '{}', 0, 0)`);
  const assistant = { id: 1, uuid: "a" };
  const created = await commands["conversations.create"]({
    uuid: "c", accountId, assistant, type: "widget", variables: {}, externalIdentifier: null,
    visitor: null,
    initialMessage: "", priceMicros: 0, dailyCapMicros: null, day: "", inactivityMinutes: 30, now,
  });
  assert.ok(created.kind === "created");
  const asWho = { nodeId: 0, now };
  run.length = 0;
  const begun = await commands["turns.begin"]({
    ...asWho, accountId, conversationUuid: "c", text: "Open?", idempotencyKey: "k",
    requestHash: "0", messagePriceMicros: 10, dailyCapMicros: null, day: "", messagesMax: 100,
  });
  assert.ok(begun.kind === "started");
  await commands["turns.complete"]({
    ...asWho, turnId: begun.turnId, text: "Yes.", functionCalls: [], stopped: false,
    truncated: false, usage: null, ends: false,
    conversation: { accountId, id: created.conversation.id, uuid: "c", assistantId: 1 },
  });
  assert.equal(run.length, 14, run.join(";\n"));
  for (const text of run) {
    const steps = db.prepare<unknown[], { opcode: string }>(
      `EXPLAIN ${text.replaceAll(/@\w+/g, "NULL")}`).all();
    assert.ok(!steps.some(({ opcode }) => opcode === "OpenEphemeral"), text);
  }
  db.close();
  rmSync(place, { recursive: true });
});

test("[SO120] chats of a person's number are found by index", async () => {
  const [plan = ""] = await plansOf(
    /SELECT uuid FROM conversations.*external_identifier = @phoneNumber/s);
  assert.match(plan, /conversations_by_customer \(assistant_id=\? AND external_identifier=\?\)/);
});

test("[GR1] deliveries that have come since are found by their ids, not among all that wait", async () => {
  const [since = "", all = ""] = await plansOf(
    /SELECT DISTINCT endpoint_id AS id FROM webhook_deliveries/,
    /SELECT id FROM webhook_endpoints e WHERE EXISTS/);
  assert.match(since, /PRIMARY KEY \(rowid>\? AND rowid<\?\)/);
  assert.match(all, /d USING (?:COVERING )?INDEX webhook_deliveries_pending \(endpoint_id/);
});

test("[GR2] free times and a booking leave the appointments of the past unread", async () => {
  const plans = await plansOf(
    /SELECT 1 FROM appointments/, /SELECT starts_at AS start, ends_at AS end/);
  for (const plan of plans) {
    assert.match(plan, /\(assistant_id=\? AND starts_at>\? AND starts_at<\?\)/);
  }
});

test("[GR4] conversations that wait for a person, or that one has, are found by the index of the desk", async () => {
  const plans = await plansOf(
    /AS since.*c\.account_id = \+@accountId AND [^(]*c\.desk = 'waiting'/s,
    /AS since.*c\.account_id = \+@accountId AND [^(]*c\.desk = 'person'/s);
  for (const plan of plans) assert.match(plan, /c USING INDEX conversations_at_desk \(account_id=\? AND desk=\?\)/);
});

test("[GR3] over PostgreSQL a search does not go through all messages from the newest on", {
  skip: withoutPostgres,
}, async () => {
  const texts = await textsOf(createSql(nobody), createSearchCommands, createSearchIndex);
  const text = [...texts].find((one) => /FROM message_index WHERE words @@/.test(one)) ?? "";
  const database = await databaseAt(`search ${process.pid}`);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  // As where there are millions: sorting what is found seems to cost more than the long way.
  await client.query("SET enable_sort = off");
  const { rows } = await client.query<{ "QUERY PLAN": string }>(
    `EXPLAIN ${text.replace("@match", "'bike'").replace("@rows", "5")}`);
  await client.end();
  await database.drop();
  assert.doesNotMatch(rows.map((row) => row["QUERY PLAN"]).join("\n"), /message_index_pkey/);
});
