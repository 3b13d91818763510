// What happens while a message waits or is on its way: it is deleted, its endpoint is changed.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, test } from "node:test";
import { askUntil } from "#support/asking.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8", PARLEY_MODEL_URL: model.url },
});
const [receiver, other] = [await startWebhookReceiver(), await startWebhookReceiver()];
after(async () => {
  for (const one of [server, model, receiver, other]) await one.close();
});

test("[WH90] a conversation deleted while its webhook waits for the evaluation is sent to nobody", async () => {
  const evaluating = Promise.withResolvers<void>();
  const evaluated = Promise.withResolvers<void>();
  model.script(({ messages }) => {
    const isEvaluation = String(messages[0]?.content).includes("evaluate finished");
    if (!isEvaluation) return { tokens: ["Nine."] };
    evaluating.resolve();
    return { tokens: ["{\"happy\":true}"], hold: evaluated.promise };
  });
  const assistant = await newAssistant(server, {
    status: "active", conversation_ended_webhook_url: `${receiver.url}/ended`,
    post_call_evaluation: true,
    post_call_schema: [{ name: "happy", type: "bool", description: "Were they happy?" }],
  });
  const talk = async (): Promise<string> => {
    const uuid = await newConversation(server, assistant.uuid);
    await server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
    assert.equal((await server.call("POST", `/user/conversations/${uuid}/end`)).status, 200);
    return uuid;
  };
  const first = await talk();
  await evaluating.promise;
  const { body } = await server.call("POST", "/user/conversations/bulk-delete", {
    body: { conversation_ids: [first] },
  });
  assert.deepEqual(body.deleted, [first]);
  const second = await talk();
  evaluated.resolve();
  await receiver.until(1);
  assert.deepEqual(receiver.received.map((one) => one.body.conversation_id), [second]);
});

test("[WH91] a late answer from an endpoint's old address neither disables it nor delays the message", async () => {
  for (const refused of [410, 500]) {
    const asked = Promise.withResolvers<ServerResponse>();
    receiver.answer((_, response) => asked.resolve(response));
    const { key } = await server.newAccount();
    const call: typeof server.call = (method, path, options) =>
      server.call(method, path, { key, ...options });
    const { body: { data: { id } } } = await call("POST", "/user/webhook-endpoints", {
      body: { url: receiver.url, events: ["*"] },
    });
    await call("POST", `/user/webhook-endpoints/${id}/test`);
    const response = await asked.promise;
    await call("PUT", `/user/webhook-endpoints/${id}`, { body: { url: other.url } });
    response.writeHead(refused).end();
    const deliveries = async () =>
      (await call("GET", `/user/webhook-deliveries?endpoint_id=${id}`)).body.data;
    const [delivery] = await askUntil(deliveries, ([first]) => first.state !== "pending");
    assert.deepEqual([delivery.state, delivery.attempts], ["delivered", 2]);
    const endpoint = (await call("GET", `/user/webhook-endpoints/${id}`)).body.data;
    assert.deepEqual([endpoint.status, endpoint.disabled_reason], ["active", null]);
  }
  assert.equal(other.received.length, 2);
});

test("[WH100] after a change of address an endpoint counts as failing from the new address's first failure", async () => {
  receiver.answer((_, response) => response.writeHead(500).end());
  const { body: { data: { id } } } = await server.call("POST", "/user/webhook-endpoints", {
    body: { url: receiver.url, events: ["*"] },
  });
  const read = async () => (await server.call("GET", `/user/webhook-endpoints/${id}`)).body.data;
  const change = async (body: object) =>
    (await server.call("PUT", `/user/webhook-endpoints/${id}`, { body })).body.data.failing_since;
  await server.call("POST", `/user/webhook-endpoints/${id}/test`);
  const { failing_since: since } = await askUntil(read, (one) => one.failing_since !== null);
  assert.equal(await change({ url: receiver.url, events: ["*"] }), since, "the same address");
  assert.equal(await change({ url: `${receiver.url}/moved` }), null);
  await server.call("DELETE", `/user/webhook-endpoints/${id}`);
});

