// The OpenAPI document: complete, true and readable by other people's tools.
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { documentOf, operationsOf, type Schema } from "#support/document.ts";
import { newKnowledgebase, whenRead } from "#support/documents/knowledge.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";

const document = await documentOf();
const operations = operationsOf(document);

/** Every schema inside, with where it stands. */
function* within(schema: Schema, at: string): Generator<[string, Schema]> {
  yield [at, schema];
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    yield* within(member, `${at}.${name}`);
  }
  for (const member of schema.anyOf ?? []) yield* within(member, at);
  if (schema.items) yield* within(schema.items, `${at}[]`);
  const { additionalProperties: rest } = schema;
  if (typeof rest === "object") yield* within(rest, `${at}{}`);
}

test("[OA81] update bodies have no defaults, create bodies do", () => {
  const withDefaults = operations.flatMap(({ name, method, operation }) => {
    const schema = operation.requestBody?.content["application/json"]?.schema ?? {};
    const found = [...within(schema, name), ...[...within(schema, name)].flatMap(([at, { $ref }]) =>
      $ref === undefined ? [] : [...within(document.components.schemas[$ref.split("/").at(-1) ?? ""] ?? {}, at)])]
      .filter(([, inner]) => "default" in inner).map(([at]) => at);
    return method === "put" || method === "patch" ? found : [];
  });
  assert.deepEqual(withDefaults, []);
  const { post } = document.paths["/user/assistant"] ?? {};
  const created = post?.requestBody?.content["application/json"]?.schema.properties ?? {};
  assert.equal(created.status?.default, "inactive");
});

test("[OA82] every operation lists its status codes and requires the body it needs", () => {
  assert.ok(operations.length > 140);
  for (const { name, path, method, operation } of operations) {
    const statuses = Object.keys(operation.responses);
    const has = (...wanted: string[]): void => {
      for (const status of wanted) assert.ok(statuses.includes(status), `${name}: ${status}`);
    };
    assert.ok(statuses.every((status) => /^[1-5]\d\d$/.test(status)), `${name}: ${statuses.join()}`);
    if (operation.security.length > 0) has("401", "403", "429", "503");
    if (operation.requestBody) has("400", "413");
    if (path.includes("{")) has("404", "500", "503");
    if (operation.parameters?.some((parameter) => parameter.in === "query")) has("422");
    const body = operation.requestBody?.content["application/json"]?.schema ?? {};
    const bodies = (body.anyOf ?? [body]).map(({ $ref, ...bare }) =>
      document.components.schemas[$ref?.split("/").at(-1) ?? ""] ?? bare);
    if (bodies.every(({ required, type }) => required ?? type === "array")) {
      assert.equal(operation.requestBody?.required, true, name);
    }
    if (method === "get") assert.equal(operation.requestBody, undefined, name);
  }
  for (const alias of ["/user/campaign", "/leads/{id}", "/ai/generate-reply", "/user/folders/{id}"]) {
    const [first] = Object.values(document.paths[alias] ?? {});
    assert.equal(first?.deprecated, true, alias);
  }
});

test("[OA88] too many concurrent changes of one row answer 409, and the document says so", async () => {
  const toggles = ["webhook", "inbound-webhook", "conversation-ended-webhook"].flatMap((name) =>
    [`/user/assistants/enable-${name}`, `/user/assistants/disable-${name}`]);
  const named = ["/user/assistant/{id}", "/user/tools/{id}", ...toggles, "/user/tools/{id}/refresh"];
  for (const path of named) {
    const { post, put, patch } = document.paths[path] ?? {};
    for (const operation of post ? [post] : [put, patch]) assert.ok(operation?.responses["409"], path);
  }
  const server = await startTestServer();
  const { id } = await newAssistant(server);
  // What the document does not have is refused by `server.call`.
  const answers = await Promise.all(Array.from({ length: 80 }, (_, at) =>
    server.call("PUT", `/user/assistant/${id}`, { body: { max_duration: 100 + at } })));
  const refused = answers.filter(({ status }) => status !== 200);
  for (const { status, body } of refused) {
    assert.deepEqual([status, body], [
      409, { message: "The assistant is being changed by someone else. Please try again." },
    ]);
  }
  await server.close();
});

