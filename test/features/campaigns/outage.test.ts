// The dialler while the database is away.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld } from "#support/calls/campaigns-by-clock.ts";

test("[OP338] while campaigns cannot be read the dialler logs it once, and once that they can be again", async () => {
  const world = await createWorld({
    startMs: Date.UTC(2026, 2, 4, 17), fate: () => ({ fate: "human", seconds: 5 }),
  });
  const { running } = world.storage.campaigns;
  const pass = async (): Promise<void> => {
    world.wake();
    await world.settle();
  };
  world.storage.campaigns.running = () => Promise.reject(new Error("away"));
  for (let passes = 0; passes < 3; passes += 1) await pass();
  world.storage.campaigns.running = running;
  for (let passes = 0; passes < 2; passes += 1) await pass();
  assert.deepEqual(world.logged, [
    "dialling for campaigns failed", "dialling for campaigns works again",
  ]);
  await world.close();
});
