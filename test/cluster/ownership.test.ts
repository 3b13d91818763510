// What a process has under way is its own: others leave it alone while it lives, whoever buries it
// ends it, and what the buried one still writes changes nothing. Two stores over one database.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { auditAccount } from "#features/accounts/money/ledger.ts";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import type { Conversation } from "#features/conversations/records.ts";
import { utcDay } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import type { Storage } from "#storage/storage.ts";
import { storeOfNode } from "#support/databases/beside.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { testDataDir } from "#support/server.ts";

const dataDir = testDataDir();
const system = createManualSystem();
const PRICE = 10_000;
const opened: Storage[] = [];
after(async () => {
  for (const storage of opened) await storage.close();
  rmSync(dataDir, { recursive: true });
});

async function join(): Promise<Storage> {
  const storage = await storeOfNode(dataDir, system.now());
  opened.push(storage);
  return storage;
}

/** Two nodes, and an account with an assistant that has the price of two messages. */
async function createWorld() {
  const [one, two] = [await join(), await join()];
  const now = system.now();
  const { id: accountId } = await one.accounts.createAccount(
    { name: "A", email: "", plan: "self-hosted", now });
  await one.accounts.credit({
    accountId, amountMicros: 2 * PRICE, reference: system.uuid(), now,
  });
  const uuid = system.uuid();
  const made = await one.assistants.create({
    uuid, accountId, now, settings: {} as AssistantSettings, assistantsMax: 9,
    columns: {
      name: "A", type: "inbound", status: "active", mode: "pipeline", folderId: null,
      phoneNumberId: null, labelIds: [],
    },
  });
  assert.ok(made.kind === "created");
  return {
    one, two, accountId, assistant: { id: made.assistantId, uuid },
    /** Gives the first node up. */
    bury: async (): Promise<void> => {
      const row = (await two.nodes.list()).find(({ id }) => id === one.nodeId());
      assert.ok(row && await two.nodes.bury({
        deadId: row.id, beatAt: row.beatAt, now: system.now(),
      }));
    },
    money: async (): Promise<[balance: number, reserved: number]> => {
      const claims = await one.statements.claims(accountId);
      assert.ok(claims);
      const entries = await one.statements.entries(accountId, 0, claims.newest, 10_000);
      assert.deepEqual(await auditAccount(claims.totals, entries, claims.openMicros), []);
      return [claims.totals.balanceMicros, claims.totals.reservedMicros];
    },
  };
}

async function createTalk() {
  const world = await createWorld();
  const created = await world.one.conversations.create({
    uuid: system.uuid(), accountId: world.accountId, now: system.now(), type: "widget",
    variables: {}, initialMessage: "", externalIdentifier: null, visitor: null, priceMicros: 0,
    inactivityMinutes: 30, dailyCapMicros: null, day: utcDay(system.now()),
    assistant: world.assistant,
  });
  assert.ok(created.kind === "created");
  const { conversation } = created;
  const begin = ({ conversations }: Storage, idempotencyKey: string | null) =>
    conversations.beginTurn({
      accountId: world.accountId, conversationUuid: conversation.uuid, text: "When?",
      idempotencyKey, requestHash: "0", messagePriceMicros: PRICE, dailyCapMicros: null,
      day: utcDay(system.now()), messagesMax: 100, now: system.now(),
    });
  return {
    ...world, conversation, begin,
    complete: ({ conversations }: Storage, turnId: number) =>
      conversations.completeTurn(reply(conversation, turnId)),
    started: async (storage: Storage, key: string | null = null) => {
      const begun = await begin(storage, key);
      assert.ok(begun.kind === "started", begun.kind);
      return begun;
    },
  };
}

const reply = (conversation: Conversation, turnId: number) => ({
  turnId, conversation, text: "At nine.", functionCalls: [], stopped: false, truncated: false,
  usage: null, ends: false, now: system.now(),
});

