// Deleting many calls or conversations at once, and all that is kept of one person, over HTTP and
// over the records.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { createSystem } from "#core/system.ts";
import { LIMITS } from "#core/limits.ts";
import { BY_OPERATOR } from "#features/accounts/audit.ts";
import { createPersonData } from "#features/calls/records/person-data.ts";
import { createBulk } from "#features/conversations/bulk.ts";
import { askUntil } from "#support/asking.ts";
import { auditBeside, rowsBeside, runBeside } from "#support/databases/beside.ts";
import { newAssistant, newConversation, openBeside, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: {
    PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  },
});
after(async () => {
  await server.close();
  await model.close();
});
const { calls, assistants, accounts } = server.app.features;

async function fresh() {
  const account = await server.newAccount({ balance: "20" });
  const { token: ana } = await accounts.createKey(account.accountId, "Ana");
  const { id, uuid } = await newAssistant(
    server, { type: "outbound", status: "active" }, account.key);
  const assistant = await assistants.find(account.accountId, id);
  assert.ok(assistant);
  const begin = async (number: string | null, conversationUuid: string | null = null) => {
    const { call } = await calls.begin({
      assistant, type: number ? "outbound" : "web", conversationUuid,
      assistantPhone: null, customerPhone: number, variables: {},
    });
    return call;
  };
  const talk = async (
    number: string | null, conversationUuid: string | null = null, text = "plum",
  ): Promise<number> => {
    const call = await begin(number, conversationUuid);
    await calls.change(call, "in-progress", { answeredBy: "human" });
    await calls.addTranscript(call, {
      speaker: "customer", text, startMs: 0, endMs: 1, interrupted: false,
      functionCalls: [],
    });
    await calls.end(call, {
      finalStatus: "ended_by_customer", reason: "customer_hung_up", turns: [], hasRecording: false,
    });
    await calls.finish(call, { evaluation: {}, evaluationError: null });
    return call.id;
  };
  const ask = (path: string, body: object) => server.call("POST", path, { key: ana, body });
  const ids = async (list: string): Promise<unknown[]> => {
    const { data } = (await server.call("GET", `/user/${list}?per_page=100`, account)).body;
    return (data as { id: unknown }[]).map((row) => row.id).toReversed();
  };
  /** Money is right, numbers have no holes, and nothing says what was said. */
  const assertSound = async (): Promise<void> => {
    const { body } = await server.call("GET", "/user/ledger/verification", account);
    assert.equal(body.ok, true);
    assert.deepEqual((await auditBeside(server.dataDir)).problems, []);
    const storage = await openBeside(server.dataDir);
    const events = await storage.events.ofAccount(account.accountId, 0, 10_000);
    await storage.close();
    assert.deepEqual(
      events.map(({ accountSequence }) => accountSequence), events.map((_, index) => index + 1));
    assert.ok(events.every(({ json }) => !json.includes("plum")), "no event says it");
  };
  const audit = async (action: string) =>
    (await server.call("GET", `/user/audit?action=${action}`, account)).body.data as {
      actor: { name: string }; object: object; details: object;
    }[];
  return { ...account, id, uuid, begin, talk, ask, ids, assertSound, audit };
}

test("[CR440] calls are deleted in bulk, each audited; unfinished ones are named, others' are untouched", async () => {
  const { begin, talk, ask, ids, assertSound, audit } = await fresh();
  const other = await fresh();
  const [kept, one, two] = [
    await talk("+15550100001", null, "pear"), await talk("+15550100002"), await talk("+15550100003"),
  ];
  const live = await begin("+15550100004");
  const theirs = await other.talk("+15550100005");
  const gone = await ask("/user/calls/bulk-delete", { call_ids: [one, live.id, two, one, theirs, 999_999] });
  assert.deepEqual([gone.status, gone.body], [200, { deleted: [one, two], live: [live.id] }]);
  assert.deepEqual(await ids("calls"), [kept, live.id]);
  assert.deepEqual(await other.ids("calls"), [theirs]);
  assert.deepEqual((await audit("call.delete")).map(({ actor, object }) => [actor.name, object]), [
    ["Ana", { type: "call", id: String(two) }], ["Ana", { type: "call", id: String(one) }],
  ]);
  for (const wrong of [[], Array<number>(101).fill(1), ["x"], 1]) {
    assert.equal((await ask("/user/calls/bulk-delete", { call_ids: wrong })).status, 422);
  }
  await calls.change(live, "busy", {});
  const again = await ask("/user/calls/bulk-delete", { call_ids: [live.id, kept] });
  assert.deepEqual(again.body, { deleted: [live.id, kept], live: [] });
  await assertSound();
});

