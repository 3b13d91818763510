// What is large goes step by step, so that nobody's charge waits behind it, and whoever asks again
// after a crash in between finds the rest. Asked through the storage port of every engine.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createWorld, ENGINES, openFor, PRICE, system } from "#support/databases/contract-world.ts";

for (const engine of ENGINES.filter(({ skip }) => !skip)) {
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);

  test(`[SO90] ${engine.name}: an endpoint is deleted in steps of its deliveries, and sends nothing meanwhile`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const now = system.now();
    const create = (url: string) =>
      storage.webhooks.createEndpoint({ accountId, url, events: ["*"], max: 9, now });
    const [endpoint, other] = [await create("https://a.example"), await create("https://b.example")];
    assert.ok(endpoint && other);
    for (const { id: endpointId } of [endpoint, endpoint, endpoint, other]) {
      await storage.webhooks.enqueue({ accountId, endpointId, type: "test", body: {}, now });
    }
    const left = (endpointId: number) =>
      storage.webhooks.countDeliveries(accountId, { endpointId });
    const args = { accountId, endpointId: endpoint.id, rows: 2 };
    assert.deepEqual(await storage.webhooks.deleteEndpoint(args), { isGone: false });
    assert.equal(await left(endpoint.id), 1);
    assert.equal((await storage.webhooks.endpoint(accountId, endpoint.id))?.status, "disabled");
    assert.deepEqual(await storage.webhooks.deleteEndpoint(args), { isGone: true });
    assert.equal(await storage.webhooks.endpoint(accountId, endpoint.id), null);
    assert.equal(await storage.webhooks.deleteEndpoint(args), null);
    assert.deepEqual([await left(endpoint.id), await left(other.id)], [0, 1]);
  });

  test(`[SO620] ${engine.name}: what waits for a disabled endpoint is given up in steps, and waits once it is enabled`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const now = system.now();
    const endpoint = await storage.webhooks.createEndpoint(
      { accountId, url: "https://a.example", events: ["*"], max: 9, now });
    assert.ok(endpoint);
    const endpointId = endpoint.id;
    for (let waiting = 0; waiting < 5; waiting += 1) {
      await storage.webhooks.enqueue({ accountId, endpointId, type: "test", body: {}, now });
    }
    await storage.webhooks.take({ accountId, endpointId });
    const giveUp = () => storage.webhooks.giveUp({ accountId, endpointId, rows: 2, now });
    const statesOf = async () => (await storage.webhooks.deliveries(accountId, {}, 0, 9))
      .map(({ state }) => state).toReversed();
    assert.equal(await giveUp(), 0, "it is not disabled");
    const head = await storage.webhooks.head(endpointId);
    await storage.webhooks.record({
      accountId, deliveryId: head?.delivery.id ?? 0, outcome: "dead", status: 410, response: "",
      error: "gone", disables: "gone", endpoint, now, nextAt: now,
    });
    assert.deepEqual(await statesOf(), ["dead", "pending", "pending", "pending", "pending"]);
    assert.equal(await giveUp(), 2);
    assert.deepEqual(await statesOf(), ["dead", "dead", "dead", "pending", "pending"]);
    await storage.webhooks.updateEndpoint({ accountId, endpointId, status: "active", now });
    assert.equal(await giveUp(), 0);
    assert.deepEqual(await statesOf(), ["dead", "dead", "dead", "pending", "pending"]);
  });

  test(`[SO622] ${engine.name}: a deleted campaign lets go of its calls in steps`, async () => {
    const conversation = await world.newConversation(PRICE);
    const { accountId, assistantId } = conversation;
    const now = system.now();
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
    const campaignId = campaign.id;
    const origin = { campaignId, leadId: null };
    for (const from of [origin, origin, origin, null]) await world.newCall(conversation, from);
    const itsCalls = () => storage.calls.count(accountId, { campaignId });
    const remove = () => storage.campaigns.remove({ accountId, campaignId, rows: 2, now });
    assert.equal(await itsCalls(), 3);
    assert.deepEqual(await remove(), { isGone: false, events: [] });
    assert.equal(await itsCalls(), 1);
    assert.ok(await storage.campaigns.findById(campaignId));
    assert.deepEqual(await remove(), { isGone: true, events: [] });
    assert.equal(await storage.campaigns.findById(campaignId), null);
    assert.equal(await storage.calls.count(accountId, {}), 4);
  });

  test(`[GR6] ${engine.name}: a label is deleted in steps of its conversations`, async () => {
    const own = await world.newConversation(PRICE);
    const { accountId, uuid } = own;
    const stranger = await world.newConversation(PRICE);
    const now = system.now();
    const label = await storage.labels.create({ accountId, name: "Refund", color: null });
    assert.ok(label.kind === "saved");
    const { id: groupId } = label.group;
    const { uuid: second } = await world.another(own);
    const by = { actor: { kind: "key" as const, id: "key:1", name: "K" }, address: null };
    await storage.bulk.label({
      accountId, uuids: [uuid, second], labelId: groupId, isTaken: false, by, now,
    });
    const labelled = async () => (await storage.inbox.page({
      accountId, queue: "all", search: null, holderId: "", filter: { labelId: groupId },
      after: null, rows: 9,
    })).length;
    assert.equal(await labelled(), 2);
    const args = { groupId, rows: 2, now };
    const step = () => storage.labels.remove({ ...args, accountId });
    assert.equal(await storage.labels.remove({ ...args, accountId: stranger.accountId }), null);
    assert.equal(await labelled(), 2);
    assert.deepEqual([await step(), await labelled()], [{ isGone: false }, 0]);
    assert.deepEqual([await step(), await step()], [{ isGone: true }, null]);
  });

  test(`[GR7] ${engine.name}: answers kept for an account are forgotten in steps before a person is`, async () => {
    const own = await world.newConversation(PRICE);
    const other = await world.newConversation(PRICE);
    const now = system.now();
    const claim = (accountId: number, key: number) => storage.keptAnswers.claim(
      { accountId, name: `${accountId} ${key}`, request: "r", now, expiresAt: now + 1 });
    for (const { accountId } of [own, other]) {
      for (const key of [1, 2, 3]) await claim(accountId, key);
    }
    const forget = () => storage.personData.forgetAnswers(own.accountId, 2);
    assert.deepEqual([await forget(), await forget(), await forget()], [2, 1, 0]);
    assert.equal(await claim(own.accountId, 1), null);
    assert.notEqual(await claim(other.accountId, 1), null);
    await storage.personData.delete({
      accountId: own.accountId, conversations: [], calls: [], leads: [], named: null,
      busyBefore: 0, now, by: { actor: { kind: "key", id: "key:1", name: "K" }, address: null },
    });
    assert.equal(await claim(own.accountId, 1), null, "what came meanwhile is forgotten, too");
  });

  test(`[SO91] ${engine.name}: a knowledgebase and a document are deleted in steps of their chunks, the last first`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const now = system.now();
    const { id: knowledgebaseId } =
      await storage.knowledgebases.create({ accountId, name: "K", description: null, now });
    const read = async (name: string): Promise<number> => {
      const made = await storage.knowledgebases.createDocument({
        accountId, knowledgebaseId, name, description: null, type: "text", source: {}, text: name,
        rereadHours: null, documentsMax: 9, now,
      } as never);
      assert.ok(made.kind === "created");
      const documentId = made.document.id;
      const chunks = [1, 2, 3].map((page) =>
        ({ headings: [], text: `${name} ${page}`, page, url: null }));
      await storage.knowledgebases.addChunks({ accountId, documentId, position: 0, chunks });
      await storage.knowledgebases.finishReading({
        accountId, documentId, now, outcome: { kind: "active", pages: 1, characters: 9 },
      } as never);
      return documentId;
    };
    const ids = [await read("first"), await read("second"), await read("third")];
    const [documentId = 0, second] = ids;
    const texts = async (id = documentId) =>
      (await storage.knowledgebases.chunks(id, 0, 9)).items.map(({ text }) => text);
    const one = { accountId, documentId, rows: 2, now };
    const begun = await storage.knowledgebases.removeDocument(one);
    assert.deepEqual([begun?.isGone, begun?.gone], [false, []]);
    assert.deepEqual(await texts(), ["first 1"]);
    const ended = await storage.knowledgebases.removeDocument(one);
    assert.deepEqual([ended?.isGone, ended?.gone.map(({ id }) => id)], [true, [documentId]]);
    assert.equal(await storage.knowledgebases.removeDocument(one), null);

    const step = () => storage.knowledgebases.remove({ accountId, knowledgebaseId, rows: 4, now });
    const half = await step();
    assert.deepEqual([half?.isGone, half?.gone.map(({ id }) => id)], [false, [second]]);
    assert.deepEqual(await texts(ids[2]), ["third 1", "third 2"]);
    const rest = await step();
    assert.deepEqual([rest?.isGone, rest?.gone.map(({ id }) => id)], [true, [ids[2]]]);
    assert.deepEqual([await step(), await texts(ids[2])], [null, []]);
  });
}
