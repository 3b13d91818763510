// The beats of live calls while the database is away.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keepBeating } from "#features/calls/ending.ts";
import type { LiveCall } from "#features/calls/live-call.ts";
import { nextTurn } from "#core/system.ts";
import { createManualSystem } from "#support/manual-clock.ts";

test("[OP337] an outage is logged when the beats of calls begin to fail and when they work again", async () => {
  const system = createManualSystem();
  const logged: string[] = [];
  let isAway = false;
  let beats = 0;
  const note = (_: unknown, text: string) => logged.push(text);
  const call = { id: 1, accountId: 1, answered: system.now, isSilent: false, face: null };
  keepBeating({
    system, log: { error: note, info: (text: string) => logged.push(text) },
    calls: {
      beat: () => {
        beats += 1;
        return isAway ? Promise.reject(new Error("away")) : Promise.resolve();
      },
    },
  } as never, new Map([[1, call as never as LiveCall]]));
  for (const away of [false, true, true, true, false, false]) {
    isAway = away;
    system.advance(5000);
    await nextTurn();
  }
  assert.equal(beats, 6);
  assert.deepEqual(logged, ["storing that calls go on failed", "storing that calls go on works again"]);
});