test("[ND12] a conversation answered by one node is busy for others, which know its key runs there", async () => {
  const { one, two, begin, complete, started } = await createTalk();
  const { turnId, baseSequence } = await started(one, "k");
  assert.deepEqual(await begin(two, null), { kind: "busy", nodeId: one.nodeId() });
  assert.deepEqual(await begin(two, "k"),
    { kind: "running", turnId, baseSequence: baseSequence - 1, nodeId: one.nodeId() });
  assert.equal(await two.conversations.turnEnd(turnId), null);
  await assert.rejects(complete(two, turnId), /not open/);
  assert.deepEqual(await two.conversations.recover({ now: system.now() }), [], "its node lives");
  await complete(one, turnId);
  const end = await two.conversations.turnEnd(turnId);
  assert.ok(end?.kind === "completed" && end.text === "At nine.");
  assert.equal((await begin(two, null)).kind, "started");
});

test("[ND13] the first to come closes a given-up node's turn, and that node can store nothing more", async () => {
  const talk = await createTalk();
  const { one, two, begin, complete, started, money } = talk;
  const first = await started(one, "k");
  await talk.bury();
  assert.deepEqual(await money(), [2 * PRICE, PRICE]);
  const next = await started(two);
  assert.deepEqual(next.events.map(({ type }) => type), ["reply_failed", "message_added"]);
  assert.deepEqual(await money(), [2 * PRICE, PRICE]);
  await assert.rejects(complete(one, first.turnId), /not open/);
  await complete(two, next.turnId);
  const again = await started(two, "k");
  assert.equal(again.turnId, first.turnId);
  await assert.rejects(complete(one, again.turnId), /not open/, "it is the other's now");
  assert.deepEqual(
    await one.conversations.failTurn({
      ...reply(talk.conversation, again.turnId), reason: "failed", error: "", cause: null,
    }), []);
  await complete(two, again.turnId);
  assert.deepEqual(await money(), [0, 0]);
  assert.equal((await begin(two, "k")).kind, "repeated");
});

test("[ND14] the turns of a buried node are closed once, whoever recovers them", async () => {
  const talk = await createTalk();
  const { turnId } = await talk.started(talk.one);
  const three = await join();
  await talk.bury();
  const now = system.now();
  const events = await Promise.all(
    [talk.two, three, talk.one].map(({ conversations }) => conversations.recover({ now })));
  assert.deepEqual(events.flat().map(({ type }) => type), ["reply_failed"]);
  assert.deepEqual(await talk.money(), [2 * PRICE, 0]);
  const end = await three.conversations.turnEnd(turnId);
  assert.ok(end?.kind === "failed" && end.reason === "interrupted");
});

test("[ND15] a call belongs to its node until that is buried; then it lasted until its last beat", async () => {
  const { one, two, accountId, assistant, bury, money } = await createWorld();
  const place = async (): Promise<number> => {
    const begun = await one.calls.create({
      accountId, type: "web", assistant, conversationUuid: null, assistantPhone: null,
      customerPhone: null, variables: {}, now: system.now(), parallelMax: 9,
      dialling: { countries: null, perMinute: null }, priceMicrosPerMinute: PRICE,
      reserveMinMicros: 1, reserveMaxMicros: PRICE,
    } as never);
    assert.ok(begun.kind === "created");
    return begun.call.id;
  };
  const [callId, ringing] = [await place(), await place()];
  const ref = { accountId, callId };
  await one.calls.change({ ...ref, to: "ringing", now: system.now() });
  await one.calls.change({ ...ref, to: "in-progress", now: system.now() });
  system.advance(30_000);
  await one.calls.beat({ calls: [{ id: callId, accountId }], now: system.now() });
  const entry = {
    speaker: "customer" as const, text: "x", startMs: 0, endMs: 1, interrupted: false,
    functionCalls: [],
  };
  const end = {
    ...ref, finalStatus: "ended_by_customer" as const, reason: "customer_hung_up" as const,
    turns: [], hasRecording: false, now: system.now(),
  };
  assert.deepEqual(await two.calls.addTranscript({ ...ref, entry, now: system.now() }), []);
  assert.deepEqual(await two.calls.end(end), []);
  assert.deepEqual(await two.calls.recover({ silent: [], now: system.now() }), [], "its node lives");
  system.advance(20_000);
  await bury();
  await two.calls.recover({ silent: [], now: system.now() });
  assert.deepEqual(await money(), [2 * PRICE - PRICE / 2, 0], "half a minute");
  assert.equal((await two.calls.findById(ringing))?.status, "failed");
  assert.deepEqual(await one.calls.end(end), []);
  assert.deepEqual(await one.calls.change({ ...ref, to: "in-progress", now: system.now() }), []);
});

