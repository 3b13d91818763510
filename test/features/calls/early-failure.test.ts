// A reply that is asked for ahead of its time and that the model refuses: what the call costs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLogger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import { createSystem } from "#core/system.ts";
import type { CallingOptions, LiveCall } from "#features/calls/live-call.ts";
import { reply } from "#features/calls/replies.ts";

/** A call whose model refuses every reply, with what the media thread is told. */
function refusedCall() {
  const told: object[] = [];
  const options = {
    media: { send: (message: object) => told.push(message) },
    system: createSystem(), limits: LIMITS, log: createLogger("silent"),
    observeEager: () => undefined,
    resolveTurn: () => Promise.reject(new Error("the model answered 401")),
  } as unknown as CallingOptions;
  const call = {
    id: 1, isOver: false, turn: null, history: [], replies: { given: 0, failure: null },
    assistant: { settings: {} }, languages: [],
  } as unknown as LiveCall;
  return { options, call, told };
}
const AHEAD = { question: null, detected: null, ahead: "" };

test("[CR463] an early reply that failed as the customer's turn ended counts as failed", async () => {
  const { options, call, told } = refusedCall();
  await reply(options, call, 2, AHEAD);
  assert.deepEqual(told, [{ kind: "reply_end", callId: 1, turn: 2, failed: true }]);
  assert.equal(call.replies.failure, null, "nobody hears it yet");
  call.turn?.goAhead();
  await setImmediate();
  assert.deepEqual(call.replies, { given: 0, failure: "the model answered 401" });
});

test("[CR463] a dropped early reply does not count", async () => {
  const { options, call } = refusedCall();
  await reply(options, call, 2, AHEAD);
  call.turn?.abort.abort(new Error("the customer goes on"));
  await setImmediate();
  assert.deepEqual(call.replies, { given: 0, failure: null });
});