test("[BL348] a call deleted before its cost was aggregated still counts for its assistant", async () => {
  const { key, uuid, talk, ask } = await fresh();
  const first = await talk("+15550100021");
  assert.equal((await server.call("DELETE", `/user/calls/${first}`, { key })).status, 200);
  const second = await talk("+15550100022");
  assert.equal((await ask("/user/calls/bulk-delete", { call_ids: [second] })).status, 200);
  await talk("+15550100023");
  assert.equal((await ask("/user/people/delete", { phone_number: "+15550100023" })).status, 200);
  const { body } = await server.call("GET", "/user/costs", { key });
  assert.deepEqual(
    (body.groups as { id: string; entries: number }[]).map(({ id, entries }) => [id, entries]),
    [[uuid, 3]]);
});

test("[CR441] a person's chats, calls and leads are deleted together, counted; ledger, audit and do-not-call list stay", async () => {
  const { key, accountId, id, uuid, begin, talk, ask, ids, assertSound, audit } = await fresh();
  const secret = (await server.call("POST", `/user/assistants/${id}/identity-secret`, { key }))
    .body.secret as string;
  const visitor = (name: string) => ({
    id: name, hash: createHmac("sha256", secret).update(name).digest("hex"), name,
  });
  const say = async (conversation: string, message: string): Promise<void> => {
    const { status } = await server.call(
      "POST", `/conversations/${conversation}/messages`, { body: { message } });
    assert.equal(status, 200);
  };
  const talks = [
    await newConversation(server, uuid, { visitor: visitor("ada") }),
    await newConversation(server, uuid, { visitor: visitor("ada"), anew: true }),
    await newConversation(server, uuid, { visitor: visitor("bo") }),
    await newConversation(server, uuid), await newConversation(server, uuid),
  ];
  const [first = "", second = "", bo = "", nobody = ""] = talks;
  for (const conversation of talks) {
    await say(conversation, [first, second, nobody].includes(conversation) ? "plum" : "pear");
  }
  const inChat = await talk(null, second);
  const balance = async () => (await server.call("GET", "/user/me", { key })).body.total_balance;
  const before = await balance();

  // One visitor: counted first, then deleted; an unsigned one is one conversation.
  const person = { conversation_id: first };
  const counted = await ask("/user/people/delete", { ...person, dry_run: true });
  const counts = { conversations: 2, calls: 1, leads: 0, busy: 0 };
  assert.deepEqual([counted.status, counted.body], [200, { dry_run: true, ...counts }]);
  assert.equal((await ids("calls")).length, 1);
  const gone = await ask("/user/people/delete", person);
  assert.deepEqual([gone.status, gone.body], [200, { dry_run: false, ...counts }]);
  assert.deepEqual([(await ids("conversations")).includes(bo), await ids("calls")], [true, []]);
  assert.equal((await server.call("GET", `/user/calls/${inChat}`, { key })).status, 404);
  assert.equal((await ask("/user/people/delete", person)).status, 404);
  assert.equal((await ask("/user/people/delete", { conversation_id: nobody })).body.conversations, 1);
  assert.equal(await balance(), before);

  // One number: its calls, its leads with their other numbers, what those were called, its chats.
  const number = "+15550100010";
  const campaign = (await server.call("POST", "/user/campaigns", {
    key, body: { name: "Autumn", assistant_id: id },
  })).body.data.id as number;
  const add = (phone_number: string, others: string[]) => server.call("POST", "/user/lead", {
    key, body: {
      campaign_id: campaign, phone_number, allow_dupplicate: true,
      secondary_contacts: others.map((other) => ({ phone_number: other })),
    },
  });
  await add(number, ["+15550100011"]);
  await add("+15550100012", [number]);
  await add("+15550100013", []);
  const chat = await server.call("POST", "/user/ai/generate-reply", {
    key, body: { assistant_id: id, customer_identifier: number, message: "plum" },
  });
  assert.equal(chat.status, 200, JSON.stringify(chat.body));
  const stays = await talk("+15550100014", null, "pear");
  await talk(number);
  const live = await begin(number);
  await server.call("POST", "/user/blocked-numbers", { key, body: { phone_number: number } });
  const most = await ask("/user/people/delete", { phone_number: "+1 555 010 0010" });
  assert.deepEqual(most.body,
    { dry_run: false, conversations: 1, calls: 1, leads: 2, busy: 1 }, JSON.stringify(most.body));
  assert.deepEqual(await ids("calls"), [stays, live.id]);
  await calls.change(live, "failed", { reason: "carrier_failed" });
  const rest = await ask("/user/people/delete", { phone_number: number });
  assert.deepEqual(rest.body, { dry_run: false, conversations: 0, calls: 1, leads: 0, busy: 0 });
  const { data: left } = (await server.call("GET", "/user/leads", { key })).body;
  assert.deepEqual(left.map((lead: { phone_number: string }) => lead.phone_number), ["+15550100013"]);
  const { data: blocked } = (await server.call("GET", "/user/blocked-numbers", { key })).body;
  assert.deepEqual(blocked.map((one: { phone_number: string }) => one.phone_number), [number]);

  // The log says who and how many, and not whose it was.
  const deeds = await audit("person.delete");
  assert.equal(deeds.length, 4);
  assert.deepEqual([deeds.at(-1)?.actor.name, deeds.at(-1)?.object, deeds.at(-1)?.details],
    ["Ana", { type: "person", id: null }, counts]);
  assert.ok(!JSON.stringify(deeds).includes(number));
  await assertSound();

  const stranger = await server.newAccount();
  const refused = await server.call("POST", "/user/people/delete", {
    key: stranger.key, body: { conversation_id: bo },
  });
  assert.equal(refused.status, 404);
  for (const wrong of [
    {}, { conversation_id: bo, phone_number: number }, { conversation_id: "x" },
    { phone_number: "nobody" },
  ]) assert.equal((await ask("/user/people/delete", wrong)).status, 422, JSON.stringify(wrong));
  assert.ok(accountId > 0 && (await ids("conversations")).includes(bo));
});

