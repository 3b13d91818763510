// Tools read from cURL commands and OpenAPI documents, without a browser.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { importTools } from "#ui/dashboard/pages/tools/import.ts";

const one = (text: string) => {
  const [imported, ...others] = importTools(text);
  assert.ok(imported && others.length === 0);
  return imported;
};
const shapeOf = (text: string) => {
  const { fields: { headers, schema, ...rest } } = one(text);
  return {
    ...rest,
    headers: headers.map(({ name, value }) => [name, value]),
    schema: schema.map(({ name, type, isRequired }) => [name, type, isRequired]),
  };
};

test("[DB370] a cURL command becomes a tool: method, address, headers, parameters for the model", () => {
  assert.deepEqual(shapeOf(String.raw`curl -X PATCH 'https://example.com/orders/state?shop=Main%20St' \
    -H "Authorization: Bearer 8f2c" -H 'Content-Type: application/json' \
    --data-raw '{"order_number": "4711", "count": 2, "is_express": true, "sizes": ["s", "m"], "from": {"city": "Oslo"}}'`), {
    name: "state", description: "", method: "PATCH", endpoint: "https://example.com/orders/state",
    timeout: 10, body_format: "json", static_fields: [], mcp: null,
    headers: [["Authorization", "Bearer 8f2c"]],
    schema: [
      ["shop", "string", true], ["order_number", "string", true], ["count", "number", true],
      ["is_express", "boolean", true], ["sizes", "list of strings", true],
    ],
  });
  const form = shapeOf("curl example.com/bookings -u ann:secret -d name=Ann -d guests=2 -m 4");
  assert.deepEqual(
    [form.method, form.endpoint, form.body_format, form.timeout, form.headers, form.schema],
    ["POST", "https://example.com/bookings", "form", 4, [["Authorization", `Basic ${btoa("ann:secret")}`]],
      [["name", "string", true], ["guests", "string", true]]]);
  assert.equal(shapeOf("curl -G https://example.com/find -d query=tube").method, "GET");
  assert.deepEqual(one("curl https://example.com/x?a=1").fields.static_fields, [{ key: "a", value: "1" }]);
  assert.match(String(one(`curl https://e.com -d '{"a_b":{}}'`).notes), /"a_b" is a list or an object/);
  for (const [text, said] of [
    ["curl -X TRACE https://example.com", /cannot send TRACE/], ["curl -s", /names no address/],
    ["curl 'https://example.com", /quotation mark/], ["hello", /neither a cURL command/],
  ] as const) assert.throws(() => importTools(text), said);
});

test("[DB371] a cURL command is split like a shell does it; no pasted text hangs the parser", () => {
  const quoted = fc.string({ unit: fc.constantFrom(..."abc '\"\\$n{}:,[]\n") });
  fc.assert(fc.property(quoted, (value) => {
    const escaped = `'${value.replaceAll("'", "'\\''")}'`;
    const command = `curl https://example.com -H "X-One: "${escaped}`;
    const [, seen = ""] = execFileSync("sh", ["-c", `printf '%s\\0' ${command.slice(5)}`])
      .toString().split("\0").slice(1);
    const expected = /^X-One:\s*([\s\S]*)$/.exec(seen)?.[1];
    assert.equal(one(command).fields.headers[0]?.value, expected);
  }), { numRuns: 60 });
  fc.assert(fc.property(fc.string({ maxLength: 400 }), (text) => {
    try {
      importTools(`curl ${text}`);
    } catch (error) {
      assert.ok(error instanceof Error);
    }
  }));
  for (const long of [`curl ${"'".repeat(99_999)}`, `curl ${"\\".repeat(99_999)}`, `{${" ".repeat(99_999)}`]) {
    const startedMs = performance.now();
    assert.throws(() => importTools(long));
    assert.ok(performance.now() - startedMs < 5000);
  }
});

test("[DB372] operations of an OpenAPI document become tools, with references followed and loops ended", () => {
  const document = {
    openapi: "3.1.0", servers: [{ url: "https://api.example.com/v1/" }],
    security: [{ key: [] }],
    paths: {
      "/orders/{order_number}": {
        parameters: [{ $ref: "#/components/parameters/Order" }],
        get: { operationId: "getOrderStatus", summary: "Where an order is" },
        post: {
          description: "Changes it",
          requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Change" } } } },
        },
      },
    },
    components: {
      parameters: { Order: { name: "order_number", in: "path", schema: { type: "integer" } } },
      schemas: {
        Change: {
          required: ["state"],
          properties: {
            state: { type: "string", enum: ["new", "sent"], description: "What it becomes" },
            tags: { type: "array", items: { type: "string" } }, self: { $ref: "#/components/schemas/Loop" },
          },
        },
        Loop: { $ref: "#/components/schemas/Loop" },
      },
    },
  };
  const [read, change, ...others] = importTools(JSON.stringify(document));
  assert.equal(others.length, 0);
  assert.deepEqual(
    [read?.fields.name, read?.fields.description, read?.fields.method, read?.fields.endpoint],
    ["get_order_status", "Where an order is", "GET",
      "https://api.example.com/v1/orders/{order_number}"]);
  assert.deepEqual(read?.fields.schema.map(({ name, type }) => [name, type]), [["order_number", "number"]]);
  assert.deepEqual(change?.fields.schema.map(({ name, type, isRequired, choices }) =>
    [name, type, isRequired, choices]), [
    ["order_number", "number", true, ""], ["state", "string", true, "new, sent"],
    ["tags", "list of strings", false, ""],
  ]);
  assert.deepEqual(change?.fields.headers.map(({ name }) => name), ["Authorization"]);
  assert.match(String(change?.notes), /"self" cannot be filled in/);
  assert.throws(() => importTools('{"paths":{}}'), /no operation/);
});
