// Templates, the first steps of an account and saved views, over the API.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback" },
});
after(async () => {
  await server.close();
  await model.close();
});

interface Step { step: string; done: boolean; name: string | null; id: string | null }
const stepsOf = async (key: string): Promise<Record<string, Step>> => {
  const { body } = await server.call("GET", "/user/first-steps", { key });
  return Object.fromEntries((body.steps as Step[]).map((step) => [step.step, step]));
};

test("[TP1] each template creates assistant, knowledge and tool together, and removes them together", async () => {
  const { key } = await server.newAccount();
  const { body: gallery } = await server.call("GET", "/user/templates", { key });
  assert.equal(gallery.data.length, 6);
  for (const { name, knowledge, tool, website } of gallery.data) {
    const made = await server.call("POST", "/user/template-sets", {
      key, body: {
        template: name, company: "Harbour Bikes", test_call: false,
        ...website ? { website: "http://127.0.0.1:9/" } : {},
      },
    });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const set = made.body.data;
    assert.equal(set.knowledgebase_id !== null, knowledge, name);
    assert.equal(set.tool_id !== null, tool, name);
    const { body: assistant } = await server.call("GET", `/user/assistant/${set.assistant_id}`, { key });
    assert.equal(assistant.status, "active");
    assert.equal(assistant.variables.company, "Harbour Bikes");
    assert.equal(assistant.knowledgebase_id, set.knowledgebase_id);
    const gone = await server.call("DELETE", `/user/template-sets/${set.id}`, { key });
    assert.equal(gone.status, 200, JSON.stringify(gone.body));
  }
  for (const [path, rows] of [
    ["/user/assistants", (body: unknown) => body], ["/user/tools", ({ data }: { data: unknown }) => data],
    ["/user/knowledgebases", ({ data }: { data: unknown }) => data],
    ["/user/template-sets", ({ data }: { data: unknown }) => data],
  ] as [string, (body: never) => unknown][]) {
    const { body } = await server.call("GET", path, { key });
    assert.deepEqual(rows((Array.isArray(body) ? { data: body } : body) as never) && (
      Array.isArray(body) ? body : body.data), [], path);
  }
});

test("[TP2] a template with missing values creates nothing, and another account's set stays", async () => {
  const { key } = await server.newAccount();
  const refused = await server.call("POST", "/user/template-sets", {
    key, body: { template: "website_faq" },
  });
  assert.equal(refused.status, 422);
  assert.ok(refused.body.errors.website);
  assert.equal((await server.call("POST", "/user/template-sets", {
    key, body: { template: "order_status", language_id: 99_999, test_call: false },
  })).status, 422);
  const nowhere = await server.call("POST", "/user/template-sets", {
    key, body: { template: "survey", timezone: "Mars/Olympus", test_call: false },
  });
  assert.equal(nowhere.status, 422);
  assert.ok(nowhere.body.errors.timezone);
  assert.deepEqual((await server.call("GET", "/user/tools", { key })).body.data ?? [], []);
  const { body: { data: set } } = await server.call("POST", "/user/template-sets", {
    key, body: { template: "survey", test_call: false },
  });
  const { key: other } = await server.newAccount();
  const path = `/user/template-sets/${set.id}`;
  assert.equal((await server.call("DELETE", path, { key: other })).status, 404);
  assert.equal((await server.call("DELETE", path, { key })).status, 200);
});

test("[TP3] first steps are done by evidence, and stay dismissed until brought back", async () => {
  const { key } = await server.newAccount();
  assert.deepEqual(Object.values(await stepsOf(key)).map(({ done }) => done),
    [false, false, false, false, false]);
  const { body: { data: set } } = await server.call("POST", "/user/template-sets", {
    key, body: { template: "support" },
  });
  assert.equal(set.call_problem, null);
  const { body: assistant } = await server.call("GET", `/user/assistant/${set.assistant_id}`, { key });
  const talk = await newConversation(server, assistant.uuid);
  assert.equal((await stepsOf(key)).reply?.done, false);
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "When are you open?" } });
  let steps = await stepsOf(key);
  // A call that was answered, and a document that was read, come when they come.
  while (Object.values(steps).some(({ done }) => !done)) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await server.call("POST", `/user/knowledgebases/${set.knowledgebase_id}/search`, {
      key, body: { query: "open" },
    });
    steps = await stepsOf(key);
  }
  assert.equal(steps.assistant?.name, "Customer support");
  assert.equal(steps.reply?.id, talk);
  assert.equal(steps.document?.name, "Questions and answers");
  assert.equal(steps.call?.id, String(set.call_id));
  for (const dismissed of [true, false]) {
    const { body } = await server.call("PUT", "/user/first-steps", { key, body: { dismissed } });
    assert.equal(body.dismissed, dismissed);
    assert.equal((await server.call("GET", "/user/overview", { key })).body.first_steps.dismissed, dismissed);
  }
  // While the test call lasts, nothing of it is removed.
  await server.call("POST", `/user/calls/${set.call_id}/end`, { key });
  let gone = await server.call("DELETE", `/user/template-sets/${set.id}`, { key });
  while (gone.status === 409) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    gone = await server.call("DELETE", `/user/template-sets/${set.id}`, { key });
  }
  assert.equal(gone.status, 200);
  assert.equal((await server.call("GET", `/user/calls/${set.call_id}`, { key })).status, 404);
});

test("[TP4] a view is saved by name, replaced by another of that name, and gone when deleted", async () => {
  const { key } = await server.newAccount();
  const save = (query: string, name = "Missed") => server.call("POST", "/user/views", {
    key, body: { list: "calls", name, query },
  });
  const first = await save("status=busy");
  assert.equal(first.status, 201);
  assert.equal((await save("status=no-answer")).body.data.id, first.body.data.id);
  const { body: { data } } = await server.call("GET", "/user/views", { key });
  assert.deepEqual(data.map(({ name, query }: { name: string; query: string }) => [name, query]),
    [["Missed", "status=no-answer"]]);
  const { key: other } = await server.newAccount();
  const path = `/user/views/${first.body.data.id}`;
  assert.equal((await server.call("DELETE", path, { key: other })).status, 404);
  // There are 100 at most, and the last one is replaced as the first was.
  for (let count = 1; count < 100; count += 1) await save("status=busy", `View ${count}`);
  assert.equal((await save("status=busy", "View 100")).status, 422);
  assert.equal((await save("status=failed")).body.data?.query, "status=failed");
  assert.equal((await server.call("DELETE", path, { key })).status, 200);
  assert.equal((await server.call("GET", "/user/views", { key })).body.data.length, 99);
});