test("[CR453] killed while deleting a person's data, a repeat deletes the rest", async () => {
  const { accountId, key, id, talk, ask, ids } = await fresh();
  const number = "+15550100077";
  const chat = await server.call("POST", "/user/ai/generate-reply", {
    key, body: { assistant_id: id, customer_identifier: number, message: "plum" },
  });
  assert.equal(chat.status, 200, JSON.stringify(chat.body));
  const [named] = await ids("conversations") as [string];
  for (let left = LIMITS.recordsGonePerWrite + 1; left > 0; left -= 1) await talk(number);
  const storage = await openBeside(server.dataDir);
  const { bus, recordings, attachments, costs } = server.app.features;
  let parts = 0;
  const dying = createPersonData({
    store: {
      ...storage.personData,
      delete: (args) => {
        parts += 1;
        return parts === 1 ? storage.personData.delete(args) : Promise.reject(new Error("killed"));
      },
    },
    recordings, attachments, costs, bus, system: createSystem(),
  });
  await assert.rejects(
    dying.remove(accountId, { conversationId: named }, BY_OPERATOR), /killed/);
  await storage.close();
  const again = await ask("/user/people/delete", { conversation_id: named });
  assert.equal(again.status, 200, "it leads to the rest");
  assert.deepEqual([await ids("calls"), await ids("conversations")], [[], []]);
  assert.equal((await server.call("GET", "/user/ledger/verification", { key })).body.ok, true);
});

