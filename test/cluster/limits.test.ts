// What several nodes bound together: rates, and how many watch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { shareLimits } from "#cluster/limits.ts";
import { countWatchers } from "#cluster/watchers.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { createRateLimiter } from "#core/rate-limit.ts";
import { nextTurn } from "#core/system.ts";
import type { Topic } from "#events/events.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createMemoryWires } from "#support/nodes/memory-wires.ts";

const log = createLogger("silent");
const COUNT = 5;
/** What is under way between nodes has arrived. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await nextTurn();
};

function createWorld(nodeIds: number[]) {
  const system = createManualSystem();
  const wires = createMemoryWires(system);
  let living = nodeIds;
  const alive = () => living.map((id) => ({ id, url: null, draining: false }));
  return {
    system, wires,
    live: (ids: number[]) => void (living = ids),
    nodes: nodeIds.map((nodeId) => ({ cluster: { nodeId, alive }, wire: wires.connect(), log })),
  };
}

test("[WI31] one node counts a key's requests for all; while it does not answer each counts for itself", async () => {
  const { system, wires, nodes, live } = createWorld([1, 2, 3]);
  const limiters = nodes.map((node) => shareLimits(node, {
    send: createRateLimiter([{ count: COUNT, windowMs: 60_000 }], { system, keysMax: 100 }),
  }).send);
  const passages = async (keys: string[], times: number): Promise<number> => {
    let allowed = 0;
    for (let time = 0; time < times; time += 1) {
      for (const key of keys) {
        for (const limiter of limiters) if ((await limiter.take(key)).allowed) allowed += 1;
      }
    }
    return allowed;
  };
  const keys = Array.from({ length: 12 }, (_, index) => `key ${index}`);
  assert.equal(await passages(keys, 3), COUNT * keys.length);
  for (const key of keys) await limiters[1]?.giveBack(key);
  assert.equal(await passages(keys, 2), keys.length, "each key has one passage back");
  const refused = await limiters[0]?.take("key 0");
  assert.ok(refused && !refused.allowed && refused.limit === COUNT && refused.retryAfterMs > 0);

  wires.stop();
  assert.equal(await passages(["fresh"], COUNT + 1), COUNT * nodes.length, "each for itself");
  for (const limiter of limiters) await limiter.giveBack("fresh");
  assert.equal(await passages(["fresh"], 2), nodes.length, "each has its own passage back");
  wires.start();
  // It is listed, and does not answer in its time.
  live([1, 2, 3, 4]);
  wires.connect().subscribe("limit.4", () => undefined);
  const late = Promise.all(
    Array.from({ length: 16 }, async (_, index) => await limiters[0]?.take(`late ${index}`)));
  await settled();
  system.advance(LIMITS.askLimitMs);
  assert.ok((await late).every((decision) => decision?.allowed));
});

test("[WI33] a limit unknown to the node that counts a key is counted by each node for itself", async () => {
  const { system, nodes } = createWorld([1, 2]);
  const limiter = () =>
    createRateLimiter([{ count: COUNT, windowMs: 60_000 }], { system, keysMax: 100 });
  const [first, second] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
  const newer = shareLimits(first, { send: limiter(), added: limiter() });
  shareLimits(second, { send: limiter() });
  const allowed = await Promise.all(Array.from({ length: 12 }, async (_, index) =>
    (await newer.added.take(`key ${index}`)).allowed));
  assert.deepEqual(allowed, allowed.map(() => true));
});

test("[WI32] a node asks the others for their watchers of a topic only once its own share is reached", async () => {
  const { system, wires, nodes, live } = createWorld([1, 2]);
  const open = [2, 3];
  const asked: Topic[] = [];
  const [elsewhere] = nodes.map((node, index) => countWatchers({
    ...node,
    count: (topic) => {
      if (index > 0) asked.push(topic);
      return open[index] ?? 0;
    },
  }));
  assert.ok(elsewhere);
  assert.deepEqual([await elsewhere("account:1", 6), asked], [0, []]);
  open[0] = 3;
  assert.deepEqual([await elsewhere("account:1", 6), asked], [3, ["account:1"]]);
  live([1, 2, 3]);
  wires.connect().subscribe("watchers.3", () => undefined);
  const silent = elsewhere("account:1", 6);
  await settled();
  system.advance(LIMITS.askLimitMs);
  assert.equal(await silent, 3);
});
