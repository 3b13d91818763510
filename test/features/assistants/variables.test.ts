// One rule for variables on every route that takes them, and limits that count characters.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { variablesOf } from "#features/webhooks/inbound-webhook.ts";
import { assistantBody, newConversation } from "#support/server.ts";
import { startProtocolWorld } from "#support/vendors/server-with-model.ts";

const world = await startProtocolWorld();
const { model, server, fresh } = world;
after(() => world.close());

const GIVEN = {
  "Customer Name": "Ann", count: 3, vip: true, order: { lines: [1, 2] }, tags: ["a"], none: null,
};
const KEPT = {
  "Customer Name": "Ann", count: "3", vip: "true", order: '{"lines":[1,2]}', tags: '["a"]',
};

type Answer = Awaited<ReturnType<typeof server.call>>;

/** Every route that takes variables: sends them, and says what it keeps of them. */
async function routes() {
  const owner = await fresh({ type: "outbound", status: "active" });
  const { key, id, uuid } = owner;
  const call = (path: string, body: object, method = "POST"): Promise<Answer> =>
    server.call(method, path, { key, body });
  const campaign = (await call("/user/campaigns", { name: "C", assistant_id: id })).body.data;
  const variablesAt = async (path: string): Promise<unknown> =>
    (await server.call("GET", path, { key })).body.variables;
  return {
    assistants: {
      send: (variables: unknown) => call("/user/assistant", assistantBody({ variables })),
      kept: ({ body }: Answer) => variablesAt(`/user/assistant/${body.data.id}`),
    },
    conversations: {
      send: (variables: unknown) => call("/conversations", { assistant_id: uuid, variables }),
      kept: ({ body }: Answer) => variablesAt(`/conversations/${body.conversation_id}`),
    },
    "generate-reply": {
      send: (variables: unknown) => call("/user/ai/generate-reply", {
        assistant_id: id, customer_identifier: "c", message: "Hello", variables,
      }),
      kept: ({ body }: Answer) => variablesAt(`/conversations/${body.conversation_id}`),
    },
    leads: {
      send: (variables: unknown) => call("/user/lead", {
        campaign_id: campaign.id, phone_number: "+14155550123", allow_dupplicate: true, variables,
      }),
      kept: ({ body }: Answer) => Promise.resolve(body.data.variables),
    },
    make_call: {
      send: (variables: unknown) => call("/user/make_call", {
        assistant_id: id, phone_number: "+14155550123", variables,
      }),
      kept: ({ body }: Answer) => variablesAt(`/user/calls/${body.call_id}`),
    },
  };
}

test("[NP2] merged message by message, a conversation has no more variables than one request may give", async () => {
  const { send, kept } = (await routes())["generate-reply"];
  const full = Object.fromEntries(
    Array.from({ length: LIMITS.variablesMax }, (_, at) => [`v${at}`, "x"]));
  await send(full);
  assert.deepEqual(await kept(await send({ more: "x", v1: "y" })), { ...full, v1: "y" });
});

test("[CV64] variables follow one rule on every route: objects as JSON text, names with spaces", async () => {
  const long = "x".repeat(LIMITS.variableNameCharsMax + 1);
  const refused: unknown[] = [
    "text", { "a{b": "x" }, { " ": "x" }, { [long]: "x" },
    { a: "x".repeat(LIMITS.variableCharsMax + 1) },
    Object.fromEntries(Array.from({ length: LIMITS.variablesMax + 1 }, (_, at) => [`v${at}`, "x"])),
  ];
  for (const [name, { send, kept }] of Object.entries(await routes())) {
    const taken = await send(GIVEN);
    assert.ok(taken.status < 300, `${name}: ${JSON.stringify(taken.body)}`);
    assert.deepEqual(await kept(taken), KEPT, name);
    const list = await send([{ a: "1" }, { b: 2 }]);
    assert.ok(list.status < 300, `${name}: ${JSON.stringify(list.body)}`);
    for (const variables of refused) {
      const { status, body } = await send(variables);
      assert.equal(status, 422, `${name}: ${JSON.stringify(variables).slice(0, 60)}`);
      assert.match(Object.keys(body.errors as object).join(), /variables/, name);
    }
  }
  assert.deepEqual(variablesOf(JSON.stringify({ variables: GIVEN })), KEPT);
  assert.deepEqual(variablesOf(JSON.stringify({ ...GIVEN, "a{b": "x", [long]: "x" })), KEPT);
});

test("[CV65] a name with spaces fills its placeholder, and one with blanks around it", async () => {
  const { uuid } = await fresh({
    initial_message: "Hi {{Customer Name}}{{end}}",
    system_prompt: "Serve {{ Customer Name }}: {{order}}",
  });
  const { body } = await server.call("POST", "/conversations", {
    body: { assistant_id: uuid, variables: { ...GIVEN, " end\t": "!" } },
  });
  assert.equal(body.history[0].content, "Hi Ann!");
  await server.call("POST", `/conversations/${body.conversation_id}/messages`, {
    body: { message: "Hello" },
  });
  assert.equal(model.requests.at(-1)?.messages[0]?.content, 'Serve Ann: {"lines":[1,2]}'
    + "\n\nThe language of this conversation is English, unless these instructions say otherwise.");
});

test("[CV66] limits count characters: 2,000 emoji are accepted, one more is not", async () => {
  const { key, uuid, id } = await fresh();
  const conversation = await newConversation(server, uuid);
  const most = "😀".repeat(LIMITS.messageCharsMax);
  const ways: [name: string, send: (text: string) => Promise<{ status: number }>][] = [
    ["message", (message) => server.call("POST", `/conversations/${conversation}/messages`, {
      body: { message },
    })],
    ["AI SDK", (text) => server.call("POST",
      `/conversations/${conversation}/messages?protocol=ai-sdk`,
      { body: { messages: [{ role: "user", parts: [{ type: "text", text }] }] } })],
    ["generate-reply", (message) => server.call("POST", "/user/ai/generate-reply", {
      key, body: { assistant_id: id, customer_identifier: "c", message },
    })],
    ["variable", (text) => server.call("POST", "/conversations", {
      body: { assistant_id: uuid, variables: { a: text + text } },
    })],
    ["name", (text) => server.call("PUT", `/user/assistant/${id}`, {
      key, body: { name: [...text].slice(0, 255 + [...text].length - LIMITS.messageCharsMax).join("") },
    })],
  ];
  for (const [name, send] of ways) {
    assert.equal((await send(most)).status, 200, name);
    assert.equal((await send(`${most}😀`)).status, 422, name);
  }
});
