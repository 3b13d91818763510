// What OpenAI's routes refuse before they answer, and what the document says they need.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import OpenAI from "openai";
import { documentOf, type Schema } from "#support/document.ts";
import { startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

const ROUTES = [
  ["post", "/v1/chat/completions"], ["get", "/v1/models"], ["get", "/v1/models/{model}"],
] as const;

const document = await documentOf();

/** The last part of a reference. */
const named = (reference: Pick<Schema, "$ref"> | undefined): string =>
  reference?.$ref?.split("/").at(-1) ?? "";

test("[PR21] the OpenAPI document says that OpenAI's routes need a key, and how they refuse", () => {
  for (const [method, path] of ROUTES) {
    const operation = document.paths[path]?.[method];
    assert.deepEqual(operation?.security, [{ apiKey: [] }], path);
    for (const status of ["401", "429", "500", "503"]) {
      const { responses, schemas } = document.components;
      const name: string = named(operation.responses[status]);
      const inner: Schema | undefined = responses[name]?.content?.["application/json"]?.schema;
      const schema: Schema | undefined = schemas[named(inner)];
      assert.deepEqual(Object.keys(schema?.properties?.error?.properties ?? {}),
        ["message", "type", "param", "code"], `${path} ${status}`);
    }
  }
  const open = document.paths["/conversations/{uuid}/messages"]?.post;
  assert.deepEqual(open?.security, []);
  assert.equal(open.responses["401"], undefined);
});

test("[PR22] every malformed request is refused in OpenAI's error format", async () => {
  const body = (text: string) => ({ body: text });
  const cases: [method: string, path: string, options: object, status: number, type: string][] = [
    ["POST", "/v1/chat/completions", body("{"), 400, "invalid_request_error"],
    ["POST", "/v1/chat/completions", body("[]"), 400, "invalid_request_error"],
    ["POST", "/v1/chat/completions", body("[".repeat(40)), 400, "invalid_request_error"],
    ["POST", "/v1/chat/completions", body('{"__proto__":1}'), 400, "invalid_request_error"],
    ["POST", "/v1/chat/completions", body(" ".repeat(5_000_000)), 413, "invalid_request_error"],
    ["POST", "/v1/chat/completions", { ...body("{}"), key: null }, 401, "authentication_error"],
    ["GET", "/v1/models", { key: null }, 401, "authentication_error"],
    ["GET", "/v1/models/no-uuid", {}, 404, "invalid_request_error"],
  ];
  for (const [method, path, options, status, type] of cases) {
    const reply = await server.call(method, path, { key: server.key, ...options });
    assert.equal(reply.status, status, path);
    assert.deepEqual(Object.keys(reply.body), ["error"]);
    assert.deepEqual(Object.keys(reply.body.error), ["message", "type", "param", "code"]);
    assert.equal(reply.body.error.type, type);
  }
});

test("[PR23] pages of any origin may call these routes", async () => {
  const headers = { Origin: "https://chat.example" };
  const { status, headers: told } = await server.call("GET", "/v1/models", { key: server.key, headers });
  assert.equal(status, 200);
  assert.equal(told.get("access-control-allow-origin"), "https://chat.example");
});

test("[PR92] CORS allows every header that OpenAI's own client adds", async () => {
  const sent: string[] = [];
  const openai = new OpenAI({
    apiKey: server.key, baseURL: `${server.url}/api/v1`, maxRetries: 0,
    dangerouslyAllowBrowser: true, defaultHeaders: { "X-Trace": "1" },
    fetch: (url, init) => {
      sent.push(...new Headers(init?.headers).keys());
      return fetch(url, init);
    },
  });
  await openai.models.list();
  assert.ok(sent.includes("x-stainless-lang"));
  const { status, headers } = await server.call("OPTIONS", "/v1/models", {
    key: null,
    headers: {
      "Origin": "https://chat.example", "Access-Control-Request-Method": "GET",
      "Access-Control-Request-Headers": sent.join(","),
    },
  });
  assert.equal(status, 204);
  const allowed = (headers.get("access-control-allow-headers") ?? "").toLowerCase().split(/, */);
  assert.deepEqual(sent.filter((name) => !allowed.includes(name)), []);
  const odd = await server.call("OPTIONS", "/v1/models", {
    key: null,
    headers: { "Origin": "https://chat.example", "Access-Control-Request-Headers": "a b;c" },
  });
  assert.doesNotMatch(odd.headers.get("access-control-allow-headers") ?? "", /;/);
});

test("[OU4] a client with another base URL reads which one it is", async () => {
  for (const baseURL of [`${server.url}/v1`, `${server.url}/api`, server.url]) {
    const openai = new OpenAI({ apiKey: server.key, baseURL, maxRetries: 0 });
    for (const ask of [
      () => openai.models.list(),
      () => openai.chat.completions.create({
        model: "any", messages: [{ role: "user", content: "Hello" }],
      }),
    ]) {
      await assert.rejects(ask, (error) => error instanceof OpenAI.NotFoundError
        && error.message.includes("base URL ends in /api/v1"), baseURL);
    }
  }
});

test("[PR91] calls to OpenAI's other APIs get an error that names the supported ones", async () => {
  const { key } = server;
  const openai = new OpenAI({ apiKey: key, baseURL: `${server.url}/api/v1`, maxRetries: 0 });
  const asked = [
    () => openai.responses.create({ model: "any", input: "Hello" }),
    () => openai.embeddings.create({ model: "any", input: "Hello" }),
  ];
  for (const ask of asked) {
    await assert.rejects(ask, (error) => error instanceof OpenAI.NotFoundError
      && /only chat completions and models/.test(error.message));
  }
});
