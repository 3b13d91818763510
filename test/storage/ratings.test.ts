// Ratings and evaluations of conversations, asked through the storage port of every engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import { createWorld, ENGINES, openFor, PRICE, system, typesOf } from "#support/databases/contract-world.ts";

const EVALUATED = {
  post_call_evaluation: true, post_call_schema: [{ name: "goal" }],
} as unknown as AssistantSettings;

for (const engine of ENGINES) {
  const whole = `[WG561] ${engine.name}: a history says which turn wrote each reply, and where in the log it ends`;
  test(whole, { skip: engine.skip ?? false }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const { id, uuid, ...own } = await world.newConversation(PRICE);
    const conversation = { id, uuid, ...own };
    const history = async () => {
      const { messages, turnIds, sequence } = await storage.conversations.history(id);
      const events = await storage.events.ofConversation(uuid, sequence, 100);
      assert.deepEqual(events, [], "the history is of the log's end");
      return messages.map(({ role }, at) => [role, turnIds[at]]);
    };
    assert.deepEqual(await history(), []);
    const failed = await world.started(conversation);
    await world.fail(failed.turnId, conversation);
    const { turnId } = await world.started(conversation);
    await world.complete(turnId, conversation);
    assert.deepEqual(await history(), [["user", null], ["user", null], ["assistant", turnId]]);
    const { sequence } = await storage.conversations.history(id);
    const events = await storage.events.ofConversation(uuid, 0, 100);
    assert.equal(events.at(-1)?.sequence, sequence);
  });

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
      (await storage.conversations.history(id)).messages.map(({ rating }) => rating);
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

  const evaluation = `[CV1078] ${engine.name}: the evaluation of a conversation that ended again meanwhile is dropped`;
  test(evaluation, { skip: engine.skip ?? false }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const { accountId } = await world.newConversation(9 * PRICE);
    const { accountId: others } = await world.newConversation(0);
    const made = await storage.assistants.create({
      uuid: system.uuid(), accountId, now: system.now(), settings: EVALUATED, assistantsMax: 9,
      columns: {
        name: "A", type: "inbound", status: "active", mode: "pipeline", folderId: null,
        phoneNumberId: null, labelIds: [],
      },
    });
    assert.ok(made.kind === "created");
    const { assistantId } = made;
    const conversation = await world.another({ accountId, assistantId });
    const { id, uuid } = conversation;
    const endedAt = async (now: number): Promise<number> => {
      const { turnId } = await world.started(conversation, { now });
      await world.complete(turnId, conversation, { ends: true, now });
      return (await storage.evaluations.due(9))[0]?.endedAt ?? 0;
    };
    const [first, second] = [await endedAt(system.now()), await endedAt(system.now() + 1)];
    assert.equal(second - first, 1);
    const evaluated = (how: { accountId?: number; endedAt: number }) =>
      storage.evaluations.evaluated({
        accountId, id, uuid, assistantId, values: { goal: 1 }, error: null, now: second, ...how,
      });
    assert.deepEqual(await evaluated({ endedAt: first }), []);
    assert.deepEqual(await evaluated({ endedAt: second, accountId: others }), []);
    assert.deepEqual(await storage.evaluations.find(uuid), { isDue: true, values: {} });
    assert.deepEqual(
      typesOf(await evaluated({ endedAt: second })), ["conversation_evaluated"]);
    assert.deepEqual(await storage.evaluations.find(uuid), { isDue: false, values: { goal: 1 } });
    assert.deepEqual(await evaluated({ endedAt: second }), []);
  });
}