test("[LD144] while a person is in another reply the named chat stays, and a repeat deletes the rest", async () => {
  const { key, id, uuid, ask, ids, assertSound, audit } = await fresh();
  const secret = (await server.call("POST", `/user/assistants/${id}/identity-secret`, { key }))
    .body.secret as string;
  const visitor = { id: "ada", hash: createHmac("sha256", secret).update("ada").digest("hex") };
  const named = await newConversation(server, uuid, { visitor });
  const other = await newConversation(server, uuid, { visitor, anew: true });
  const go = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["plum"], hold: go.promise }));
  const begun = model.waitFor("requests", model.counts.requests + 1);
  const reply = server.call("POST", `/conversations/${other}/messages`, { body: { message: "plum" } });
  await begun;
  const erase = () => ask("/user/people/delete", { conversation_id: named });
  const none = { dry_run: false, conversations: 0, calls: 0, leads: 0 };
  const first = await erase();
  go.resolve();
  assert.deepEqual([first.status, first.body], [200, { ...none, busy: 2 }]);
  assert.equal((await reply).status, 200);
  const again = await erase();
  assert.deepEqual([again.status, again.body], [200, { ...none, conversations: 2, busy: 0 }]);
  assert.equal((await erase()).status, 404);
  assert.deepEqual(await ids("conversations"), []);
  assert.equal((await audit("person.delete")).length, 2);
  await assertSound();
});

test("[CV515] a bulk delete removes a few conversations at a time; repeated after a crash it does the rest", async () => {
  const { accountId, uuid, ask } = await fresh();
  const uuids: string[] = [];
  while (uuids.length <= LIMITS.recordsGonePerWrite) {
    uuids.push(await newConversation(server, uuid));
  }
  const storage = await openBeside(server.dataDir);
  const { bus, attachments, costs } = server.app.features;
  const steps: number[] = [];
  const dying = createBulk({
    store: {
      ...storage.bulk,
      delete: (args) => {
        steps.push(args.uuids.length);
        return steps.length === 1 ? storage.bulk.delete(args) : Promise.reject(new Error("killed"));
      },
    },
    bus, attachments, costs, system: createSystem(),
  });
  await assert.rejects(dying.removeMany(accountId, uuids, BY_OPERATOR), /killed/);
  await storage.close();
  assert.deepEqual(steps, [LIMITS.recordsGonePerWrite, 1]);
  const again = await ask("/user/conversations/bulk-delete", { conversation_ids: uuids });
  assert.deepEqual(again.body, { deleted: uuids.slice(-1), busy: [] });
});

test("[CR449] deleting a call, conversation or person clears its text from deliveries and the tool journal", async () => {
  const { key, accountId, uuid, talk, ask, assertSound } = await fresh();
  const receiver = await startWebhookReceiver();
  after(() => receiver.close());
  // What is not taken waits, and so does all behind it.
  receiver.answer((_, response) => void response.writeHead(500).end());
  const hook = await server.call("POST", "/user/webhook-endpoints", {
    key, body: { url: receiver.url, events: ["*"] },
  });
  assert.equal(hook.status, 201);
  const conversation = await newConversation(server, uuid);
  const say = (message: string) =>
    server.call("POST", `/conversations/${conversation}/messages`, { body: { message } });
  assert.equal((await say("plum")).status, 200);
  await server.call("POST", `/user/conversations/${conversation}/notes`, { key, body: { text: "plum" } });
  const [of] = await rowsBeside<{ id: number; turn: number; assistant: number }>(server.dataDir, `
    SELECT c.id, t.id AS turn, c.assistant_id AS assistant
    FROM conversations c JOIN turns t ON t.conversation_id = c.id
    WHERE c.uuid = @conversation`, { conversation });
  assert.ok(of);
  const callId = await talk("+15550100020");
  const now = Date.now() * 1000;
  await runBeside(server.dataDir, "UPDATE conversations SET evaluation_due = 5 WHERE id = @id", of);
  const storage = await openBeside(server.dataDir);
  await storage.evaluations.evaluated({
    accountId, id: of.id, uuid: conversation, assistantId: of.assistant, endedAt: 5,
    values: { fruit: "plum" }, error: null, now,
  });
  for (const scope of [`turn:${of.turn}`, `call:${callId}.1`, `call:${callId}0.1`]) {
    const begun = await storage.toolJournal.begin(
      { scope, callKey: "k", accountId, toolId: 1, now });
    assert.ok(begun.kind === "started");
    await storage.toolJournal.finish(
      { accountId, id: begun.id, result: { said: "plum" }, sent: true, now });
  }
  await storage.close();
  const saying = async (table: string, column: string): Promise<number> =>
    (await rowsBeside(server.dataDir, `SELECT id FROM ${table}
      WHERE account_id = @accountId AND ${column} LIKE '%plum%'`, { accountId })).length;
  await askUntil(() => saying("webhook_deliveries", "body"), (rows) => rows >= 4);
  assert.equal(await saying("tool_calls", "result"), 3);
  await ask("/user/calls/bulk-delete", { call_ids: [callId] });
  assert.equal(await saying("tool_calls", "result"), 2);
  await ask("/user/people/delete", { conversation_id: conversation });
  assert.equal(await saying("webhook_deliveries", "body"), 0);
  assert.equal(await saying("tool_calls", "result"), 1, "another call's, which begins alike");
  await assertSound();
  const { data } = (await server.call("GET", "/user/webhook-deliveries?per_page=100", { key })).body;
  assert.ok((data as { type: string }[]).some(({ type }) => type === "conversation_deleted"));
});

