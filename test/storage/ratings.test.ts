// Ratings of replies and conversations, asked through the storage port of every engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, ENGINES, openFor, PRICE, system, typesOf } from "#support/contract-world.ts";

for (const engine of ENGINES) {
  const name = `[WG215] ${engine.name}: a reply and a conversation can be rated, each once, by whoever has access`;
  test(name, { skip: engine.skip ?? false }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const own = await world.newConversation(PRICE);
    const other = await world.newConversation(PRICE);
    const { accountId, uuid, id } = own;
    const { turnId } = await world.started(own, { text: "When?" });
    const now = system.now();
    const rate = (rating: "up" | "down" | null, changes: object = {}) =>
      storage.ratings.rateReply({ accountId, uuid, turnId, rating, now, ...changes });
    assert.equal(await rate("up"), null);
    await world.complete(turnId, own);
    const ratings = async () =>
      (await storage.conversations.history(id)).map(({ rating }) => rating);
    assert.deepEqual(typesOf(await rate("up") ?? []), ["reply_rated"]);
    assert.deepEqual(await rate("up"), []);
    assert.deepEqual(await ratings(), [null, "up"]);
    assert.deepEqual(typesOf(await rate("down") ?? []), ["reply_rated"]);
    assert.deepEqual(await ratings(), [null, "down"]);
    assert.deepEqual(typesOf(await rate(null) ?? []), ["reply_rated"]);
    assert.deepEqual(await ratings(), [null, null]);
    for (const wrong of [{ turnId: turnId + 1 }, { uuid: other.uuid, accountId: other.accountId },
      { accountId: other.accountId }]) {
      assert.equal(await rate("up", wrong), null);
    }
    const score = (comment: string | null, of = accountId) =>
      storage.ratings.rateConversation({ accountId: of, uuid, score: 4, comment, now });
    assert.equal(await score("Fine", other.accountId), null);
    assert.deepEqual(typesOf(await score("Fine") ?? []), ["conversation_rated"]);
    const found = await storage.conversations.summary(accountId, uuid);
    assert.deepEqual(found?.satisfaction, { score: 4, comment: "Fine", at: now });
    await score(null);
    const again = await storage.conversations.summary(accountId, uuid);
    assert.deepEqual(again?.satisfaction, { score: 4, comment: null, at: now });
  });
}
