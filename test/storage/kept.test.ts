// What is kept, for how long and of whom, asked through the storage port of every engine: records
// of a person, mails about the balance, the log and the journal, calls a server has left.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { BY_OPERATOR } from "#features/accounts/audit.ts";
import type { Conversation } from "#features/conversations/records.ts";
import type { Storage } from "#storage/storage.ts";
import {
  createWorld, DAY, ENGINES, openFor, PRICE, system, typesOf,
} from "#support/databases/contract-world.ts";
import { testDataDir } from "#support/server.ts";

for (const engine of ENGINES.filter(({ skip }) => !skip)) {
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);

  const callOf = async (
    { accountId, assistantId }: Conversation, customerPhone: string | null,
    conversationUuid: string | null = null, at = storage,
  ): Promise<number> => {
    const begun = await at.calls.create({
      accountId, type: "web", assistant: { id: assistantId, uuid: "" }, conversationUuid,
      assistantPhone: null, customerPhone, variables: {}, origin: null, now: system.now(),
      dialling: { countries: [], perMinute: null }, parallelMax: 9, reserveMinMicros: 1,
      reserveMaxMicros: 1000, priceMicrosPerMinute: 1000,
    } as never);
    assert.ok(begun.kind === "created");
    return begun.call.id;
  };

  test(`[CR451] ${engine.name}: a person is found by number or chat, only under the same assistant and account`, async () => {
    const number = "+15550100001";
    const chatOf = async (
      { accountId, assistantId }: Conversation, name: string, externalIdentifier: string | null,
    ): Promise<string> => {
      const created = await storage.conversations.create({
        uuid: system.uuid(), accountId, now: system.now(), type: "widget", variables: {},
        initialMessage: "", externalIdentifier, visitor: { id: name, continues: false },
        priceMicros: 0, inactivityMinutes: 30, dailyCapMicros: null, day: DAY,
        assistant: { id: assistantId, uuid: system.uuid() },
      });
      assert.ok(created.kind === "created");
      return created.conversation.uuid;
    };
    const own = await world.newConversation(1e6);
    const foreign = await world.newConversation(1e6);
    const { accountId } = own;
    const elsewhere = await storage.assistants.create({
      uuid: system.uuid(), accountId, now: system.now(), settings: {} as never, assistantsMax: 9,
      columns: {
        name: "B", type: "inbound", status: "active", mode: "pipeline", folderId: null,
        phoneNumberId: null, labelIds: [],
      },
    });
    assert.ok(elsewhere.kind === "created");
    const [first, second] = [await chatOf(own, "ada", null), await chatOf(own, "ada", "7")];
    await chatOf({ ...own, assistantId: elsewhere.assistantId }, "ada", "7");
    await chatOf(foreign, "ada", number);
    const numbered = await chatOf(own, "bo", number);
    const inChat = await callOf(own, null, first);
    const rung = await callOf(own, number);
    await callOf(own, "+15550100002");
    await callOf(foreign, number);
    const find = (person: Parameters<typeof storage.personData.find>[1], of = accountId) =>
      storage.personData.find(of, person);
    const ada = { conversations: [second], named: first, calls: [inChat], leads: [] };
    assert.deepEqual(await find({ conversationId: first }), ada);
    assert.deepEqual(await find({ conversationId: second }),
      { ...ada, conversations: [first], named: second });
    const whose = { conversations: [], named: numbered, calls: [rung], leads: [] };
    assert.deepEqual(await find({ conversationId: numbered }), whose);
    assert.deepEqual(await find({ phoneNumber: number }),
      { ...whose, conversations: [numbered], named: null });
    assert.equal(await find({ conversationId: first }, foreign.accountId), null);
    // The deed tells the log of each, and leaves what is another's or busy.
    const by = BY_OPERATOR;
    const gone = await storage.personData.delete({
      accountId: foreign.accountId, ...ada, by, now: system.now(), busyBefore: 0,
    });
    assert.deepEqual([gone.deleted, gone.events],
      [{ conversations: 0, calls: 0, leads: 0, busy: 0 }, []]);
    await storage.calls.change(
      { accountId, callId: inChat, to: "failed", reason: "carrier_failed", now: system.now() });
    const { deleted, events } = await storage.personData.delete(
      { accountId, ...ada, calls: [inChat, rung], by, now: system.now(), busyBefore: 0 });
    assert.deepEqual(deleted, { conversations: 1, calls: 1, leads: 0, busy: 2 });
    assert.deepEqual(typesOf(events), ["call_deleted", "conversation_deleted"]);
    const named = { accountId, conversations: [], named: first, calls: [], leads: [], by };
    for (const [busyBefore, conversations] of [[1, 0], [0, 1]] as const) {
      const last = await storage.personData.delete({ ...named, now: system.now(), busyBefore });
      assert.deepEqual(last.deleted, { conversations, calls: 0, leads: 0, busy: busyBefore });
    }
  });

  test(`[BL245] ${engine.name}: a balance mail has one sender at a time, is sent once, expires, and states current amounts`, async () => {
    const conversation = await world.newConversation(4 * PRICE);
    const { accountId } = conversation;
    const { accountId: stranger } = await world.newConversation(PRICE);
    const alerts = { accountId, emails: ["a@example.org"] };
    await storage.balance.setAlerts({ ...alerts, amountsMicros: [1] });
    await storage.balance.setAlerts(
      { accountId, emails: ["b@example.org"], amountsMicros: [3 * PRICE, 2 * PRICE] });
    const pay = async (): Promise<string[]> => {
      const { turnId } = await world.started(conversation);
      return typesOf(await world.complete(turnId, conversation));
    };
    const now = system.now();
    const due = (at = now, since = now - 1, rows = 9) =>
      storage.balance.dueMails({ now: at, since, rows });
    assert.ok((await pay()).includes("balance_low"));
    const [mail] = await due();
    assert.ok(mail);
    assert.deepEqual([mail.address, mail.thresholdMicros], ["b@example.org", 3 * PRICE]);
    assert.deepEqual(await due(now, now), [], "older news is none");
    const claim = (at: number, of = accountId) =>
      storage.balance.claimMail({ accountId: of, id: mail.id, now: at, until: at + 10 });
    assert.equal(await claim(now, stranger), false);
    assert.deepEqual([await claim(now), await claim(now + 9)], [true, false]);
    assert.deepEqual([await due(now + 9), (await due(now + 10)).length], [[], 1]);
    assert.equal(await claim(now + 10), true, "whoever had it has ended");
    assert.ok((await pay()).includes("balance_low"), "the next amount is armed");
    await storage.balance.mailSent({ accountId: stranger, id: mail.id });
    assert.equal((await due(now + 20)).length, 2);
    await storage.balance.mailSent({ accountId, id: mail.id });
    assert.deepEqual(
      (await due(now + 20)).map(({ thresholdMicros }) => thresholdMicros), [2 * PRICE]);
    assert.equal(await claim(now + 30), false);
    assert.ok(!(await pay()).includes("balance_low"), "there is no amount below");
  });

  test(`[AU889] ${engine.name}: an audit entry made while the clock was years behind takes none but itself along`, async () => {
    const { newConversation } = createWorld(storage);
    const { accountId } = await newConversation(PRICE);
    const now = system.now();
    const add = (action: string, at: number) => storage.audit.add({
      accountId, now: at,
      note: {
        actor: { kind: "system", id: "system", name: "system" }, action, address: null,
        object: null, details: {},
      },
    });
    for (const [action, at] of [["first", now], ["astray", 0], ["last", now]] as const) {
      await add(action, at);
    }
    assert.equal(await storage.audit.trim(1, 100), 1);
    const left = await storage.audit.page(accountId, {}, null, 9);
    assert.deepEqual(left.map(({ action }) => action), ["last", "first"]);
  });

  test(`[SO54] ${engine.name}: old events and tool journal rows are removed oldest first, a bounded number at a time`, async (context) => {
    const own = testDataDir();
    const kept = await engine.open(own);
    context.after(async () => {
      await kept.close();
      rmSync(own, { recursive: true });
    });
    const { newConversation, another } = createWorld(kept);
    const conversation = await newConversation(PRICE);
    const { accountId } = conversation;
    const journal = (callKey: string) => kept.toolJournal.begin(
      { scope: "turn:1", callKey, accountId, toolId: 0, now: system.now() });
    const kindOf = async (callKey: string) => (await journal(callKey)).kind;
    const [one, two] = [await journal("one"), await journal("two")];
    assert.deepEqual([one.kind, two.kind], ["started", "started"]);
    const old = await kept.events.ofAccount(accountId, 0, 100);
    const before = system.now();
    assert.equal(await kept.trimLog(before, 100), 0, "it is not older");
    system.advance(1);
    await another(conversation);
    await journal("three");
    const rest = async () =>
      (await kept.events.ofAccount(accountId, 0, 99)).map(({ accountSequence }) => accountSequence);
    const all = await rest();
    assert.ok(old.length > 1 && all.length > old.length);
    assert.equal(await kept.trimLog(before + 1, 1), 2);
    assert.deepEqual(await rest(), all.slice(1));
    assert.equal(await kept.trimLog(before + 1, 100), old.length);
    assert.deepEqual(await rest(), all.slice(old.length));
    assert.equal(await kept.trimLog(before + 1, 100), 0);
    assert.notEqual(await kindOf("three"), "started");
    assert.deepEqual([await kindOf("one"), await kindOf("two")], ["started", "started"]);
  });

  test(`[SO55] ${engine.name}: a starting server ends the calls of a dead one, once, and releases their reservations`, async (context) => {
    const left = testDataDir();
    const dying = await engine.open(left);
    const before = createWorld(dying);
    const [conversation, second] = [
      await before.newConversation(1e6), await before.newConversation(1e6),
    ];
    const { accountId } = conversation;
    const talked = async (storage: Storage, of: Conversation): Promise<number> => {
      const callId = await callOf(of, null, null, storage);
      await storage.calls.change({
        accountId: of.accountId, callId, to: "in-progress", answeredBy: "human", now: system.now(),
      });
      return callId;
    };
    const [cut, theirs] = [await talked(dying, conversation), await talked(dying, second)];
    const asked = await callOf(conversation, null, null, dying);
    await dying.close();
    const next = await engine.open(left);
    context.after(async () => {
      await next.close();
      rmSync(left, { recursive: true });
    });
    const events = await next.calls.recover({ silent: [], now: system.now() });
    const ended = events.filter(({ type }) => type === "call_ended");
    assert.deepEqual(ended.map(({ callId }) => callId).toSorted(), [cut, theirs, asked].toSorted());
    assert.deepEqual(await next.calls.recover({ silent: [], now: system.now() }), []);
    const world = createWorld(next);
    assert.deepEqual(
      [(await world.money(accountId))[1], (await world.money(second.accountId))[1]], [0, 0]);
  });

  test(`[CR452] ${engine.name}: deleting a call deletes its own events, webhooks and tool results, and no other call's`, async () => {
    const [own, stranger] = [await world.newConversation(1e6), await world.newConversation(1e6)];
    for (const { accountId } of [own, stranger]) {
      assert.ok(await storage.webhooks.createEndpoint(
        { accountId, url: "https://example.org", events: ["*"], max: 9, now: system.now() }));
    }
    const said = async (of: Conversation): Promise<number> => {
      const { accountId } = of;
      const callId = await callOf(of, null);
      const now = system.now();
      await storage.calls.change({
        accountId, callId, to: "in-progress", answeredBy: "human", now,
      });
      const { id } = await storage.toolJournal.begin(
        { scope: `call:${callId}.1`, callKey: "k", accountId, toolId: 0, now }) as { id: number };
      await storage.toolJournal.finish(
        { accountId, id, result: { output: "plum" }, sent: true, now });
      await storage.calls.end({
        accountId, callId, finalStatus: "ended_by_customer", reason: "customer_hung_up",
        turns: [], hasRecording: false, now,
      });
      await storage.calls.finish(
        { accountId, callId, evaluation: {}, evaluationError: null, now });
      return callId;
    };
    const earlier = await said(own);
    const [gone, beside, theirs] = [await said(own), await said(own), await said(stranger)];
    const answerOf = (callId: number, { accountId }: Conversation) => storage.toolJournal.begin({
      scope: `call:${callId}.1`, callKey: "k", accountId, toolId: 0, now: system.now(),
    });
    const kept = async () => ({
      events: await Promise.all(
        [earlier, beside, theirs].map((id) => storage.events.ofCall(id, 0, 99))),
      sent: [
        ...await storage.webhooks.deliveries(own.accountId, { callId: beside }, 0, 99),
        ...await storage.webhooks.deliveries(stranger.accountId, {}, 0, 99),
      ],
      answers: [
        await answerOf(earlier, own), await answerOf(beside, own), await answerOf(theirs, stranger),
      ],
    });
    const events = await storage.events.ofCall(gone, 0, 99);
    assert.ok(events.length > 2);
    assert.deepEqual(await storage.events.ofCall(gone, 1, 99), events.slice(1));
    assert.deepEqual(await storage.events.ofCall(gone, 1, 1), events.slice(1, 2));
    const before = await kept();
    assert.ok(before.sent.length > 2);
    const { accountId } = own;
    const now = system.now();
    assert.equal((await storage.calls.delete(
      { accountId: stranger.accountId, callId: gone, now })).kind, "not_found");
    assert.equal((await storage.calls.delete({ accountId, callId: gone, now })).kind, "deleted");
    assert.deepEqual(await storage.events.ofCall(gone, 0, 99), []);
    const left = await storage.webhooks.deliveries(accountId, {}, 0, 99);
    assert.deepEqual(left.filter(({ callId }) => callId === gone), []);
    assert.equal(left.filter(({ type }) => type === "call_deleted").length, 1);
    assert.doesNotMatch(JSON.stringify(await answerOf(gone, own)), /plum/);
    assert.deepEqual(await kept(), before);
    assert.match(JSON.stringify(before.answers), /plum.*plum.*plum/);
  });
}
