// The desk and its inbox, asked through the storage port of every engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Author } from "#events/events.ts";
import type { InboxFilter, Queue } from "#features/conversations/desk/inbox.ts";
import { createWorld, ENGINES, openFor, PRICE, system, typesOf } from "#support/databases/contract-world.ts";

for (const engine of ENGINES) {
  const name = `[DK18] ${engine.name}: the desk and its inbox behave the same on every engine`;
  test(name, { skip: engine.skip ?? false }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const own = await world.newConversation(PRICE);
    const { accountId, uuid } = own;
    const ana = { id: "key:1", name: "Ana" };
    const now = system.now();
    const { turnId } = await world.started(own, { text: "Where is my 100% REFUND?" });
    const asked = await world.complete(
      turnId, own, { asks: { by: "assistant", reason: "asked", note: "Refund" } });
    assert.deepEqual(typesOf(asked),
      ["message_added", "balance_changed", "desk_changed", "note_added"]);
    const rows = (queue: Queue, search: string | null = null) => storage.inbox.page({
      accountId, queue, search, holderId: ana.id, filter: {}, after: null, rows: 9,
    });
    const [row] = await rows("waiting");
    assert.deepEqual([row?.uuid, row?.desk.reason, row?.last?.content, row?.since],
      [uuid, "asked", "At nine.", now]);
    for (const [search, found] of [["refund", 1], ["100%", 1], ["1%0", 0], ["\\", 0]] as const) {
      assert.equal((await rows("all", search)).length, found, search);
    }
    const next = { since: row?.since ?? 0, id: row?.id ?? 0 };
    assert.deepEqual(await storage.inbox.page(
      { accountId, queue: "all", search: null, holderId: ana.id, filter: {}, after: next, rows: 9 }), []);
    const say = (text: string) => storage.desk.say({
      accountId, uuid, author: ana, text, attachments: [], idempotencyKey: "k", messagesMax: 9, now,
    });
    assert.deepEqual(await say("Here"), { kind: "not_taken" });
    const move = { accountId, uuid, reason: "taken_over", note: null, now } as const;
    const taken = await storage.desk.moveDesk(
      { ...move, move: "take", by: { role: "operator", ...ana }, holder: ana });
    assert.ok(taken.kind === "moved");
    assert.deepEqual(typesOf(taken.events), ["desk_changed", "ai_toggled"]);
    assert.equal((await say("Here")).kind, "said");
    assert.equal((await say("Here")).kind, "repeated");
    assert.deepEqual(await say("There"), { kind: "key_reused" });
    assert.equal((await world.begin(own)).kind, "stored");
    assert.deepEqual(
      await storage.inbox.counts(accountId, ana.id), { waiting: 0, mine: 1, all: 1 });
    assert.equal((await rows("mine")).length, 1);
    assert.deepEqual((await storage.inbox.notes(own.id)).map(({ author, text }) => [author, text]),
      [[null, "Refund"]]);
    assert.deepEqual(typesOf(await storage.desk.end({ accountId, uuid, by: ana, now }) ?? []),
      ["conversation_ended", "desk_changed", "ai_toggled"]);
    const canned = { accountId, shortcut: "hours", text: "9 to 5", max: 1, now };
    const saved = await storage.inbox.saveCannedReply({ ...canned, id: null });
    assert.ok(saved.kind === "saved");
    assert.equal((await storage.inbox.saveCannedReply({ ...canned, id: null })).kind, "name_taken");
    assert.equal((await storage.inbox.saveCannedReply(
      { ...canned, id: null, shortcut: "more" })).kind, "too_many");
    assert.equal((await storage.inbox.saveCannedReply(
      { ...canned, id: saved.reply.id, text: "10 to 4" })).kind, "saved");
    const kept = await storage.inbox.cannedReplies(accountId);
    assert.deepEqual(kept.map(({ text }) => text), ["10 to 4"]);
    assert.equal(await storage.inbox.removeCannedReply({ accountId, id: saved.reply.id }), true);
    assert.equal(await storage.inbox.removeCannedReply({ accountId, id: saved.reply.id }), false);
    const browser = { accountId, person: ana.id, publicKey: "B", auth: "A", max: 2, now };
    for (const endpoint of ["one", "two", "one", "three"]) {
      await storage.push.add({ ...browser, endpoint });
    }
    const browsers = () => storage.push.list(accountId);
    const endpoints = async () => (await browsers()).map(({ endpoint }) => endpoint);
    assert.deepEqual(await endpoints(), ["three", "one"], "the newest, each once");
    await storage.push.add({ ...browser, person: "key:2", endpoint: "one" });
    await storage.push.remove({ accountId, endpoint: "three" });
    assert.deepEqual((await browsers()).map(({ id, ...row }) => row),
      [{ endpoint: "one", person: "key:2", publicKey: "B", auth: "A" }]);
    // Deleted: its words are in the index until then.
    await storage.inbox.indexMessages(100);
    assert.equal((await rows("all", "refund")).length, 1);
    const by = { actor: { kind: "key", ...ana }, address: null } as const;
    const label = await storage.labels.create({ accountId, name: "Old", color: null });
    assert.ok(label.kind === "saved");
    const many = { accountId, uuids: [uuid, system.uuid()], by, now };
    const given = { ...many, labelId: label.group.id };
    assert.deepEqual(await storage.bulk.label({ ...given, isTaken: false }),
      { kind: "labelled", changed: [uuid] });
    assert.deepEqual(await storage.bulk.label({ ...given, isTaken: false }),
      { kind: "labelled", changed: [] });
    assert.deepEqual(await storage.bulk.label({ ...given, labelId: 999, isTaken: true }),
      { kind: "no_such_label" });
    const gone = await storage.bulk.delete(many);
    assert.deepEqual([gone.deleted, gone.busy, typesOf(gone.events)],
      [[uuid], [], ["conversation_deleted"]]);
    assert.equal((await rows("all", "refund")).length, 0);
    assert.equal(await storage.conversations.find(uuid), null);
    assert.deepEqual((await storage.bulk.delete(many)).deleted, []);
  });

  test(`[DK26] ${engine.name}: callbacks, reads and labels behave the same on every engine`, {
    skip: engine.skip ?? false,
  }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const own = await world.newConversation(PRICE);
    const { accountId, uuid } = own;
    const foreign = (await world.newConversation(0)).accountId;
    const ana = { id: "key:1", name: "Ana" };
    const now = system.now();
    const wish = { name: "Bo", phone: "123", email: null, wish: null, time: null, away: null, now };
    const first = await storage.callbacks.request({ accountId, uuid, ...wish });
    assert.deepEqual(typesOf(first?.events ?? []), ["callback_requested", "desk_changed"]);
    const again = await storage.callbacks.request({ accountId, uuid, ...wish, name: "Bob" });
    assert.deepEqual(typesOf(again?.events ?? []), ["callback_requested"]);
    assert.deepEqual([again?.callback.id, again?.callback.name], [first?.callback.id, "Bob"]);
    assert.equal(await storage.callbacks.request({ accountId: foreign, uuid, ...wish }), null);
    const label = await storage.labels.create({ accountId, name: "Refunds", color: "teal" });
    assert.ok(label.kind === "saved");
    const labelIds = [label.group.id];
    const set = { accountId, uuid, labelIds };
    assert.equal(await storage.inbox.label({ ...set, accountId: foreign }), "not_found");
    assert.equal(await storage.inbox.label({ ...set, labelIds: [99] }), "no_such_label");
    assert.equal(await storage.inbox.label(set), "labelled");
    const page = (filter: InboxFilter) => storage.inbox.page({
      accountId, queue: "all", search: null, holderId: ana.id, filter, after: null, rows: 9,
    });
    await world.begin(own);
    const [row] = await page({ labelId: labelIds[0], hasCallback: true, isUnread: true });
    assert.deepEqual([row?.labels, row?.callback, row?.isUnread], [
      [{ id: labelIds[0], name: "Refunds", color: "teal" }], again?.callback, true,
    ]);
    const read = (author: typeof ana | null) =>
      storage.reading.read({ accountId, uuid, author, now });
    assert.deepEqual(await read(null), [], "no person has written");
    assert.deepEqual(typesOf(await read(ana) ?? []), ["conversation_read"]);
    assert.deepEqual(await read(ana), []);
    assert.equal(await storage.reading.read({ accountId: foreign, uuid, author: ana, now }), null);
    assert.deepEqual(await page({ isUnread: true }), []);
    const finish = { accountId, uuid, author: ana, now };
    assert.equal(await storage.callbacks.finish({ ...finish, accountId: foreign }), null);
    assert.equal((await storage.callbacks.finish(finish))?.callback.doneAt, now);
    assert.equal(await storage.callbacks.finish(finish), null);
    assert.equal((await storage.callbacks.list(own.id)).length, 1);
    await storage.labels.remove({ accountId, groupId: labelIds[0] ?? 0, rows: 9, now });
    const left = (await page({})).map(({ labels, callback }) => [labels, callback]);
    assert.deepEqual(left, [[[], null]]);
  });
}