test("[OA254] the message route's protocol is a parameter; another value means what none does", async () => {
  const { post } = document.paths["/conversations/{uuid}/messages"] ?? {};
  const asked = post?.parameters?.find(({ name }) => name === "protocol");
  assert.deepEqual([asked?.in, asked?.schema], ["query", { type: "string", const: "ai-sdk" }]);
  const server = await startTestServer();
  const uuid = await newConversation(server, (await newAssistant(server)).uuid);
  const { status, body } = await server.call(
    "POST", `/conversations/${uuid}/messages?protocol=other`, { body: { message: "Hi" } });
  assert.deepEqual([status, body.status], [200, true]);
  await server.close();
});

test("[OA495] the example of a body whose fields exclude each other is accepted as it is", async () => {
  const exampleOf = (method: string, path: string) =>
    document.paths[path]?.[method]?.requestBody?.content["application/json"]?.example as object;
  const server = await startTestServer();
  const documents = `/user/knowledgebases/${await newKnowledgebase(server)}/documents`;
  const { body: made } = await server.call("POST", documents, {
    body: { name: "Hours", type: "text", text: "We open at ten." },
  });
  for (const method of ["put", "patch"]) {
    const body = exampleOf(method, "/user/knowledgebases/{id}/documents/{document_id}");
    await whenRead(server, made.data.id, { times: method === "put" ? 1 : 2 });
    const changed = await server.call(
      method.toUpperCase(), `${documents}/${made.data.id}`, { body });
    assert.equal(changed.body.data?.name, "Prices 2026", JSON.stringify(changed.body));
  }
  const path = "/user/people/delete";
  const counted = await server.call("POST", path, { body: exampleOf("post", path) });
  assert.deepEqual([counted.status, counted.body.dry_run], [200, true]);
  const both = { conversation_id: crypto.randomUUID(), phone_number: "+4915112345678" };
  for (const body of [{}, both]) {
    const { status, body: told } = await server.call("POST", path, { body });
    assert.deepEqual(
      [status, told.message], [422, "Name either a conversation_id or a phone_number."]);
  }
  await server.close();
});

test("[OA496] a conversation is handed back whoever has it, and the document says no otherwise", async () => {
  const path = "/user/conversations/{uuid}";
  const refusesHeld = (move: string): boolean =>
    document.paths[`${path}/${move}`]?.post?.responses["409"] !== undefined;
  assert.deepEqual([refusesHeld("take-over"), refusesHeld("hand-back")], [true, false]);
  const server = await startTestServer();
  const uuid = await newConversation(server, (await newAssistant(server)).uuid);
  const { body: other } = await server.call("POST", "/user/api-keys", { body: { name: "Other" } });
  const move = (kind: string, key = server.key) =>
    server.call("POST", `${path.replace("{uuid}", uuid)}/${kind}`, { key });
  assert.equal((await move("take-over")).status, 200);
  assert.equal((await move("take-over", other.api_key.token)).status, 409);
  const { status, body } = await move("hand-back", other.api_key.token);
  assert.deepEqual([status, body.desk], [200, "assistant"]);
  await server.close();
});

test("[OA87] a route that requires a file takes only a form, and the file is required", () => {
  const uploads = operations.filter(({ operation }) =>
    operation.requestBody?.content["multipart/form-data"] !== undefined);
  assert.deepEqual(uploads.map(({ path, operation }) => [
    path,
    Object.keys(operation.requestBody?.content ?? {}).includes("application/json"),
    operation.requestBody?.required,
    operation.requestBody?.content["multipart/form-data"]?.schema.required?.includes("file"),
  ]), [
    ["/user/knowledgebases/{id}/documents", true, true, false],
    ["/user/leads/import", false, true, true],
    ["/user/leads/import/preview", false, true, true],
    ["/conversations/{uuid}/attachments", false, true, true],
    ["/user/conversations/{uuid}/attachments", false, true, true],
  ]);
});

