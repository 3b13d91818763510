// A reply that is asked for while the caller may go on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createEarly } from "#features/calls/early-reply.ts";

const REQUEST = { callId: "1", name: "book", arguments: {} };

function begin() {
  const abort = new AbortController();
  const early = createEarly(abort.signal);
  const called: string[] = [];
  const settled: unknown[] = [];
  early.whenHeard(() => called.push("shown"));
  early.onSettled((...outcome) => settled.push(outcome));
  const booking = early.holdBack({
    offered: [],
    call: ({ name }) => {
      called.push(name);
      return Promise.resolve({ ok: true });
    },
  }).call(REQUEST, abort.signal);
  return { abort, early, called, settled, booking };
}

test("[VL191] a tool call of a prepared reply runs once it is heard, after being shown", async () => {
  const { early, called, settled, booking } = begin();
  await setImmediate();
  assert.deepEqual(called, []);
  early.goAhead();
  assert.deepEqual(await booking, { ok: true });
  assert.deepEqual([called, settled], [["shown", "book"], [["heard", 0]]]);
});

test("[VL191] a discarded reply calls no tool, but its tokens count", async () => {
  const { abort, early, called, settled, booking } = begin();
  early.count({ kind: "text", text: "A sentence of forty characters in all..." });
  abort.abort(new Error("not wanted"));
  await assert.rejects(booking, /not wanted/);
  await setImmediate();
  assert.deepEqual([called, settled], [[], [["dropped", 10]]]);
  const told = begin();
  told.early.count({ kind: "usage", usage: { inputTokens: 300, outputTokens: 20 } });
  told.abort.abort(new Error("not wanted"));
  await assert.rejects(told.booking);
  await setImmediate();
  assert.deepEqual(told.settled, [["dropped", 320]]);
});