for (const engine of ENGINES) {
  const name = `[DK241] ${engine.name}: conversations are abandoned by who may no longer answer`;
  test(name, { skip: engine.skip ?? false }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const own = await world.newConversation(PRICE);
    const { accountId, assistantId, uuid } = own;
    const now = system.now();
    const by = { actor: { kind: "key", id: "key:1", name: "Ana" }, address: null } as const;
    const key = await storage.accounts.createKey({
      accountId, name: "Ana", secretHash: "", scopes: [], role: "owner", expiresAt: now + 1, by, now,
    });
    const abandoned = (at: number) => storage.desk.abandoned({ now: at, rows: 9 });
    const move = { accountId, uuid, note: null, now } as const;
    const give = (holder: Author) => storage.desk.moveDesk({
      ...move, move: "assign", by: { role: "rule" }, reason: "assigned", holder });
    const lose = (holder: Author) => storage.desk.moveDesk({
      ...move, move: "lose", by: { role: "rule" }, reason: "lost", holder });
    const ana = { id: `key:${key.id}`, name: "Ana" };
    await give(ana);
    assert.deepEqual(await abandoned(now), [], "in force");
    assert.deepEqual(await abandoned(now + 1), [{ accountId, uuid, assistantId, holder: ana }]);
    await storage.accounts.revokeKey({ accountId, keyId: key.id, by, now });
    assert.equal((await abandoned(now)).length, 1, "revoked");
    const ben = await storage.users.add({
      accountId, email: "ben@example.org", name: "Ben", role: "operator", passwordHash: null,
      subject: null, address: null, now,
    } as never);
    assert.ok(ben);
    const holder = { id: `user:${ben.id}`, name: "Ben" };
    await give(holder);
    const late = await lose(ana);
    assert.ok(late.kind === "moved");
    assert.deepEqual([late.desk.holder, late.events], [holder, []], "Ben has it by now");
    assert.deepEqual(await abandoned(now + 1), []);
    const other = await world.newConversation(PRICE);
    await storage.desk.moveDesk({
      ...move, accountId: other.accountId, uuid: other.uuid, move: "assign", by: { role: "rule" },
      reason: "assigned", holder,
    });
    assert.deepEqual((await abandoned(now)).map((row) => row.uuid), [other.uuid], "a stranger's");
    const manager = { userId: null, role: "owner" } as const;
    const change = { accountId, userId: ben.id, manager, by, name: null, now } as const;
    await storage.users.change({ ...change, role: "viewer" });
    assert.equal((await abandoned(now)).length, 2, "a viewer");
    await storage.users.change({ ...change, role: "operator" });
    await storage.users.remove({ accountId, userId: ben.id, manager, by, now });
    assert.equal((await abandoned(now)).length, 2, "removed");
    const lost = await lose(holder);
    assert.ok(lost.kind === "moved");
    assert.deepEqual([lost.desk.state, typesOf(lost.events)],
      ["waiting", ["desk_changed", "ai_toggled"]]);
    assert.equal((await abandoned(now)).length, 1);
  });

  test(`[DK403] ${engine.name}: a waiting conversation that the assistant ends waits no more`, {
    skip: engine.skip ?? false,
  }, async (context) => {
    const storage = await openFor(context, engine);
    const world = createWorld(storage);
    const conversation = await world.newConversation(PRICE);
    const asks = { by: "rule", reason: "words", note: null } as const;
    const { turnId } = await world.started(conversation, { asks });
    const desk = async () => (await storage.conversations.find(conversation.uuid))?.desk.state;
    assert.equal(await desk(), "waiting");
    const events = await world.complete(turnId, conversation, { ends: true });
    assert.deepEqual(typesOf(events),
      ["message_added", "balance_changed", "conversation_ended", "desk_changed"]);
    assert.equal(await desk(), "assistant");
  });
}