test("[MU4] an endpoint that is enabled again counts as failing from its next failure", async () => {
  receiver.answer((_, response) => response.writeHead(410).end());
  const made = await server.call("POST", "/user/webhook-endpoints", {
    body: { url: receiver.url, events: ["*"] },
  });
  const path = `/user/webhook-endpoints/${made.body.data.id}`;
  await server.call("POST", `${path}/test`);
  const disabled = await askUntil(
    async () => (await server.call("GET", path)).body.data, ({ status }) => status === "disabled");
  assert.notEqual(disabled.failing_since, null);
  const { body } = await server.call("PUT", path, { body: { status: "active" } });
  assert.deepEqual([body.data.status, body.data.failing_since], ["active", null]);
  await server.call("DELETE", path);
});

test("[MU5] no two endpoints have the same secret, whoever they belong to", async () => {
  const owners = [server.key, server.key, (await server.newAccount()).key];
  const made = await Promise.all(owners.map((key) =>
    server.call("POST", "/user/webhook-endpoints", {
      key, body: { url: other.url, events: ["call_ended"] },
    })));
  const secrets = made.map(({ body }) => body.data.secret as string);
  assert.equal(new Set(secrets).size, owners.length);
});

test("[WH111] an endpoint that was disabled is sent nothing; what waits for it is sent once it is enabled", async () => {
  for (const one of [receiver, other]) one.answer(null);
  const beforeOther = other.received.length;
  // What the test before was about may still be on its way.
  const received = () => receiver.received.filter(({ path }) => path === "/stopped").length;
  const newEndpoint = async (url: string): Promise<string> => {
    const made = await server.call("POST", "/user/webhook-endpoints", { body: { url } });
    return `/user/webhook-endpoints/${made.body.data.id}`;
  };
  const [disabled, active] = [await newEndpoint(`${receiver.url}/stopped`), await newEndpoint(other.url)];
  const asked = Promise.withResolvers<ServerResponse>();
  receiver.answer((_, response) => asked.resolve(response));
  for (const path of [disabled, disabled, active]) await server.call("POST", `${path}/test`);
  const response = await asked.promise;
  await server.call("PUT", disabled, { body: { status: "disabled" } });
  receiver.answer(null);
  response.end("{}");
  const ofDisabled = `/user/webhook-deliveries?endpoint_id=${disabled.split("/").at(-1)}`;
  await askUntil(async () => (await server.call("GET", ofDisabled)).body.data,
    ([second, first]) => first.state === "delivered" && second.state === "pending");
  await server.call("POST", `${active}/test`);
  await other.until(beforeOther + 2);
  assert.equal(received(), 1);
  await server.call("PUT", disabled, { body: { status: "active" } });
  await askUntil(async () => received(), (count) => count === 2);
  for (const path of [disabled, active]) await server.call("DELETE", path);
});

test("[WH275] an assistant's endpoint that was disabled is active again at another URL, and only there", async () => {
  receiver.answer((_, response) => response.writeHead(410).end());
  const assistant = await newAssistant(server, {
    status: "active", conversation_ended_webhook_url: `${receiver.url}/gone`,
    post_call_evaluation: false,
  });
  const end = async (): Promise<void> => {
    const uuid = await newConversation(server, assistant.uuid);
    const { status } = await server.call("POST", `/user/conversations/${uuid}/end`);
    assert.equal(status, 200);
  };
  const endpoint = async () =>
    (await server.call("GET", "/user/webhook-endpoints")).body.data
      .find((one: { assistant_id: number | null }) => one.assistant_id === assistant.id);
  const stateOf = ({ status, disabled_reason: reason, failing_since: since }: {
    status: string; disabled_reason: string | null; failing_since: string | null;
  }) => [status, reason, since === null];
  await end();
  await askUntil(endpoint, (one) => one?.status === "disabled");
  await end();
  const disabled = ["disabled", "the receiver answered 410 Gone", false];
  assert.deepEqual(stateOf(await endpoint()), disabled, "the same URL");
  const asked = Promise.withResolvers<[path: string, response: ServerResponse]>();
  other.answer(({ path }, response) => asked.resolve([path, response]));
  await server.call("PUT", `/user/assistant/${assistant.id}`, {
    body: { conversation_ended_webhook_url: `${other.url}/moved` },
  });
  await end();
  assert.deepEqual(stateOf(await endpoint()), ["active", null, true]);
  const [path, response] = await asked.promise;
  assert.equal(path, "/moved");
  response.end();
  other.answer(null);
});