test("[CR450] account events of leads and failed replies are deleted with them, and so are pending retries", async () => {
  const { key, accountId, id, uuid, ask, assertSound } = await fresh();
  const receiver = await startWebhookReceiver();
  after(() => receiver.close());
  receiver.answer((_, response) => void response.writeHead(500).end());
  await server.call("POST", "/user/webhook-endpoints", { key, body: { url: receiver.url, events: ["*"] } });
  const campaign = (await server.call("POST", "/user/campaigns", {
    key, body: { name: "Autumn", assistant_id: id },
  })).body.data.id as number;
  const [person, contact, other] = ["+15550100031", "+15550100032", "+15550100033"] as const;
  for (const [phone_number, ...others] of [[person, contact], [other]]) {
    await server.call("POST", "/user/lead", { key, body: {
      campaign_id: campaign, phone_number,
      secondary_contacts: others.map((one) => ({ phone_number: one })),
    } });
  }
  for (const phone_number of [person, contact, other]) {
    await server.call("POST", "/user/blocked-numbers", { key, body: { phone_number } });
  }
  const conversation = await newConversation(server, uuid);
  model.script(() => ({ status: 401, body: JSON.stringify({ error: { message: "plum" } }) }));
  await server.call("POST", `/conversations/${conversation}/messages`, { body: { message: "Hello" } });
  model.script(null);
  const told = async (word: string): Promise<number> => {
    const rows = await rowsBeside<{ id: number }>(server.dataDir, `
      SELECT id FROM events WHERE account_id = @accountId AND data LIKE @word
      UNION ALL SELECT id FROM webhook_deliveries WHERE account_id = @accountId AND body LIKE @word`,
    { accountId, word: `%${word}%` });
    return rows.length;
  };
  const words = [person, contact, other, "plum"];
  const all = () => Promise.all(words.map(told));
  assert.deepEqual(await all(), [2, 2, 2, 2]);
  const { data: deliveries } = (await server.call("GET", "/user/webhook-deliveries", { key })).body;
  for (const { id: delivery } of deliveries as { id: number }[]) {
    await server.call("POST", `/user/webhook-deliveries/${delivery}/replay`, { key });
  }
  assert.deepEqual(await all(), [3, 3, 3, 3]);
  assert.equal((await ask("/user/people/delete", { phone_number: person })).body.leads, 1);
  assert.deepEqual(await all(), [0, 0, 3, 3]);
  assert.equal((await ask("/user/people/delete", { conversation_id: conversation })).status, 200);
  assert.deepEqual(await all(), [0, 0, 3, 0]);
  await assertSound();
});