test("[ND16] a document is read by the node it came to, and by one other once that node is gone", async () => {
  const { one, two, accountId, bury } = await createWorld();
  const now = system.now();
  const { id: knowledgebaseId } = await one.knowledgebases.create(
    { accountId, name: "N", description: null, now });
  const made = await one.knowledgebases.createDocument({
    accountId, knowledgebaseId, name: "D", description: null, type: "txt",
    source: { file: "x" }, rereadHours: null, documentsMax: 9, now,
  });
  assert.ok(made.kind === "created");
  const document = { accountId, documentId: made.document.id };
  const mine = async (storage: Storage): Promise<boolean> =>
    (await storage.knowledgebases.unread()).some(({ id }) => id === document.documentId);
  assert.equal(await mine(two), false);
  assert.equal(await two.knowledgebases.beginReading(document), false);
  assert.equal(await one.knowledgebases.beginReading(document), true);
  await bury();
  assert.equal(await mine(two), true);
  assert.equal(await two.knowledgebases.beginReading(document), true);
  const outcome = { kind: "active", pages: 1, characters: 1 } as const;
  assert.deepEqual(await one.knowledgebases.finishReading({ ...document, outcome, now }), []);
  const [event] = await two.knowledgebases.finishReading({ ...document, outcome, now });
  assert.equal(event?.type, "document_status_changed");
});

test("[ND17] one node sends to an endpoint, and what its former owner records late is ignored", async () => {
  const { one, two, accountId, bury } = await createWorld();
  const now = system.now();
  const endpoint = await one.webhooks.createEndpoint(
    { accountId, url: "https://example.org", events: ["*"], max: 9, now });
  assert.ok(endpoint);
  const ref = { accountId, endpointId: endpoint.id };
  const delivery = await two.webhooks.enqueue({ ...ref, type: "test", body: {}, now });
  assert.ok(delivery);
  assert.equal((await two.webhooks.head(endpoint.id))?.ownerId, null);
  assert.equal(await one.webhooks.take(ref), one.nodeId());
  assert.equal(await two.webhooks.take(ref), one.nodeId());
  assert.equal((await two.webhooks.head(endpoint.id))?.ownerId, one.nodeId());
  const sent = {
    accountId, deliveryId: delivery.id, outcome: "delivered" as const, nextAt: now, status: 200,
    endpoint, error: null, response: "", disables: null, now,
  };
  await two.webhooks.record(sent);
  await bury();
  assert.equal(await two.webhooks.take(ref), two.nodeId());
  await one.webhooks.record(sent);
  assert.equal((await two.webhooks.head(endpoint.id))?.delivery.attempts, 0);
  await two.webhooks.record(sent);
  assert.equal(await two.webhooks.head(endpoint.id), null);
});