test("[OA83] every operation, parameter and field has a description and an example", () => {
  const { schemas } = document.components;
  const gaps: string[] = [];
  const judge = (at: string, { $ref, type, description, examples }: Schema): void => {
    if ($ref !== undefined) return;
    if (!description || description.includes("undefined")) gaps.push(`${at}: description`);
    if (examples === undefined && type !== "null") gaps.push(`${at}: example`);
  };
  const walk = (at: string, schema: Schema): void => {
    for (const [inner, found] of within(schema, at)) {
      for (const [name, field] of Object.entries(found.properties ?? {})) {
        judge(`${inner}.${name}`, field);
      }
    }
  };
  for (const [name, schema] of Object.entries(schemas)) {
    judge(name, schema);
    walk(name, schema);
  }
  for (const { name, operation } of operations) {
    if (!operation.description) gaps.push(`${name}: description`);
    for (const { name: parameter, description, example } of operation.parameters ?? []) {
      if (!description) gaps.push(`${name} ?${parameter}: description`);
      if (example === undefined) gaps.push(`${name} ?${parameter}: example`);
    }
    for (const content of [operation.requestBody?.content, ...Object.values(operation.responses)
      .map((response) => response.content)]) {
      for (const [type, { schema, example }] of Object.entries(content ?? {})) {
        walk(name, schema);
        if (type === "application/json" && example === undefined) gaps.push(`${name}: example`);
      }
    }
  }
  assert.deepEqual(gaps, []);
  assert.ok(Object.keys(schemas).length > 60);
});

test("[OA90] a field that is always null has type null, and no other example", () => {
  const schemas = [
    ...Object.values(document.components.schemas),
    ...operations.flatMap(({ operation }) => Object.values(operation.responses)
      .flatMap(({ content }) => Object.values(content ?? {}).map(({ schema }) => schema))),
  ].flatMap((schema) => [...within(schema, "")]);
  const nulls = schemas.filter(([, { description }]) => /^always null/i.test(description ?? ""));
  assert.ok(nulls.length > 0);
  assert.deepEqual(nulls.filter(([, { type }]) => type !== "null").map(([at]) => at), []);
});

// spectral's and the client generators' checks take packages of 275 MB, so they are run by hand, in
// a folder of their own: `npx spectral lint` with `spectral:oas`, and clients of
// openapi-typescript, orval and swagger-typescript-api compiled with `tsc --strict`.
test("[OA85] redocly's recommended rules find nothing, examples that do not fit included", async () => {
  const problems = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: "openapi.json",
    config: await createConfig({ extends: ["recommended"] }),
  });
  assert.deepEqual(problems.map(({ ruleId, message, location }) =>
    `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`), []);
});

test("[OA84] [OA92] the document is built once, sent compressed, and not resent to a client that has it", async () => {
  const server = await startTestServer();
  const ask = (headers: Record<string, string>) =>
    new Promise<{ status: number; etag: string; encoding: string; bytes: number }>((resolve) => {
      request(`${server.url}/openapi.json`, { headers }, (answer) => {
        let bytes = 0;
        answer.on("data", (chunk: Buffer) => (bytes += chunk.length));
        answer.on("end", () => resolve({
          status: answer.statusCode ?? 0,
          etag: String(answer.headers.etag),
          encoding: String(answer.headers["content-encoding"]),
          bytes,
        }));
      }).end();
    });
  const plain = await ask({});
  const packed = await ask({ "Accept-Encoding": "gzip" });
  const unwanted = await ask({ "Accept-Encoding": "br, gzip;q=0" });
  const again = await ask({ "If-None-Match": packed.etag });
  assert.equal(plain.status, 200);
  assert.equal(packed.encoding, "gzip");
  assert.equal(unwanted.encoding, "undefined");
  assert.ok(packed.bytes * 5 < plain.bytes);
  assert.equal(packed.etag, plain.etag);
  assert.deepEqual([again.status, again.bytes], [304, 0]);
  await server.close();
});
