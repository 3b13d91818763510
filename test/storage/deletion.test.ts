// What is left in the database of a conversation that was deleted: asked of every row there is.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import type { Conversation } from "#features/conversations/records.ts";
import { databasePath, openForInspection } from "#storage/engines/sqlite/database.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { createWorld, DAY, PRICE, system } from "#support/databases/contract-world.ts";
import { testDataDir } from "#support/server.ts";

/** Rows of all tables that have the word in a text, by table. */
function rowsWith(place: string, word: string): [table: string, row: unknown][] {
  const db = openForInspection(databasePath(place));
  const tables = db.prepare<[], { name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'").all();
  const found = tables.flatMap(({ name }) => db.prepare<[], object>(`SELECT * FROM "${name}"`).all()
    .filter((row) => JSON.stringify(row).includes(word))
    .map((row): [string, unknown] => [name, row]));
  db.close();
  return found;
}

/** A conversation that has the word wherever somebody's words are kept. */
async function saying(storage: Storage, word: string, owner: Conversation): Promise<string> {
  const world = createWorld(storage);
  const { accountId, assistantId } = owner;
  const now = system.now();
  const created = await storage.conversations.create({
    uuid: system.uuid(), accountId, now, type: "widget", variables: { name: word },
    initialMessage: word, externalIdentifier: word, visitor: { id: word, continues: false }, page: `https://${word}`,
    priceMicros: 0, inactivityMinutes: 30, dailyCapMicros: null, day: DAY,
    assistant: { id: assistantId, uuid: system.uuid() },
  });
  assert.ok(created.kind === "created");
  const { conversation } = created;
  const { uuid } = conversation;
  const attachments = [{ id: word, name: word, type: "image/png", bytes: 1 }];
  const keyed = { idempotencyKey: word, requestHash: word, text: word, attachments };
  const cause = { failure: "model_failed", error: word } as const;
  const failed = await world.started(conversation, keyed);
  await world.fail(failed.turnId, conversation, { cause });
  const { turnId } = await world.started(conversation, { ...keyed, idempotencyKey: `${word} 2` });
  const { id } = await storage.toolJournal.begin(
    { scope: `turn:${turnId}`, callKey: "k", accountId, toolId: 0, now }) as { id: number };
  await storage.toolJournal.finish({ accountId, id, result: { output: word }, sent: true, now });
  await world.complete(turnId, conversation, {
    text: word,
    functionCalls: [{ name: word, arguments: {}, result: { output: word } }] as never,
    asks: { by: "assistant", reason: "asked", note: word },
  });
  const ana = { id: "key:1", name: word };
  await storage.desk.moveDesk({
    accountId, uuid, move: "take", by: { role: "operator", ...ana }, reason: "taken_over",
    holder: ana, note: word, now,
  });
  await storage.desk.say({
    accountId, uuid, author: ana, text: word, attachments: [], idempotencyKey: word, messagesMax: 9,
    now,
  });
  const wish = { name: word, phone: word, email: word, wish: word, time: word, away: null };
  await storage.callbacks.request({ accountId, uuid, ...wish, now });
  await storage.callbacks.finish({ accountId, uuid, author: ana, now });
  await storage.ratings.rateConversation({ accountId, uuid, score: 4, comment: word, now });
  return uuid;
}

test("[CV503] no row keeps a word of a deleted conversation, and other conversations are unchanged", async () => {
  const place = testDataDir();
  const storage = await openStorage(place, "inline");
  const { newConversation } = createWorld(storage);
  const owners = [await newConversation(9 * PRICE), await newConversation(9 * PRICE)] as const;
  for (const { accountId } of owners) {
    assert.ok(await storage.webhooks.createEndpoint(
      { accountId, url: "https://example.org", events: ["*"], max: 9, now: system.now() }));
  }
  const [own, stranger] = owners;
  await saying(storage, "quince", own);
  await saying(storage, "medlar", own);
  const uuid = await saying(storage, "plum", own);
  await saying(storage, "damson", stranger);
  while (await storage.inbox.indexMessages(100) > 0);
  const others = ["quince", "medlar", "damson"];
  const seen = () => others.map((word) => rowsWith(place, word));
  const before = seen();
  const tables = new Set(rowsWith(place, "plum").map(([table]) => table));
  for (const table of [
    "callbacks", "conversations", "conversation_notes", "events", "messages", "tool_calls", "turns",
    "webhook_deliveries",
  ]) assert.ok(tables.has(table), table);
  const by = { actor: { kind: "key", id: "key:1", name: "Ana" }, address: null } as const;
  const gone = (accountId: number) =>
    storage.bulk.delete({ accountId, uuids: [uuid], by, now: system.now() });
  assert.deepEqual((await gone(stranger.accountId)).deleted, []);
  assert.deepEqual((await gone(own.accountId)).deleted, [uuid]);
  assert.deepEqual(rowsWith(place, "plum"), []);
  assert.deepEqual(seen(), before);
  const named = new Set(rowsWith(place, uuid).map(([table]) => table));
  assert.deepEqual([...named].toSorted(), ["audit_log", "events", "webhook_deliveries"],
    "that it was deleted is what names it");
  await storage.close();
  rmSync(place, { recursive: true });
});
