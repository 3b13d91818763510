// What every engine owes to the rest of the program, asked through the storage port alone: what is
// charged and what is not, what a command that throws leaves behind, and the order of events.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { auditAccount, type LedgerEntry } from "#features/accounts/money/ledger.ts";
import { utcDay } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createWorld, ENGINES, openFor, PRICE, system, typesOf } from "#support/databases/contract-world.ts";
import { testDataDir } from "#support/server.ts";

for (const engine of ENGINES) {
  if (engine.skip) {
    test(`[SO1] ${engine.name}: what every engine owes`, { skip: engine.skip });
    continue;
  }
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);

  test(`[SO1] ${engine.name}: a turn reserves its price, and its reply is charged once`, async () => {
    const conversation = await world.newConversation(25_000);
    const { accountId } = conversation;
    const { turnId, priceMicros, events } = await world.started(conversation);
    assert.deepEqual([priceMicros, typesOf(events)], [PRICE, ["message_added"]]);
    assert.deepEqual(await world.money(accountId), [25_000, PRICE]);
    assert.deepEqual(typesOf(await world.complete(turnId, conversation)),
      ["message_added", "balance_changed"]);
    assert.deepEqual(await world.money(accountId), [15_000, 0]);
    const summary = await storage.conversations.summary(accountId, conversation.uuid);
    assert.equal(summary?.totalCostMicros, PRICE);
    await assert.rejects(world.complete(turnId, conversation), /not open/);
    assert.deepEqual(await world.fail(turnId, conversation), [], "what was charged stays");
    assert.deepEqual(await world.money(accountId), [15_000, 0]);
    assert.deepEqual(await world.said(conversation), ["When?", "At nine."]);
  });

  test(`[SO18] ${engine.name}: the account's log always reads as it was published, wherever a page ends`, async () => {
    const conversation = await world.newConversation(5 * PRICE);
    const { accountId } = conversation;
    const answered: CommittedEvent[] = [];
    for (const ends of [false, false, true]) {
      const begun = await world.started(conversation);
      answered.push(...begun.events, ...await world.complete(begun.turnId, conversation, { ends }));
    }
    const first = answered[0]?.accountSequence ?? 0;
    assert.deepEqual(answered.map(({ accountSequence }) => accountSequence),
      answered.map((_, index) => first + index));
    assert.equal(await storage.events.newestOfAccount(accountId), first + answered.length - 1);
    for (let after = first - 1; after < first + answered.length; after += 1) {
      const rest = answered.slice(after - first + 1);
      for (let rows = 1; rows <= answered.length; rows += 1) {
        assert.deepEqual(
          await storage.events.ofAccount(accountId, after, rows), rest.slice(0, rows));
      }
    }
    const ofIts = answered.filter(({ conversationId }) => conversationId !== null);
    assert.deepEqual(
      await storage.events.ofConversation(conversation.uuid, (ofIts[0]?.sequence ?? 0) - 1, 100),
      ofIts);
    const newest = await storage.events.newestOfAccount(accountId);
    assert.deepEqual([...await storage.events.heads([accountId, 1e9])], [[accountId, newest]]);
    assert.deepEqual([...await storage.events.heads([])], []);
  });

  test(`[SO2] ${engine.name}: a failed turn releases its reservation, once`, async () => {
    const conversation = await world.newConversation(PRICE);
    const { turnId } = await world.started(conversation);
    const other = await world.another(conversation);
    assert.deepEqual(await world.begin(other), { kind: "balance_too_low" });
    assert.deepEqual(await world.said(other), [], "a refused message is not stored");
    assert.deepEqual(typesOf(await world.fail(turnId, conversation)), ["reply_failed"]);
    assert.deepEqual(await world.fail(turnId, conversation), []);
    assert.deepEqual(await world.money(conversation.accountId), [PRICE, 0]);
    assert.deepEqual(await world.said(conversation), ["When?"]);
  });

  test(`[SO3] ${engine.name}: a key answers with the outcome of its first send`, async () => {
    const conversation = await world.newConversation(50_000);
    const keyed = { idempotencyKey: "k", requestHash: "a" };
    const { turnId } = await world.started(conversation, keyed);
    const running = await world.begin(conversation, keyed);
    assert.ok(running.kind === "running" && running.nodeId === storage.nodeId());
    await world.fail(turnId, conversation);
    const again = await world.started(conversation, keyed);
    assert.deepEqual([again.turnId, again.events], [turnId, []], "the message is there already");
    await world.complete(turnId, conversation);
    const repeated = await world.begin(conversation, keyed);
    assert.ok(repeated.kind === "repeated" && repeated.turnId === turnId);
    assert.equal(repeated.reply?.content, "At nine.");
    assert.deepEqual(
      await world.begin(conversation, { ...keyed, requestHash: "b" }), { kind: "key_reused" });
    assert.deepEqual(await world.money(conversation.accountId), [40_000, 0]);
    assert.deepEqual(await world.said(conversation), ["When?", "At nine."]);
  });

  test(`[SO50] ${engine.name}: a retried reply uses current price, day and limits, and adds no message of its own`, async () => {
    const conversation = await world.newConversation(3 * PRICE);
    const { accountId } = conversation;
    const keyed = { idempotencyKey: "k", messagesMax: 2 };
    const { turnId } = await world.started(conversation, keyed);
    await world.fail(turnId, conversation);
    assert.deepEqual(await world.begin(conversation, { ...keyed, dailyCapMicros: PRICE - 1 }),
      { kind: "daily_cap_reached" });
    assert.deepEqual(await world.begin(conversation, { ...keyed, messagePriceMicros: 4 * PRICE }),
      { kind: "balance_too_low" });
    const now = system.now() + 86_400_000_000;
    const then = {
      ...keyed, messagePriceMicros: 2 * PRICE, dailyCapMicros: 2 * PRICE, day: utcDay(now), now,
    };
    await world.started(conversation, then);
    assert.deepEqual(await world.money(accountId), [3 * PRICE, 2 * PRICE]);
    await world.fail(turnId, conversation);
    // What failed was taken off the day of the second try, so that its cap has room for a third.
    assert.equal((await world.started(conversation, then)).turnId, turnId);
    await world.complete(turnId, conversation);
    assert.deepEqual(await world.money(accountId), [PRICE, 0]);
    const told = await storage.events.ofAccount(accountId, 0, 100);
    assert.deepEqual(
      told.map(({ accountSequence }) => accountSequence), told.map((_, index) => index + 1));
  });

  test(`[CV502] ${engine.name}: after a deletion the account's log no longer says why replies failed, even if retried`, async () => {
    const conversation = await world.newConversation(3 * PRICE);
    const other = await world.another(conversation);
    const { accountId, uuid } = conversation;
    const keyed = { idempotencyKey: "k" };
    const cause = { failure: "model_failed" as const, error: "no plum" };
    for (const one of [conversation, other]) {
      await world.fail((await world.started(one, keyed)).turnId, one, { cause });
    }
    const { turnId } = await world.started(conversation, keyed);
    await world.complete(turnId, conversation);
    const by = { actor: { kind: "key", id: "key:1", name: "Ana" }, address: null } as const;
    const given = { accountId, uuids: [uuid], by, now: system.now() };
    const { deleted } = await storage.bulk.delete(given);
    assert.deepEqual(deleted, [uuid]);
    const told = await storage.events.ofAccount(accountId, 0, 100);
    assert.deepEqual(told.filter(({ json }) => json.includes("plum")).map(({ json }) =>
      (JSON.parse(json) as { conversation_id: string }).conversation_id), [other.uuid]);
  });

  test(`[SO51] ${engine.name}: late results for a closed turn do not affect the next one`, async () => {
    const conversation = await world.newConversation(5 * PRICE);
    const { accountId } = conversation;
    const { turnId: closed } = await world.started(conversation);
    await world.fail(closed, conversation);
    const { turnId } = await world.started(conversation);
    await assert.rejects(world.complete(closed, conversation), /not open/);
    assert.deepEqual(await world.fail(closed, conversation), []);
    assert.deepEqual(await world.money(accountId), [5 * PRICE, PRICE]);
    await world.complete(turnId, conversation);
    assert.deepEqual(await world.money(accountId), [4 * PRICE, 0]);
  });

  test(`[SO52] ${engine.name}: an ended conversation reopens with a message or a reply in it, and no other does`, async () => {
    const conversation = await world.newConversation(5 * PRICE);
    const { accountId, uuid } = conversation;
    const other = await world.another(conversation);
    const states = () => Promise.all([conversation, other].map(async (one) =>
      (await storage.conversations.find(one.uuid))?.state));
    for (const one of [conversation, other]) {
      const { turnId } = await world.started(one);
      await world.complete(turnId, one, { ends: true });
    }
    assert.deepEqual(await states(), ["ended", "ended"]);
    const end = async (turn: Promise<{ turnId: number }>) => {
      const { turnId } = await turn;
      assert.deepEqual(await states(), ["open", "ended"]);
      await storage.desk.end({ accountId, uuid, by: { id: "key:1", name: "Ana" }, now: system.now() });
      assert.deepEqual(await states(), ["ended", "ended"]);
      return turnId;
    };
    await world.complete(await end(world.started(conversation)), conversation);
    assert.deepEqual(await states(), ["open", "ended"]);
    await world.fail(await end(world.started(conversation)), conversation);
    assert.deepEqual(await states(), ["open", "ended"]);
  });

  test(`[SO53] ${engine.name}: a turn says where its reply starts in the log, and a request for a person returns its events`, async () => {
    const conversation = await world.newConversation(5 * PRICE);
    const keyed = { idempotencyKey: "k" };
    const newest = () => storage.events.newestOfConversation(conversation.uuid);
    const asks = { by: "rule", reason: "words", note: null } as const;
    const before = await newest();
    const first = await world.started(conversation, keyed);
    assert.deepEqual([first.baseSequence, await newest()], [before + 1, before + 1]);
    const running = await world.begin(conversation, keyed);
    // Its message too: whoever comes back under the key may have seen nothing yet.
    assert.equal(running.kind === "running" && running.baseSequence, before);
    const { turnId } = first;
    assert.deepEqual(typesOf(await world.fail(turnId, conversation, { asks })),
      ["reply_failed", "desk_changed"]);
    const again = await world.started(conversation, keyed);
    const joined = await world.begin(conversation, keyed);
    assert.equal(joined.kind === "running" && joined.baseSequence, await newest());
    assert.equal(again.baseSequence, await newest());
    await world.complete(turnId, conversation);
    const other = await world.another(conversation);
    const { events, baseSequence } = await world.started(other, { asks });
    assert.deepEqual(typesOf(events), ["message_added", "desk_changed"]);
    assert.equal(baseSequence, await storage.events.newestOfConversation(other.uuid));
  });

  test(`[SO4] ${engine.name}: a daily cap, a full conversation and a deleted one refuse before anything is written`, async () => {
    const conversation = await world.newConversation(50_000);
    const capped = { dailyCapMicros: 15_000 };
    const { turnId } = await world.started(conversation, capped);
    const other = await world.another(conversation);
    assert.deepEqual(await world.begin(other, capped), { kind: "daily_cap_reached" });
    await world.fail(turnId, conversation);
    await world.started(conversation, capped);
    assert.deepEqual(
      await world.begin(conversation, { messagesMax: 3 }), { kind: "conversation_full" });
    assert.deepEqual(
      await world.begin(conversation, { conversationUuid: system.uuid() }), { kind: "not_found" });
    assert.deepEqual(await world.money(conversation.accountId), [50_000, PRICE]);
    assert.deepEqual(await world.said(conversation), ["When?", "When?"]);
    assert.equal((await world.begin(conversation, { messagesMax: 4 })).kind, "started");
  });

  test(`[SO5] ${engine.name}: of concurrent commands, one that throws rolls back itself only`, async () => {
    const [one, two] = [await world.newConversation(PRICE), await world.newConversation(PRICE)];
    const [first, second] = [await world.started(one), await world.started(two)];
    const outcomes = await Promise.allSettled([
      world.complete(first.turnId, one),
      world.complete(first.turnId, one, { text: "Twice." }),
      world.complete(second.turnId, two),
      storage.accounts.credit({
        accountId: two.accountId, amountMicros: 5, reference: system.uuid(), now: system.now(),
      }),
    ]);
    assert.deepEqual(outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    assert.deepEqual(await world.said(one), ["When?", "At nine."]);
    assert.deepEqual(await world.said(two), ["When?", "At nine."]);
    assert.deepEqual(
      [await world.money(one.accountId), await world.money(two.accountId)], [[0, 0], [5, 0]]);
  });

  test(`[SO6] ${engine.name}: of concurrent turns, as many start as can be paid`, async () => {
    const conversation = await world.newConversation(3 * PRICE);
    const conversations = [conversation];
    while (conversations.length < 10) conversations.push(await world.another(conversation));
    const begun = await Promise.all(conversations.map((one) => world.begin(one)));
    const kinds = begun.map(({ kind }) => kind);
    assert.deepEqual(
      [kinds.filter((kind) => kind === "started").length,
        kinds.filter((kind) => kind === "balance_too_low").length], [3, 7]);
    assert.deepEqual(await world.money(conversation.accountId), [3 * PRICE, 3 * PRICE]);
  });

  test(`[SO7] ${engine.name}: events of an account and of a conversation are numbered without gaps, in order of occurrence`, async () => {
    const conversation = await world.newConversation(50_000);
    const { accountId, uuid } = conversation;
    await Promise.all([conversation, await world.another(conversation)].map(async (one) => {
      const { turnId } = await world.started(one);
      await world.complete(turnId, one);
    }));
    const { turnId } = await world.started(conversation);
    await world.complete(turnId, conversation, { ends: true });
    const told = await storage.events.ofAccount(accountId, 0, 100);
    assert.deepEqual(
      told.map(({ accountSequence }) => accountSequence), told.map((_, index) => index + 1));
    assert.equal(await storage.events.newestOfAccount(accountId), told.length);
    assert.deepEqual(typesOf(told).slice(-4),
      ["message_added", "message_added", "balance_changed", "conversation_ended"]);
    const own = await storage.events.ofConversation(uuid, 0, 100);
    assert.deepEqual(own.map(({ sequence }) => sequence), own.map((_, index) => index + 1));
    assert.equal(await storage.events.newestOfConversation(uuid), own.length);
    assert.deepEqual(await storage.events.ofConversation(uuid, own.length - 1, 100), own.slice(-1));
    assert.deepEqual(told.filter(({ conversationId }) => conversationId === uuid), own);
  });

  test(`[SO8] ${engine.name}: ids are never reused, even when the newest row is deleted`, async () => {
    const { accountId } = await world.newConversation(0);
    const now = system.now();
    const named = { accountId, name: "N", description: null, now };
    const groups = [storage.folders, storage.labels].map((groups) => async () => {
      const made = await groups.create({ accountId, name: "G", color: null });
      assert.ok(made.kind === "saved");
      await groups.remove({ accountId, groupId: made.group.id, rows: 100, now });
      return made.group.id;
    });
    const makes = [...groups, async () => {
      const { id: knowledgebaseId } = await storage.knowledgebases.create(named);
      await storage.knowledgebases.remove({ accountId, knowledgebaseId, rows: 100, now });
      return knowledgebaseId;
    }];
    for (const make of makes) assert.ok(await make() < await make());
  });

  test(`[SO14] ${engine.name}: commands that name another account's rows change none of them`, async () => {
    const own = await world.newConversation(50_000);
    const { accountId: stranger } = await world.newConversation(50_000);
    const { accountId } = own;
    const { turnId } = await world.started(own);
    const now = system.now();
    const begun = await storage.calls.create({
      accountId, type: "web", assistant: { id: own.assistantId, uuid: "" }, conversationUuid: null,
      assistantPhone: null, customerPhone: null, variables: {}, origin: null, now,
      dialling: { countries: [], perMinute: null }, parallelMax: 9, reserveMinMicros: 1,
      reserveMaxMicros: 1000, priceMicrosPerMinute: 1000,
    } as never);
    assert.ok(begun.kind === "created");
    const callId = begun.call.id;
    const { id: knowledgebaseId } = await storage.knowledgebases.create(
      { accountId, name: "N", description: null, now });
    const made = await storage.knowledgebases.createDocument({
      accountId, knowledgebaseId, name: "D", description: null, type: "txt",
      source: { files: [] }, documentsMax: 9, now,
    } as never);
    assert.ok(made.kind === "created");
    const documentId = made.document.id;
    const endpoint = await storage.webhooks.createEndpoint(
      { accountId, url: "https://example.org", events: ["*"], max: 9, now });
    assert.ok(endpoint);
    const test = { type: "test", body: {}, now };
    const delivery = await storage.webhooks.enqueue(
      { accountId, endpointId: endpoint.id, ...test });
    assert.ok(delivery);
    const journaled = await storage.toolJournal.begin(
      { scope: own.uuid, callKey: "k", accountId, toolId: 0, now });
    assert.ok(journaled.kind === "started");
    const seen = async () => ({
      money: [await world.money(accountId), await world.money(stranger)],
      newest: [
        await storage.events.newestOfAccount(accountId),
        await storage.events.newestOfAccount(stranger),
      ],
      call: await storage.calls.snapshot(callId),
      documents: await storage.knowledgebases.documents(knowledgebaseId),
      passages: await storage.knowledgebases.passages(knowledgebaseId, 9),
      deliveries: await storage.webhooks.deliveries(accountId, {}, 0, 9),
      endpoints: await storage.webhooks.endpoints(accountId),
      said: await world.said(own),
      assistant: await storage.assistants.findById(own.assistantId),
    });
    const before = await seen();
    const call = { accountId: stranger, callId, now };
    const entry = {
      speaker: "customer" as const, text: "x", startMs: 0, endMs: 1, interrupted: false,
      functionCalls: [],
    };
    const document = { accountId: stranger, documentId };
    await storage.calls.change({ ...call, to: "in-progress", reason: "customer_hung_up" });
    await storage.calls.setVariables({ ...call, variables: { a: "b" } });
    await storage.calls.addTranscript({ ...call, entry });
    await storage.calls.failTransfer({ ...call, failureReason: "x" });
    await storage.calls.beat({ calls: [{ id: callId, accountId: stranger }], now });
    assert.equal((await storage.calls.delete(call)).kind, "not_found");
    assert.equal(await storage.knowledgebases.beginReading(document), false);
    await storage.knowledgebases.addChunks({
      ...document, position: 0, chunks: [{ text: "x", headings: [], page: null, url: null }],
    });
    await storage.knowledgebases.finishReading({
      ...document, outcome: { kind: "failed", reason: "x" }, now,
    });
    await storage.webhooks.prepared(
      { accountId: stranger, deliveryId: delivery.id, body: "{}" });
    await storage.webhooks.record({
      accountId: stranger, deliveryId: delivery.id, outcome: "dead", nextAt: now, status: 500,
      endpoint, error: "x", response: null, disables: "x", now,
    });
    assert.equal(await storage.webhooks.enqueue(
      { accountId: stranger, endpointId: endpoint.id, ...test }), null);
    await storage.assistants.setTools(
      { accountId: stranger, assistantId: own.assistantId, tools: [{ type: "end_call" }], now });
    await storage.toolJournal.finish(
      { accountId: stranger, id: journaled.id, result: {}, sent: true, now });
    const foreign = { ...own, accountId: stranger };
    assert.deepEqual(await world.begin(foreign), { kind: "not_found" });
    await assert.rejects(world.complete(turnId, foreign));
    assert.deepEqual(await world.fail(turnId, foreign), [], "no turn of theirs is open");
    const author = { id: "key:1", name: "S" };
    const theirs = { accountId: stranger, uuid: own.uuid, author, now };
    assert.deepEqual(await storage.desk.moveDesk({
      ...theirs, move: "take", by: { role: "operator", ...author }, reason: "taken_over",
      holder: author, note: "x",
    }), { kind: "not_found" });
    assert.deepEqual(await storage.desk.say(
      { ...theirs, text: "x", attachments: [], idempotencyKey: null, messagesMax: 9 }), { kind: "not_found" });
    assert.equal(await storage.desk.end({ ...theirs, by: author }), null);
    assert.deepEqual(await seen(), before);
    assert.deepEqual(await storage.toolJournal.begin(
      { scope: own.uuid, callKey: "k", accountId, toolId: 0, now }), { kind: "unknown" });
    await world.complete(turnId, own);
  });

  test(`[SO9] ${engine.name}: a starting server closes the turns of a dead one and releases their reservations`, async () => {
    const left = testDataDir();
    const dying = await engine.open(left);
    const before = createWorld(dying);
    const conversation = await before.newConversation(PRICE);
    const { turnId } = await before.started(conversation, { idempotencyKey: "k" });
    await dying.close();
    const next = await engine.open(left);
    const world = createWorld(next);
    assert.deepEqual(await world.money(conversation.accountId), [PRICE, PRICE]);
    const events = await next.conversations.recover({ now: system.now() });
    assert.deepEqual(typesOf(events), ["reply_failed"]);
    assert.deepEqual(await world.money(conversation.accountId), [PRICE, 0]);
    const again = await world.started(conversation, { idempotencyKey: "k" });
    assert.equal(again.turnId, turnId);
    await world.complete(turnId, conversation);
    assert.deepEqual(await world.money(conversation.accountId), [0, 0]);
    await next.close();
    rmSync(left, { recursive: true });
  });

  test(`[SO16] ${engine.name}: a snapshot read stays at its moment, whatever is written meanwhile`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const credit = (count: number) => storage.accounts.credit({
      accountId, amountMicros: PRICE, reference: `moment:${accountId}.${count}`, now: system.now(),
    });
    const balance = async () => (await storage.accounts.findAccount(accountId))?.balanceMicros;
    let seen: unknown = null;
    await storage.ledger.audit(async (totals, entries, open) => {
      if (totals.accountId !== accountId) return;
      await credit(1);
      const before = await balance();
      await credit(2);
      const found: LedgerEntry[] = [];
      for await (const entry of entries) found.push(entry);
      assert.deepEqual(await auditAccount(totals, found, open), []);
      seen = [before, found.length, await balance()];
    });
    assert.deepEqual(seen, [2 * PRICE, 1, 3 * PRICE], "other reads go on meanwhile");
  });

  test(`[SO17] ${engine.name}: reads requested after closing reject`, async () => {
    const place = testDataDir();
    const ended = await engine.open(place);
    await ended.close();
    await assert.rejects(ended.accounts.listAccounts());
    await assert.rejects(ended.conversations.find("x"));
    await assert.rejects(ended.statements.claims(1));
    await ended.close();
    rmSync(place, { recursive: true });
  });
}
