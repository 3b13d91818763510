// What one account has does not stand in the way of another. Asked through the storage port of
// every engine.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AskedNewCall } from "#features/calls/records/records.ts";
import type { WorkingHours } from "#features/calendar/slots.ts";
import { createWorld, ENGINES, openFor, PRICE, system } from "#support/databases/contract-world.ts";

const NUMBER = "+4930901820";

for (const engine of ENGINES.filter(({ skip }) => !skip)) {
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);
  const now = system.now();
  /** An account that calls a number. */
  const newCaller = async () => {
    const { accountId, assistantId } = await world.newConversation(PRICE);
    const call = async (how: Partial<AskedNewCall> = {}) => storage.calls.create({
      accountId, type: "outbound", assistant: { id: assistantId, uuid: "" },
      conversationUuid: null, assistantPhone: null, customerPhone: NUMBER, variables: {},
      now, dialling: { countries: [], perMinute: null }, parallelMax: 9,
      reserveMinMicros: 1, reserveMaxMicros: 1000, priceMicrosPerMinute: 1000,
      idempotencyKey: null, ...how,
    });
    return { accountId, assistantId, call };
  };

  test(`[SO292] ${engine.name}: accounts call under the same key, each once`, async () => {
    const callers = [await newCaller(), await newCaller()];
    for (const { call } of callers) {
      const outcomes = [await call({ idempotencyKey: "k" }), await call({ idempotencyKey: "k" })];
      assert.deepEqual(outcomes.map(({ kind }) => kind), ["created", "repeated"]);
    }
  });

  const newCampaign = async (accountId: number, assistantId: number): Promise<number> => {
    const campaign = await storage.campaigns.create({
      accountId, campaignsMax: 9, now,
      fields: {
        assistantId, name: "C", timeZone: "UTC", parallelMax: 1, startMinute: 0, endMinute: 1,
        days: [], maxRetries: 0, retryIntervalMinutes: 1, retryOnVoicemail: false,
        retryOnGoalIncomplete: false, goalVariable: null, completesWhenDone: false,
        phoneNumberIds: [],
      },
    });
    assert.ok(campaign);
    return campaign.id;
  };

  test(`[FA6] ${engine.name}: an account's list does not wait behind all that another asks for`, async () => {
    const [busy, other] = [await newCaller(), await newCaller()];
    let done = 0;
    const many = Array.from({ length: 20 }, async () => {
      await storage.calls.list(busy.accountId, {}, 0, 25);
      done += 1;
    });
    await storage.calls.list(other.accountId, {}, 0, 25);
    assert.ok(done < 5, `${done} came first`);
    await Promise.all(many);
  });

  test(`[SO293] ${engine.name}: a number that one account blocks can be called by others`, async () => {
    const [one, other] = [await newCaller(), await newCaller()];
    const { accountId, assistantId } = other;
    const campaignId = await newCampaign(accountId, assistantId);
    const lead = { phoneNumber: NUMBER, timeZone: "UTC", variables: {}, contacts: [] };
    const addLead = () => storage.leads.add({
      accountId, campaignId, leads: [lead], duplicates: "add", now,
    });
    await addLead();
    await storage.leads.block({
      accountId: one.accountId, phoneNumber: NUMBER, reason: null, blockedMax: 9, now,
    });
    await addLead();
    const leads = await storage.leads.list(accountId, {}, 0, 9);
    assert.deepEqual(leads.map(({ status }) => status), ["created", "created"]);
    assert.equal((await one.call()).kind, "blocked");
    const made = await other.call();
    assert.ok(made.kind === "created");
    const ref = { accountId, callId: made.call.id, now };
    await storage.calls.change({ ...ref, to: "in-progress" });
    const transfer = await storage.calls.beginTransfer({
      ...ref, type: "warm_call_transfer", to: NUMBER, carrierMicrosPerMinute: 0,
      dialling: { countries: [], perMinute: null }, secondsMax: 60, at: now,
    });
    assert.equal(transfer.kind, "begun");
  });

  test(`[SO294] ${engine.name}: parallel calls are counted by account`, async () => {
    const [one, other] = [await newCaller(), await newCaller()];
    assert.equal((await one.call({ parallelMax: 1 })).kind, "created");
    assert.equal((await one.call({ parallelMax: 1 })).kind, "too_many_calls");
    assert.equal((await other.call({ parallelMax: 1 })).kind, "created");
  });

  test(`[SO295] ${engine.name}: canned replies of two accounts share a shortcut; neither changes the other's`, async () => {
    const [one, other] = [await newCaller(), await newCaller()];
    const save = (accountId: number, id: number | null, text: string) =>
      storage.inbox.saveCannedReply({ accountId, id, shortcut: "hi", text, max: 9, now });
    const saved = await save(one.accountId, null, "Hello.");
    assert.ok(saved.kind === "saved");
    assert.equal((await save(one.accountId, null, "Hello.")).kind, "name_taken");
    assert.equal((await save(other.accountId, null, "Good day.")).kind, "saved");
    assert.equal((await save(other.accountId, saved.reply.id, "Good day.")).kind, "not_found");
    const removed = { accountId: other.accountId, id: saved.reply.id };
    assert.equal(await storage.inbox.removeCannedReply(removed), false);
    const texts = (await storage.inbox.cannedReplies(one.accountId)).map(({ text }) => text);
    assert.deepEqual(texts, ["Hello."]);
  });

  test(`[SO296] ${engine.name}: many conversations at once get only labels of their own account`, async () => {
    const conversation = await world.newConversation(PRICE);
    const { accountId, uuid } = conversation;
    const other = await newCaller();
    const label = await storage.labels.create(
      { accountId: other.accountId, name: "L", color: null });
    assert.ok(label.kind === "saved");
    const by = { actor: { kind: "key", id: "key:1", name: "Ana" }, address: null } as const;
    const labelled = await storage.bulk.label(
      { accountId, uuids: [uuid], labelId: label.group.id, isTaken: false, by, now });
    assert.deepEqual(labelled, { kind: "no_such_label" });
  });

  test(`[SO297] ${engine.name}: an API key is revoked, and a saved view removed, by its account alone`, async () => {
    const [one, other] = [await newCaller(), await newCaller()];
    const { accountId } = one;
    const by = { actor: { kind: "key", id: "key:1", name: "Ana" }, address: null } as const;
    const { id: keyId } = await storage.accounts.createKey({
      accountId, name: "K", secretHash: "h", scopes: ["read"], role: "viewer", expiresAt: null, by,
      now,
    });
    const saved = await storage.savedViews.save({
      accountId, list: "calls", name: "V", query: "", max: 9, now,
    });
    assert.ok(saved.kind === "saved");
    const { id } = saved.view;
    for (const [asker, isDone] of [[other.accountId, false], [accountId, true]] as const) {
      const key = { accountId: asker, keyId, by, now };
      assert.equal(await storage.accounts.revokeKey(key), isDone);
      assert.equal(await storage.savedViews.remove({ accountId: asker, id }), isDone);
    }
  });

  test(`[SO418] ${engine.name}: a calendar is changed, and its appointments are cancelled, by its account alone`, async () => {
    const [one, other] = [await newCaller(), await newCaller()];
    const { accountId, assistantId } = one;
    await storage.calendars.create({
      accountId, assistantId, feedUuid: system.uuid(), timeZone: null, slotMinutes: 30,
      bufferMinutes: 0, leadMinutes: 0, daysAhead: 9, workingHours: {} as WorkingHours,
    }, now);
    const changes = { slotMinutes: 60 };
    const ofOther = { accountId: other.accountId, assistantId, now };
    await assert.rejects(storage.calendars.save({ ...ofOther, changes }));
    assert.equal((await storage.calendars.find(assistantId))?.slotMinutes, 30);
    const slot = {
      assistantId, start: now, end: now + 1, bookingKey: "k", bufferMinutes: 0, name: "Ana",
      email: null, phone: null, notes: null, now,
    };
    const booked = await storage.calendars.book({ ...slot, accountId, uuid: system.uuid() });
    assert.ok(booked);
    const repeated = { ...slot, uuid: system.uuid() };
    assert.equal(await storage.calendars.book({ ...repeated, ...ofOther }), null);
    assert.equal((await storage.calendars.book({ ...repeated, accountId }))?.id, booked.id);
    const { id: appointmentId } = booked;
    assert.equal(await storage.calendars.cancel({ ...ofOther, appointmentId }), false);
    assert.equal(await storage.calendars.cancel({ accountId, appointmentId, now }), true);
  });

  test(`[SO419] ${engine.name}: one browser gets the push messages of two accounts, each on its own terms`, async () => {
    const accountIds = [(await newCaller()).accountId, (await newCaller()).accountId];
    const [first = 0, second = 0] = accountIds;
    const add = (accountId: number, endpoint: string) => storage.push.add({
      accountId, endpoint, person: "user:1", publicKey: "", auth: "", max: 2, now,
    });
    for (const endpoint of ["a", "b", "c"]) {
      for (const accountId of accountIds) await add(accountId, endpoint);
    }
    const endpoints = async (accountId: number) =>
      (await storage.push.list(accountId)).map(({ endpoint }) => endpoint);
    assert.deepEqual(await Promise.all(accountIds.map(endpoints)), [["c", "b"], ["c", "b"]]);
    await storage.push.remove({ accountId: first, endpoint: "b" });
    await add(first, "c");
    assert.deepEqual([await endpoints(first), await endpoints(second)], [["c"], ["c", "b"]]);
  });

  test(`[SO420] ${engine.name}: first steps and saved views are counted and listed by account`, async () => {
    const [one, other] = [await newCaller(), await newCaller()];
    for (const { accountId } of [one, other]) {
      const save = (name: string) => storage.savedViews.save({
        accountId, list: "calls", name: `${name} ${accountId}`, query: "", max: 1, now,
      });
      assert.deepEqual(
        [(await save("V")).kind, (await save("V")).kind, (await save("W")).kind],
        ["saved", "saved", "too_many"]);
      assert.equal((await storage.savedViews.list(accountId)).length, 1);
    }
    const made = await one.call();
    assert.ok(made.kind === "created");
    await storage.calls.change({
      accountId: one.accountId, callId: made.call.id, to: "in-progress", now,
    });
    await storage.firstSteps.found({ accountId: one.accountId, document: "D", now });
    await storage.firstSteps.found({ accountId: one.accountId, document: "E", now: now + 1 });
    const { proofs } = await storage.firstSteps.read(one.accountId);
    assert.deepEqual([proofs.call?.id, proofs.document?.name], [String(made.call.id), "D"]);
    const others = await storage.firstSteps.read(other.accountId);
    assert.deepEqual([others.proofs.call, others.proofs.document], [null, null]);
  });

  test(`[CR799] ${engine.name}: a person's data has the calls to all numbers of their lead, in their account alone`, async () => {
    const [one, other] = [await newCaller(), await newCaller()];
    const called = async ({ accountId, assistantId, call }: typeof one) => {
      const campaignId = await newCampaign(accountId, assistantId);
      const read = (phoneNumber: string) => ({ phoneNumber, timeZone: "UTC", variables: {} });
      const contacts = [read("+4930901821")];
      await storage.leads.add({
        accountId, campaignId, leads: [{ ...read(NUMBER), contacts }], duplicates: "add", now,
      });
      const [lead] = await storage.leads.list(accountId, {}, 0, 9);
      const [contact] = lead?.contacts ?? [];
      assert.ok(lead && contact);
      const made = await call({
        customerPhone: contact.phoneNumber, origin: { campaignId, leadId: contact.id },
      });
      assert.ok(made.kind === "created");
      return { conversations: [], named: null, calls: [made.call.id], leads: [lead.id] };
    };
    for (const caller of [one, other]) {
      const records = await called(caller);
      for (const phoneNumber of [NUMBER, "+4930901821"]) {
        assert.deepEqual(await storage.personData.find(caller.accountId, { phoneNumber }), records);
      }
    }
  });
}
