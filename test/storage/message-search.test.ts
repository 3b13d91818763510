// Search in messages, asked through the storage port of every engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Conversation } from "#features/conversations/records.ts";
import type { Storage } from "#storage/storage.ts";
import { createWorld, ENGINES, openFor, system } from "#support/databases/contract-world.ts";

const TEXTS = {
  refund: "Where is my 100% REFUND_please? I'd like it (now).",
  greeting: "Schöne Grüße aus der Straße in São Paulo",
  order: "Order A-1234, tel. +49 170 555, mail bo@example.com",
  japanese: "東京に行きます",
  quoted: 'She said "never again" AND left NOT happy',
};
type Name = keyof typeof TEXTS;

/** What is typed, and what it finds. */
const QUERIES: [query: string, found: Name[]][] = [
  ["refund", ["refund"]], ["REFUND", ["refund"]], ["refu", ["refund"]], ["fund", []],
  ["100%", ["refund"]], ["1%0", []], ["please refund", ["refund"]], ["refund order", []],
  ["i'd", ["refund"]], ["(now)", ["refund"]],
  ["grüße", ["greeting"]], ["gruße", ["greeting"]], ["GRUSSE", ["greeting"]],
  ["strasse", ["greeting"]], ["sao pau", ["greeting"]], ["Schöne strasse", ["greeting"]],
  ["a-1234", ["order"]], ["bo@example.com", ["order"]], ["49 170", ["order"]],
  ["東京", ["japanese"]], ["京東行", ["japanese"]], ["大阪", []],
  ['"never again"', ["quoted"]], ["AND", ["quoted"]], ["NOT happy", ["quoted"]],
  ["said AND", ["quoted"]], ["NEAR(said, 2)", []], ["words : said", []],
  ...["\"", "'", "*", "said*", "((", "a:b", ":1", "%", "\\", "^x", "--", "'; DROP TABLE", "\u0000",
    "🙂", "& | !", "<->", ":*", "said:*"]
    .map((query): [string, Name[]] => [query, /said/.test(query) ? ["quoted"] : []]),
];

for (const engine of ENGINES) {
  /** A visitor's message that nobody is asked to answer. */
  const written = async (storage: Storage, conversation: Conversation, text: string) => {
    const { accountId, uuid } = conversation;
    await storage.desk.moveDesk({
      accountId, uuid, move: "take", by: { role: "rule" }, reason: "taken_over",
      holder: { id: "key:1", name: "Ana" }, note: null, now: system.now(),
    });
    const stored = await createWorld(storage).begin(conversation, { text });
    assert.equal(stored.kind, "stored");
  };
  const found = async (
    storage: Storage, accountId: number, search: string,
  ): Promise<string[]> => (await storage.inbox.page({
    accountId, queue: "all", search, holderId: "", filter: {}, after: null, rows: 100,
  })).map(({ uuid }) => uuid).toSorted();

  test(`[DK19] ${engine.name}: a search finds the same messages on every engine, and never fails`, {
    skip: engine.skip ?? false,
  }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const first = await world.newConversation(0);
    const stranger = await world.newConversation(0);
    const names = new Map<string, Name>();
    for (const [name, text] of Object.entries(TEXTS) as [Name, string][]) {
      const conversation = await world.another(first);
      names.set(conversation.uuid, name);
      await written(storage, conversation, text);
    }
    await written(storage, stranger, Object.values(TEXTS).join("\n"));
    for (const [query, wanted] of QUERIES) {
      const uuids = await found(storage, first.accountId, query);
      assert.deepEqual(uuids.map((uuid) => names.get(uuid)), wanted, query);
      const listed = await storage.conversations.list(first.accountId, { search: query }, 0, 100);
      assert.deepEqual(listed.map(({ uuid }) => names.get(uuid)), wanted, `listed: ${query}`);
    }
    assert.deepEqual(await found(storage, stranger.accountId, "refund"), [stranger.uuid]);
  });

  test(`[DK20] ${engine.name}: each message is indexed once, in batches, and again on request`, {
    skip: engine.skip ?? false,
  }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const conversation = await world.newConversation(0);
    await Promise.all([1, 2, 3, 4, 5].map((number) =>
      written(storage, conversation, `number ${number}`)));
    const index = (rows: number) => storage.inbox.indexMessages(rows);
    const batches = [await index(2), await index(2), await index(2), await index(2)];
    assert.deepEqual(batches, [2, 2, 1, 0]);
    await written(storage, conversation, "number 6");
    assert.deepEqual([await index(9), await index(9), await index(9)], [1, 0, 0]);
    assert.deepEqual(await found(storage, conversation.accountId, "6"), [conversation.uuid]);
    await storage.inbox.forgetIndex();
    assert.deepEqual([await index(4), await index(4), await index(4)], [4, 2, 0]);
    assert.deepEqual(await found(storage, conversation.accountId, "number 3"), [conversation.uuid]);
  });
}