test("[MU17] a message given up before its evaluation is evaluated when it is replayed", async () => {
  receiver.answer(null);
  model.script(({ messages }) => ({
    tokens: [String(messages[0]?.content).includes("evaluate finished") ? "{\"happy\":true}" : "Nine."],
  }));
  const assistant = await newAssistant(server, {
    status: "active", conversation_ended_webhook_url: `${receiver.url}/replayed`,
    post_call_evaluation: true,
    post_call_schema: [{ name: "happy", type: "bool", description: "Were they happy?" }],
  });
  const end = async (): Promise<string> => {
    const uuid = await newConversation(server, assistant.uuid);
    await server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
    await server.call("POST", `/user/conversations/${uuid}/end`);
    return uuid;
  };
  const deliveries = async () => (await server.call(
    "GET", "/user/webhook-deliveries?type=conversation_ended")).body.data;
  await end();
  const [first] = await askUntil(deliveries, ([newest]) => newest?.state === "delivered");
  const setStatus = (status: string) => server.call(
    "PUT", `/user/webhook-endpoints/${first.endpoint_id}`, { body: { status } });
  await setStatus("disabled");
  const uuid = await end();
  const [given] = await deliveries();
  assert.equal(given.state, "dead");
  await setStatus("active");
  await server.call("POST", `/user/webhook-deliveries/${given.id}/replay`);
  await askUntil(deliveries, ([newest]) => newest.id > given.id && newest.state === "delivered");
  const { body } = receiver.received.at(-1)!;
  assert.deepEqual([body.conversation_id, body.extracted_variables], [uuid, { happy: true }]);
});

test("[MU19] an assistant's endpoint can be tested; it is changed and removed on the assistant alone", async () => {
  other.answer(null);
  const assistant = await newAssistant(server, {
    status: "active", conversation_ended_webhook_url: `${other.url}/own`, post_call_evaluation: false,
  });
  await server.call("POST", `/user/conversations/${await newConversation(server, assistant.uuid)}/end`);
  const { body: { data } } = await server.call("GET", "/user/webhook-endpoints");
  const own = data.find((one: { assistant_id: number }) => one.assistant_id === assistant.id);
  const path = `/user/webhook-endpoints/${own.id}`;
  for (const [method, body] of [
    ["PUT", { url: receiver.url }], ["PUT", { events: ["*"] }], ["DELETE", undefined],
  ] as const) {
    const { status } = await server.call(method, path, body ? { body } : {});
    assert.equal(status, 422, method);
  }
  assert.deepEqual((await server.call("GET", path)).body.data, own);
  await server.call("POST", `${path}/test`);
  await askUntil(
    async () => (await server.call("GET", `/user/webhook-deliveries?endpoint_id=${own.id}`)).body.data,
    ([{ type, state }]) => type === "test" && state === "delivered");
});

test("[WH191] a disabled endpoint is neither tested nor replayed to: the refusal says so", async () => {
  const made = await server.call("POST", "/user/webhook-endpoints", { body: { url: other.url } });
  const path = `/user/webhook-endpoints/${made.body.data.id}`;
  const { body: { data: tested } } = await server.call("POST", `${path}/test`);
  await server.call("PUT", path, { body: { status: "disabled" } });
  for (const act of [`${path}/test`, `/user/webhook-deliveries/${tested.id}/replay`]) {
    const { status, body } = await server.call("POST", act);
    assert.deepEqual([status, body.message], [
      409, "The webhook endpoint is disabled: enable it first.",
    ]);
  }
  const { body: { total } } = await server.call(
    "GET", `/user/webhook-deliveries?endpoint_id=${made.body.data.id}`);
  assert.equal(total, 1);
  await server.call("DELETE", path);
});
