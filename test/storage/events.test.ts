// The order of events: how they are published, sent as webhooks and read again.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createMemoryBus } from "#events/bus.ts";
import { accountTopic, type CommittedEvent } from "#events/events.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const model = await startScriptedModel();
const receiver = await startWebhookReceiver();
const server = await startTestServer({
  env: { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8", PARLEY_MODEL_URL: model.url },
});
after(async () => {
  for (const { close } of [server, receiver, model]) await close();
});

const event = (id: number): CommittedEvent => ({
  id, accountId: 1, accountSequence: id, conversationId: null, callId: null, sequence: 0,
  type: "balance_changed", json: "{}", createdAt: 0,
});

test("[EV8] events of one commit are published by number, in whatever order its commands are answered", async () => {
  const bus = createMemoryBus();
  const seen: number[] = [];
  const commits: number[][] = [];
  bus.watch((events) => commits.push(events.map(({ id }) => id)));
  bus.subscribe(accountTopic(1), (notice) => {
    if (notice.kind === "committed") seen.push(notice.event.id);
  });
  /** A caller of a command that was answered by the commit, some promises further up. */
  const caller = async (events: CommittedEvent[], promises: number): Promise<void> => {
    for (let index = 0; index < promises; index += 1) await Promise.resolve();
    bus.publishCommitted(events);
  };
  await new Promise<void>((committed) => setImmediate(() => {
    void Promise.all([caller([event(2), event(1)], 9), caller([event(3)], 1), caller([], 2)])
      .then(() => process.nextTick(committed));
  }));
  assert.deepEqual(seen, [1, 2, 3]);
  assert.deepEqual(commits, [[1, 2, 3]]);
});

test("[WH13] an endpoint's webhooks come by number; catching up loses nothing", async () => {
  const { accountId, key } = await server.newAccount({ balance: "0" });
  const call: typeof server.call = (method, path, options) =>
    server.call(method, path, { key, ...options });
  const hook = await call("POST", "/user/webhook-endpoints", {
    body: { url: `${receiver.url}/hook`, events: ["*"] },
  });
  assert.equal(hook.status, 201, JSON.stringify(hook.body));
  await server.app.features.accounts.credit(accountId, 5_000_000);
  model.script(() => ({ tokens: ["Nine."] }));
  const { uuid } = await newAssistant(server, {}, key);
  const conversations = await Promise.all(
    Array.from({ length: 8 }, () => newConversation(server, uuid, { type: "widget" })));
  const say = (text: string) => Promise.all(conversations.map(async (conversation) => {
    const { status } = await server.call(
      "POST", `/conversations/${conversation}/messages`, { body: { message: text } });
    assert.equal(status, 200);
  }));
  const numbers = () => receiver.received.map(({ body }) => Number(body.id));
  await say("one");
  const total = async (): Promise<number> =>
    (await call("GET", "/user/events?limit=100")).body.data.length;
  await receiver.until(await total());
  // As if the receiver had been down from here on: it catches up from the newest it has.
  const known = numbers();
  await say("two");
  const missed: number[] = [];
  for (let after = known.at(-1) ?? 0, more = true; more;) {
    const page = (await call("GET", `/user/events?after=${after}&limit=7`)).body;
    missed.push(...page.data.map(({ id }: { id: string }) => Number(id)));
    after = Number(page.next);
    more = page.has_more;
  }
  const inOrder = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
  const all = inOrder(await total());
  assert.deepEqual([...known, ...missed], all);
  await receiver.until(all.length);
  assert.deepEqual(numbers(), all);
});
