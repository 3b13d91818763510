// Webhooks: what is sent, how it is signed, in which order, how often, and how to catch up.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { accountEvent } from "#support/account-events.ts";
import { askUntil } from "#support/asking.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, newConversation, openBeside, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver, type Received } from "#support/webhook-receiver.ts";

const LOOPBACK = { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
const model = await startScriptedModel();
const system = createManualSystem();
const server = await startTestServer({ system, env: LOOPBACK });
/** On a real clock, with calls. */
const live = await startTestServer({
  env: {
    ...LOOPBACK, PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url, PARLEY_CALL_PRICE: "0.01",
  },
});
const closings: (() => Promise<void>)[] = [server.close, live.close, model.close];
after(async () => {
  for (const close of closings) await close();
});

async function newReceiver() {
  const receiver = await startWebhookReceiver();
  closings.push(receiver.close);
  return receiver;
}

interface Endpoint {
  id: number;
  secret: string;
  status: string;
}

interface DeliveryRow {
  id: number;
  state: string;
  attempts: number;
  last_status: number | null;
  last_error: string;
  message_id: string;
  replay_of: number | null;
  next_attempt_at: string;
}

/** An account of its own with an endpoint for its balance. */
async function subscribed(events = ["balance_changed"], at = server) {
  const receiver = await newReceiver();
  const { accountId, key } = await at.newAccount({ balance: "0" });
  const call: typeof at.call = (method, path, options) =>
    at.call(method, path, { key, ...options });
  const { status, body } = await call("POST", "/user/webhook-endpoints", {
    body: { url: `${receiver.url}/hook`, events },
  });
  assert.equal(status, 201, JSON.stringify(body));
  const endpoint = body.data as Endpoint;
  const credit = (dollars: number) =>
    at.app.features.accounts.credit(accountId, dollars * 1_000_000);
  /** Newest first. */
  const deliveries = async (): Promise<DeliveryRow[]> =>
    (await call("GET", "/user/webhook-deliveries?per_page=100")).body.data as DeliveryRow[];
  return { receiver, accountId, key, call, endpoint, credit, deliveries };
}

/** Throws when no signature is right; the package's own check also looks at today's clock. */
function verify(secret: string, { id, text, headers }: Received): unknown {
  const at = new Date(Number(headers["webhook-timestamp"]) * 1000);
  const right = new Webhook(secret).sign(id, at, text);
  assert.ok(String(headers["webhook-signature"]).split(" ").includes(right));
  return JSON.parse(text);
}

test("[WH1] endpoints: created with a secret, listed, changed, removed; per account; limited in number", async () => {
  const { call, endpoint, accountId } = await subscribed();
  assert.match(endpoint.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  const { accounts } = server.app.features;
  const reader = await accounts.createKey(accountId, "reads", { scopes: ["read"] });
  const seen = await call("GET", "/user/webhook-endpoints", { key: reader.token });
  assert.equal(seen.body.data[0].secret, "***");
  const stranger = await server.newAccount();
  for (const [method, path] of [
    ["GET", ""], ["PUT", ""], ["DELETE", ""], ["POST", "/test"], ["POST", "/rotate-secret"],
  ] as const) {
    const { status, body } = await call(method, `/user/webhook-endpoints/${endpoint.id}${path}`, {
      key: stranger.key, ...(method === "PUT" ? { body: { status: "disabled" } } : {}),
    });
    assert.deepEqual([status, body.message], [404, "Webhook endpoint not found"]);
  }
  for (const bad of [{ url: "ftp://x" }, { url: "x" }, {}, { url: "https://x.example", events: [] },
    { url: "https://x.example", events: ["No Such"] }]) {
    assert.equal((await call("POST", "/user/webhook-endpoints", { body: bad })).status, 422);
  }
  const changed = await call("PUT", `/user/webhook-endpoints/${endpoint.id}`, {
    body: { url: "https://other.example/x", events: ["*"] },
  });
  assert.deepEqual([changed.body.data.url, changed.body.data.events], ["https://other.example/x", ["*"]]);
  for (let count = 1; count < 50; count += 1) {
    const { status } = await call("POST", "/user/webhook-endpoints", {
      body: { url: "https://x.example" },
    });
    assert.equal(status, 201);
  }
  const tooMany = await call("POST", "/user/webhook-endpoints", { body: { url: "https://x.example" } });
  assert.equal(tooMany.status, 422);
  assert.equal((await call("DELETE", `/user/webhook-endpoints/${endpoint.id}`)).status, 200);
  assert.equal((await call("GET", `/user/webhook-endpoints/${endpoint.id}`)).status, 404);
});

test("[WH2] an event is delivered once, signed per Standard Webhooks, with its place in the log", async () => {
  const { receiver, endpoint, credit, call, deliveries } = await subscribed();
  await credit(3);
  const [message] = await receiver.until(1);
  assert.ok(message);
  const { id, type, timestamp, data } = verify(endpoint.secret, message) as {
    id: string; type: string; timestamp: string; data: { balance: number };
  };
  assert.deepEqual([type, data.balance], ["balance_changed", 3]);
  assert.equal(timestamp, "2026-01-15T12:00:00.000000Z");
  const [delivery] = await askUntil(deliveries, (all) => all[0]?.state === "delivered");
  assert.deepEqual([delivery?.attempts, delivery?.message_id], [1, message.id]);
  const { body: page } = await call("GET", `/user/events?after=${Number(id) - 1}`);
  assert.deepEqual(page.data[0], { ...data, type, id, created_at: timestamp });
  // A type that is not wanted is not sent.
  await call("PUT", `/user/webhook-endpoints/${endpoint.id}`, { body: { events: ["call_ended"] } });
  await credit(1);
  assert.equal((await deliveries()).length, 1);
  assert.throws(() => verify(endpoint.secret, { ...message, text: message.text.replace("3", "4") }));
});

test("[WH3] a rejected message is retried on schedule; later ones wait and then come in order", async () => {
  const { receiver, credit, deliveries } = await subscribed();
  receiver.answer((_, response) => void response.writeHead(500).end("no"));
  await credit(1);
  await askUntil(deliveries, (all) => all[0]?.attempts === 1);
  await credit(2);
  await credit(3);
  const schedule = [5, 300, 1800, 7200, 18_000];
  for (const [index, seconds] of schedule.entries()) {
    const attempts = index + 1;
    system.leap((seconds - 1) * 1000);
    const [, , head] = await deliveries();
    assert.equal(head?.attempts, attempts, "not before its time");
    system.leap(1000 + seconds * 100 + 1);
    await askUntil(deliveries, (all) => all[2]?.attempts === attempts + 1);
  }
  const waiting = await deliveries();
  assert.deepEqual(waiting.map(({ state, attempts }) => [state, attempts]), [
    ["pending", 0], ["pending", 0], ["pending", schedule.length + 1],
  ]);
  receiver.answer(null);
  const before = receiver.received.length;
  system.leap(40_000_000);
  await askUntil(deliveries, (all) => all.every(({ state }) => state === "delivered"));
  const came = receiver.received.slice(before)
    .map(({ body }) => (body.data as { change: number }).change);
  assert.deepEqual(came, [1, 2, 3]);
  assert.equal(new Set(receiver.received.slice(0, before + 1).map(({ id }) => id)).size, 1);
});

test("[WH18] retries are sent in time when the clock is set back or the machine slept", async () => {
  for (const stepMs of [-86_400_000, 86_400_000]) {
    const { receiver, credit, deliveries } = await subscribed();
    receiver.answer((_, response) => void response.writeHead(503, { "retry-after": "600" }).end());
    await credit(1);
    await askUntil(deliveries, (all) => all[0]?.attempts === 1);
    receiver.answer(null);
    system.step(stepMs);
    system.advance(61_000);
    await askUntil(deliveries, (all) => all[0]?.state === "delivered");
  }
});

test("[WH4] after the last attempt a message is given up and the next is sent; one request resends it", async () => {
  const { receiver, credit, deliveries, call } = await subscribed();
  receiver.answer(({ body }, response) =>
    void response.writeHead((body.data as { change: number }).change === 1 ? 400 : 200).end());
  await credit(1);
  await credit(2);
  const schedule = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
  for (const [index, seconds] of schedule.entries()) {
    await askUntil(deliveries, (all) => all[1]?.attempts === index + 1);
    system.leap(seconds * 1100 + 1);
  }
  const all = await askUntil(deliveries, ([last]) => last?.state === "delivered");
  assert.deepEqual([all[1]?.state, all[1]?.attempts, all[1]?.last_status], ["dead", 10, 400]);
  receiver.answer(null);
  const { status, body } = await call("POST", `/user/webhook-deliveries/${all[1]!.id}/replay`);
  assert.deepEqual([status, body.data.replay_of], [202, all[1]!.id]);
  await askUntil(deliveries, ([replayed]) => replayed?.state === "delivered");
  assert.equal(receiver.received.at(-1)?.id, all[1]?.message_id);
  const stranger = await server.newAccount();
  for (const path of [`/${all[1]!.id}`, `/${all[1]!.id}/replay`]) {
    const method = path.endsWith("replay") ? "POST" : "GET";
    const answer = await call(method, `/user/webhook-deliveries${path}`, { key: stranger.key });
    assert.equal(answer.status, 404);
  }
});

test("[WH5] 410, or days of failure, disables an endpoint; events meanwhile are kept for replay", async () => {
  const { receiver, credit, deliveries, call, endpoint } = await subscribed();
  receiver.answer((_, response) => void response.writeHead(410).end());
  await credit(1);
  await askUntil(deliveries, ([first]) => first?.state === "dead");
  const state = async () => (await call("GET", `/user/webhook-endpoints/${endpoint.id}`)).body.data;
  assert.deepEqual(
    [(await state()).status, (await state()).disabled_reason],
    ["disabled", "the receiver answered 410 Gone"]);
  await credit(2);
  assert.deepEqual((await deliveries()).map(({ state: one }) => one), ["dead", "dead"]);
  assert.equal(receiver.received.length, 1);
  receiver.answer(null);
  await call("PUT", `/user/webhook-endpoints/${endpoint.id}`, { body: { status: "active" } });
  await call("POST", `/user/webhook-deliveries/${(await deliveries())[0]!.id}/replay`);
  await askUntil(deliveries, ([replayed]) => replayed?.state === "delivered");

  receiver.answer((_, response) => void response.destroy());
  for (const dollars of [3, 4]) await credit(dollars);
  for (let attempt = 1; (await state()).status === "active"; attempt += 1) {
    await askUntil(deliveries, (all) => all[1]?.state === "dead" || all[1]?.attempts === attempt);
    system.leap(90_000_000);
  }
  assert.equal((await state()).disabled_reason, "every delivery failed for days");
  assert.deepEqual((await deliveries()).slice(0, 2).map(({ state: one }) => one), ["dead", "dead"]);
});

test("[WH6] private addresses are not reached; redirects are not followed; endless answers are cut", async () => {
  const closed = await startTestServer({ system });
  closings.push(closed.close);
  const guarded = await subscribed(["balance_changed"], closed);
  await guarded.credit(1);
  const [refused] = await askUntil(guarded.deliveries, ([first]) => first?.attempts === 1);
  assert.match(refused?.last_error ?? "", /may not be called: .+PARLEY_ALLOW_PRIVATE_NETWORKS/);
  assert.equal(guarded.receiver.received.length, 0);
  const { receiver, credit, deliveries } = await subscribed();
  const target = await newReceiver();
  receiver.answer((_, response) => void response.writeHead(302, { location: target.url }).end());
  await credit(1);
  const [redirected] = await askUntil(deliveries, ([first]) => first?.attempts === 1);
  assert.deepEqual([redirected?.state, redirected?.last_status], ["pending", 302]);
  assert.equal(target.received.length, 0);
  receiver.answer((_, response) => void response.end("x".repeat(100_000)));
  system.advance(10_000);
  const [large] = await askUntil(deliveries, ([first]) => first?.attempts === 2);
  assert.equal(large?.state, "delivered");
});

test("[WH7] after rotation the old secret signs along for a day; Retry-After is respected", async () => {
  const { receiver, credit, call, endpoint, deliveries } = await subscribed();
  const { body } = await call("POST", `/user/webhook-endpoints/${endpoint.id}/rotate-secret`);
  assert.notEqual(body.data.secret, endpoint.secret);
  await credit(1);
  const [both] = await receiver.until(1);
  for (const secret of [endpoint.secret, body.data.secret as string]) verify(secret, both!);
  // One that is still on its way when a day passes has taken a day.
  await askUntil(deliveries, ([first]) => first?.state === "delivered");
  system.leap(86_400_001);
  receiver.answer((_, response) => void response.writeHead(429, { "retry-after": "600" }).end());
  await credit(2);
  const [, later] = await receiver.until(2);
  verify(body.data.secret as string, later!);
  assert.throws(() => verify(endpoint.secret, later!));
  const [throttled] = await askUntil(deliveries, ([first]) => first?.attempts === 1);
  const waitMs = Date.parse(throttled!.next_attempt_at) - system.now() / 1000;
  assert.ok(waitMs > 599_000 && waitMs < 601_000, `${waitMs}`);
});

test("[WH8] events to pull: in order from a position, with page ends and gaps reported", async () => {
  const { call, credit, accountId } = await subscribed();
  for (const dollars of [1, 2, 3]) await credit(dollars);
  const first = (await call("GET", "/user/events?limit=2")).body;
  assert.deepEqual([first.data.length, first.has_more, first.gap], [2, true, false]);
  const rest = (await call("GET", `/user/events?after=${first.next}`)).body;
  assert.deepEqual(
    [...first.data, ...rest.data].map(({ id }: { id: string }) => Number(id)),
    Array.from({ length: first.data.length + rest.data.length }, (_, index) => index + 1));
  assert.equal(rest.has_more, false);
  const newest = (await call("GET", `/user/events?after=${rest.next}`)).body;
  assert.deepEqual(newest, { data: [], next: rest.next, has_more: false, gap: false });
  const storage = await openBeside(server.dataDir);
  await storage.trimLog(Number.MAX_SAFE_INTEGER, 1_000_000);
  await storage.close();
  const trimmed = (await call("GET", "/user/events?after=1")).body;
  assert.deepEqual([trimmed.data, trimmed.next, trimmed.gap], [[], rest.next, true]);
  await server.app.features.accounts.credit(accountId, 1_000_000);
  const on = (await call("GET", `/user/events?after=${trimmed.next}`)).body;
  assert.deepEqual([on.data.length, on.gap], [1, false]);
});

const TALK = {
  initial_message: "Hi there.", endpoint_sensitivity: 1, status: "active", record: true,
  post_call_evaluation: true,
  post_call_schema: [{ name: "happy", type: "bool", description: "Were they happy?" }],
};

/** Answers questions, and evaluations with a happy customer. */
const answerAll = (): void => model.script(({ messages }) => ({
  tokens: [String(messages[0]?.content).includes("evaluate finished") ? "{\"happy\":true}" : "Nine."],
}));

test("[WH9] after a call its webhook has the contract's content; its answer is on the call", async () => {
  answerAll();
  const receiver = await newReceiver();
  receiver.answer((_, response) => void response.end("{\"ticket\":7}"));
  const assistant = await newAssistant(live, {
    ...TALK, type: "outbound", is_webhook_active: true, webhook_url: `${receiver.url}/calls`,
  });
  const { body: made } = await live.call("POST", "/user/make_call", {
    body: {
      phone_number: "+15550100042", assistant_id: assistant.id, variables: { customer_name: "Eva" },
    },
  });
  const [message] = await receiver.until(1);
  assert.ok(message);
  assert.equal(message.path, "/calls");
  const { body } = message;
  const { data: endpoints } = (await live.call("GET", "/user/webhook-endpoints")).body;
  const own = endpoints.find((one: { assistant_id: number }) => one.assistant_id === assistant.id);
  assert.equal(own.purpose, "post_call");
  new Webhook(own.secret as string)
    .verify(message.text, message.headers as Record<string, string>);
  assert.deepEqual(
    [body.id, body.assistant_id, body.type, body.customer_phone, body.status],
    [made.call_id, assistant.uuid, "outbound", "+15550100042", "ended_by_customer"]);
  assert.deepEqual([body.lead, body.campaign], [null, null]);
  assert.deepEqual(body.extracted_variables, { happy: true });
  assert.deepEqual(body.input_variables, { customer_name: "Eva" });
  const call = (await live.call("GET", `/user/calls/${made.call_id}`)).body;
  assert.equal(body.formatted_transcript, call.transcript);
  assert.deepEqual(
    (body.transcript as object[]).map((entry) => ({ ...entry })),
    call.transcript_entries.map(({ text, type, sender, timestamp }: Record<string, unknown>) =>
      ({ text, type, sender, timestamp })));
  assert.equal(body.duration, call.duration);
  const recording = await fetch(String(body.recording_url));
  assert.equal(recording.status, 200);
  const { webhook_response: answered } = await askUntil(
    async () => (await live.call("GET", `/user/calls/${made.call_id}`)).body,
    ({ webhook_response: stored }) => Object.keys(stored).length > 0);
  assert.equal(answered.ticket, 7);

  const ask = async (settings: object, number: string): Promise<number> => {
    const { status } = await live.call("PUT", `/user/assistant/${assistant.id}`, { body: settings });
    assert.equal(status, 200);
    const answer = await live.call("POST", "/user/make_call", {
      body: { phone_number: number, assistant_id: assistant.id },
    });
    const callId = answer.body.call_id as number;
    const ended = await accountEvent(live, ({ type, call_id: id }) =>
      type === "call_ended" && id === callId);
    assert.equal(ended.status, "busy");
    return callId;
  };
  // Only calls that were answered, unless told otherwise.
  await ask({ include_recording_in_webhook: false }, "+15550100001");
  const second = await ask({ send_webhook_only_on_completed: false }, "+15550100001");
  const [, busy] = await receiver.until(2);
  assert.deepEqual([busy?.body.id, busy?.body.status], [second, "busy"]);
  await live.call("POST", "/user/make_call", {
    body: { phone_number: "+15550100042", assistant_id: assistant.id },
  });
  const [, , unlinked] = await receiver.until(3);
  assert.equal(unlinked?.body.status, "ended_by_customer");
  assert.equal("recording_url" in unlinked.body, false);

  const { data: [sent] } =
    (await live.call("GET", `/user/webhook-deliveries?call_id=${made.call_id}`)).body;
  await live.call("POST", `/user/webhook-deliveries/${sent.id}/replay`);
  const [, , , again] = await receiver.until(4);
  assert.equal((await fetch(String(again?.body.recording_url))).status, 200);
});

test("[WH10] before an inbound call its webhook may set variables; without an answer the call goes on", async () => {
  answerAll();
  const receiver = await newReceiver();
  const cases: [answer: string | null, firstLine: string, variables: object][] = [
    [
      "{\"customer_name\":\"Eva\",\"notes\":{\"open_orders\":2}}", "AI: Hi Eva.",
      { customer_name: "Eva", notes: "{\"open_orders\":2}" },
    ],
    ["{\"variables\":{\"customer_name\":\"Ada\"}}", "AI: Hi Ada.", { customer_name: "Ada" }],
    ["nonsense", "AI: Hi friend.", {}],
    ["[]", "AI: Hi friend.", {}],
    // Nothing, for longer than a caller is kept waiting.
    [null, "AI: Hi friend.", {}],
  ];
  receiver.answer(({ path }, response) => {
    const answer = cases[Number(path.slice(1))]?.[0] ?? null;
    if (answer !== null) response.end(answer);
  });
  await Promise.all(cases.map(async ([, firstLine, variables], number) => {
    const { id } = await newAssistant(live, {
      ...TALK, initial_message: "Hi {{customer_name}}.", variables: { customer_name: "friend" },
      post_call_evaluation: false, inbound_webhook_url: `${receiver.url}/${number}`,
    });
    const { body } = await live.call("POST", "/user/try_call", { body: { assistant_id: id } });
    await accountEvent(live, ({ type, call_id: id }) =>
      type === "transcript_added" && id === body.call_id);
    const { body: call } = await live.call("GET", `/user/calls/${body.call_id}`);
    assert.equal(call.transcript.split("\n")[0], firstLine);
    assert.deepEqual(call.variables, variables);
    await live.call("POST", `/user/calls/${body.call_id}/end`);
    const asked = receiver.received.find(({ path }) => path === `/${number}`);
    assert.deepEqual(
      [asked?.body.call_id, asked?.body.customer_phone, asked?.body.status],
      [body.call_id, "+15550100000", "incoming"]);
  }));
});

test("[WH11] an ended conversation is sent with its evaluation, once unless requested again", async () => {
  answerAll();
  const receiver = await newReceiver();
  const assistant = await newAssistant(live, {
    ...TALK, timezone: "Europe/Berlin", conversation_ended_webhook_url: `${receiver.url}/ended`,
    tools: [{ type: "end_call", description: "" }],
  });
  const conversation = await newConversation(live, assistant.uuid);
  model.script(({ messages }) => {
    if (String(messages[0]?.content).includes("evaluate finished")) {
      return { tokens: ["{\"happy\":false}"] };
    }
    if (messages.at(-1)?.role === "tool") return { tokens: ["Bye."] };
    return { toolCalls: [{ id: "c", name: "end_conversation", arguments: "{}" }] };
  });
  const send = () => live.call("POST", `/conversations/${conversation}/messages`, {
    body: { message: "Good bye" },
  });
  assert.equal((await send()).status, 200);
  const [message] = await receiver.until(1);
  assert.ok(message);
  const { body } = message;
  assert.deepEqual(
    [body.conversation_id, body.assistant_id, body.type, body.status, body.message_count],
    [conversation, assistant.uuid, "widget", "ended", 3]);
  assert.deepEqual(body.extracted_variables, { happy: false });
  assert.equal(body.formatted_transcript, "AI: Hi there.\nCustomer: Good bye\nAI: Bye.");
  assert.match(String(body.ended_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+0[12]:00$/);
  // It goes on and ends again.
  await send();
  await live.call("PUT", `/user/assistant/${assistant.id}`, {
    body: { conversation_ended_retrigger: true },
  });
  await send();
  await receiver.until(2);
  const { data } = (await live.call("GET", "/user/webhook-deliveries?type=conversation_ended")).body;
  assert.equal(data.length, 2);
});
