// What a mid-call tool costs on top of its endpoint: a call through the thread pool, the address
// guard and the journal, in turn with the same request sent straight to the endpoint.
import { createHash } from "node:crypto";
import { request } from "undici";
import { startEndpoint } from "#support/endpoint.ts";
import { startTestServer } from "#support/server.ts";
import { median, percentile, print, printResult } from "./report.ts";

const CALLS = Number(process.env.BENCH_CALLS ?? 1000);
const WARM_UP = 200;

const endpoint = await startEndpoint();
const server = await startTestServer({ env: { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" } });
const { body } = await server.call("POST", "/user/tools", {
  body: {
    name: "look_up", description: "Looks something up", endpoint: `${endpoint.url}/x`, method: "POST",
    schema: [{ name: "item", type: "string", description: "What to look up" }],
  },
});
const { tools, invokeTool } = server.app.features;
const tool = await tools.find(server.accountId, (body.data as { id: number }).id);
if (!tool) throw new Error("the tool is gone");

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await run();
  return performance.now() - startedMs;
}

const direct: number[] = [];
const through: number[] = [];
for (let count = 0; count < WARM_UP + CALLS; count += 1) {
  const item = createHash("sha256").update(String(count)).digest("hex");
  const bare = await timed(async () => {
    const response = await request(`${endpoint.url}/x`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ item }),
    });
    await response.body.json();
  });
  const called = await timed(() =>
    invokeTool(tool, { item }, { scope: `bench:${count}`, variables: {} }));
  if (count < WARM_UP) continue;
  direct.push(bare);
  through.push(called);
}
await server.close();
await endpoint.close();

const rounded = (value: number): number => Number(value.toFixed(3));
const added = (percent: number): number =>
  rounded(percentile(through, percent) - percentile(direct, percent));
print(`endpoint p50 ${rounded(median(direct))} ms, tool call p50 ${rounded(median(through))} ms`);
printResult("tools", {
  calls: CALLS, endpoint_p50_ms: rounded(median(direct)), call_p50_ms: rounded(median(through)),
  added_p50_ms: added(50), added_p99_ms: added(99),
});
