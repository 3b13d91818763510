// Batches of JSON-RPC at the MCP endpoint: only the revision 2025-03-26 has them.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { LEGACY_VERSIONS, MODERN_VERSION } from "#gateways/mcp/server.ts";
import { startTestServer } from "#support/server.ts";
import { createMcpCaller, type Free } from "#support/vendors/mcp-caller.ts";

const server = await startTestServer({
  env: { PARLEY_RATE_LIMITS: "on", PARLEY_RATE_KEY_BURST: "100" },
});
after(() => server.close());
const { post } = createMcpCaller(server);

const ping = (id: unknown) => ({ jsonrpc: "2.0", id, method: "ping" });
const NOTE = { jsonrpc: "2.0", method: "notifications/initialized" };

test("[MC72] a batch is answered if the revision has batches (2025-03-26), and each message counts", async () => {
  const named = { headers: { "MCP-Protocol-Version": "2025-03-26" } };
  for (const options of [{}, named]) {
    const { status, body } = await post([
      ping(1), NOTE, ping(null), 7,
      { jsonrpc: "2.0", id: "t", method: "tools/call", params: { name: "get_balance" } },
      { jsonrpc: "2.0", id: 2, method: "initialize", params: { protocolVersion: "2025-03-26" } },
    ], options);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(body[0], { jsonrpc: "2.0", id: 1, result: {} });
    assert.deepEqual(
      body.map(({ id, error }: Free) => [id, error?.code]),
      [[1, undefined], [undefined, -32600], [undefined, -32600], ["t", undefined], [2, -32600]]);
    assert.equal(body[3].result.isError, false);
  }
  const told = await post([NOTE, NOTE]);
  assert.deepEqual([told.status, told.body], [202, null]);
  for (const version of [MODERN_VERSION, ...LEGACY_VERSIONS.slice(0, 2)]) {
    const { status, body } = await post([ping(1)], { headers: { "MCP-Protocol-Version": version } });
    assert.deepEqual([status, body.error.code], [400, -32600], version);
    assert.match(body.error.message, /one message per request/);
  }
  const long = await post(Array.from({ length: LIMITS.mcpBatchMax + 1 }, (_, id) => ping(id)));
  assert.deepEqual([long.status, long.body.error.code], [400, -32600]);

  const limited = await startTestServer({
    env: { PARLEY_RATE_LIMITS: "on", PARLEY_RATE_KEY_BURST: "2" },
  });
  const three = await post([ping(1), ping(2), ping(3)], { on: limited });
  assert.deepEqual([three.status, three.body.error], [429, "Rate limit exceeded"]);
  await limited.close();
});