test("[ND18] one node attends a number order until it is gone or reports the outcome as open", async () => {
  const { one, two, accountId, bury, money } = await createWorld();
  const order = async (): Promise<{ accountId: number; uuid: string }> => {
    const uuid = system.uuid();
    const ordered = await one.phoneNumbers.order({
      uuid, accountId, idempotencyKey: null, phoneNumber: `+1415555${uuid.slice(0, 4)}`,
      countryCode: "US", smsCapable: false, region: null, provider: "p", priceMicros: PRICE,
      now: system.now(),
    });
    assert.equal(ordered.kind, "ordered");
    return { accountId, uuid };
  };
  const [lost, left] = [await order(), await order()];
  const failure = { status: 500, error: "No.", now: system.now() };
  assert.equal(await two.phoneNumbers.attend(lost), false);
  await two.phoneNumbers.fail({ ...lost, ...failure, mayArrive: false });
  assert.deepEqual(await money(), [2 * PRICE, 2 * PRICE]);
  await one.phoneNumbers.fail({ ...lost, ...failure, mayArrive: true });
  assert.equal(await two.phoneNumbers.attend(lost), true);
  await bury();
  assert.equal(await two.phoneNumbers.attend(left), true);
  assert.deepEqual(await one.phoneNumbers.complete({ ...left, sid: "s", now: system.now() }), []);
  await two.phoneNumbers.fail({ ...left, ...failure, mayArrive: false });
  assert.deepEqual(await money(), [2 * PRICE, 0]);
});

test("[ND20] a trunk belongs to one node until that is gone or gives it back", async () => {
  const { one, two, accountId, bury } = await createWorld();
  const trunkOf = async (number: string): Promise<number> => {
    const made = await one.sipTrunks.create({
      accountId, uuid: system.uuid(), trunkType: "number", phoneNumber: number, nickname: null,
      countryCode: "US", username: "u", sealedPassword: "", address: "sip.example.com", port: null,
      transport: "udp", callingFormat: "e164", inboundAuth: "auth", allowedNetworks: null,
      requireSrtp: false, codecs: ["pcmu"], outboundProxy: false, inboundTrunkId: number,
      outboundTrunkId: number, createdAt: system.now(), updatedAt: system.now(),
    }, 9);
    assert.ok(made.kind === "created");
    return made.trunk.id;
  };
  const ids = [await trunkOf("+14155550190"), await trunkOf("+14155550191")];
  const owners = async () => (await two.sipTrunks.list(accountId)).map(({ ownerId }) => ownerId);
  assert.deepEqual(await owners(), [null, null]);
  assert.deepEqual(
    [await one.sipTrunks.take(ids), await two.sipTrunks.take(ids)], [2, 0]);
  await one.sipTrunks.giveBack(ids.slice(1));
  assert.deepEqual(await owners(), [one.nodeId(), null]);
  assert.deepEqual(await one.sipTrunks.quiet(ids.toReversed()), ids.toReversed());
  await one.sipTrunks.giveBack(null);
  assert.deepEqual([await two.sipTrunks.take(ids.slice(1)), await one.sipTrunks.take(ids)], [1, 1]);
  assert.deepEqual(await owners(), [one.nodeId(), two.nodeId()]);
  await bury();
  assert.deepEqual(await owners(), [null, two.nodeId()]);
  assert.equal(await two.sipTrunks.take(ids), 1);
});

test("[ND19] one living node holds a lease; rows of long-gone nodes are removed, their ids never reused", async () => {
  const { one, two, bury } = await createWorld();
  const taken = await Promise.all([one, two].map(({ nodes }) => nodes.takeLease("clock")));
  assert.deepEqual(taken.toSorted(), [false, true], "at the same time");
  for (const { nodes } of [one, two]) await nodes.giveLeaseBack("clock");
  assert.equal(await one.nodes.takeLease("clock"), true);
  assert.equal(await two.nodes.takeLease("clock"), false);
  assert.equal(await one.nodes.beat(
    { leaseUntil: null, state: "live", calls: 3, streams: 0, now: system.now() }), true);
  await bury();
  assert.equal(await one.nodes.beat(
    { leaseUntil: null, state: "live", calls: 0, streams: 0, now: system.now() }), false);
  assert.equal(await two.nodes.takeLease("clock"), true);
  assert.equal(await one.nodes.takeLease("clock"), false);
  await two.nodes.giveLeaseBack("clock");
  await two.nodes.leave({ now: system.now() });
  await two.nodes.recovered({ deadIds: [one.nodeId(), two.nodeId()], now: system.now() });
  system.advance(8 * DAY_MICROS / 1000);
  const next = await join();
  assert.ok(next.nodeId() > two.nodeId());
  assert.equal(await next.nodes.takeLease("clock"), true);
});
