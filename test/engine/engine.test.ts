// The engine alone: the turn loop and its bounds, templates, history, the queue of turns.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LIMITS } from "#core/limits.ts";
import type { FunctionCall } from "#events/events.ts";
import { estimateTokens, trimHistory } from "#engine/history.ts";
import { fillTemplate } from "#engine/template.ts";
import { driveTurn } from "#engine/drive.ts";
import {
  joinFunctions, type FunctionRequest, type FunctionSource, type TurnFunctions,
} from "#engine/functions.ts";
import { createTurnQueue } from "#engine/turn-queue.ts";
import { runTurn, type TurnEvent } from "#engine/turn.ts";
import type {
  LanguageModel, ModelDelta, ModelMessage, ModelRequest,
} from "#providers/models/port.ts";
import { assertLinear } from "#support/growth.ts";
import { createManualSystem } from "#support/manual-clock.ts";

/** A model that answers its nth request with the nth script, the last one again and again. */
function modelOf(...scripts: ModelDelta[][][]): LanguageModel & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async *stream(request) {
      requests.push({ ...request, messages: [...request.messages] });
      yield* scripts[Math.min(requests.length, scripts.length) - 1] ?? [];
    },
  };
}

const text = (value: string): ModelDelta => ({ kind: "text", text: value });
const call = (id: string, argumentsJson = "{}"): ModelDelta =>
  ({ kind: "function_call", call: { id, name: "look_up", argumentsJson } });

interface RecordedFunctions extends TurnFunctions {
  calls: FunctionRequest[];
}

function recorded(result: Record<string, unknown> = { ok: true }): RecordedFunctions {
  const calls: FunctionRequest[] = [];
  return {
    calls,
    offered: [{ name: "look_up", description: "", parameters: {} }],
    call: (request) => {
      calls.push(request);
      return Promise.resolve(result);
    },
  };
}

async function run(
  model: LanguageModel,
  functions: TurnFunctions,
  signal = new AbortController().signal,
): Promise<TurnEvent[]> {
  const events: TurnEvent[] = [];
  const messages: ModelMessage[] = [{ role: "user", content: "Hello" }];
  const turn = runTurn({ model, functions, messages, temperature: 0, tokensMax: 100, signal });
  for await (const batch of turn) events.push(...batch);
  return events;
}

const spoken = (events: TurnEvent[]): string =>
  events.map((event) => (event.kind === "text" ? event.text : "")).join("");

test("[EN1] a tool's result goes back to the model, and the client sees call and result", async () => {
  const model = modelOf([[text("One moment.")], [call("c1", '{"day":"Monday"}')]], [[text("Open.")]]);
  const functions = recorded({ hours: "9-17" });
  const events = await run(model, functions);
  assert.equal(spoken(events), "One moment.\n\nOpen.");
  const args = { day: "Monday" };
  assert.deepEqual(functions.calls, [{ callId: "c1", name: "look_up", arguments: args }]);
  assert.deepEqual(events.filter(({ kind }) => kind !== "text"), [
    { kind: "function_call_start", callId: "c1", name: "look_up", arguments: args },
    {
      kind: "function_call_end", callId: "c1",
      call: { name: "look_up", arguments: args, result: { hours: "9-17" } },
    },
  ]);
  assert.deepEqual(model.requests[1]?.messages.slice(1), [
    {
      role: "assistant", content: "One moment.",
      functionCalls: [{ id: "c1", name: "look_up", argumentsJson: '{"day":"Monday"}' }],
    },
    { role: "function", functionCallId: "c1", content: '{"hours":"9-17"}' },
  ]);
});

test("[EN284] a reply whose last steps say nothing ends in its last word; a later word begins a paragraph", async () => {
  const moment = [[text("One moment.")], [call("c1")]];
  const silent = await run(modelOf(moment, [[call("c2")]], []), recorded());
  assert.equal(spoken(silent), "One moment.");
  const late = await run(modelOf(moment, [[call("c2")]], [[text("Op")], [text("en.")]]), recorded());
  assert.equal(spoken(late), "One moment.\n\nOpen.");
  const long = "x".repeat(LIMITS.replyCharsMax);
  const full = await run(modelOf(moment, [[text(long)]]), recorded());
  assert.equal(spoken(full).length, LIMITS.replyCharsMax);
});

test("[EN184] all that a model said before a function goes back to it, and that is no end of the reply", async () => {
  const model = modelOf(
    [
      [text("One "), text("moment.")],
      [text(" Please."), call("a"), { kind: "finish", reason: "length", usage: null }],
    ],
    [[call("b")]], [[text("Open.")]]);
  const events = await run(model, recorded({ long: "x".repeat(LIMITS.functionResultCharsMax) }));
  assert.equal(spoken(events), "One moment. Please.\n\nOpen.");
  assert.ok(!events.some(({ kind }) => kind === "truncated"));
  const [, said, result] = model.requests[1]?.messages ?? [];
  assert.equal(said?.content, "One moment. Please.");
  assert.equal(result?.content.length, LIMITS.functionResultCharsMax);
});

test("[EN2] a model that only ever calls tools is ended by the limits on steps and calls", async () => {
  const model = modelOf([[call("a"), call("b"), call("c")]]);
  const functions = recorded();
  await run(model, functions);
  assert.equal(model.requests.length, LIMITS.turnStepsMax);
  assert.equal(functions.calls.length, LIMITS.functionCallsPerTurnMax);
  assert.deepEqual(model.requests.at(-1)?.functions, [], "the last step has nothing to call");
});

test("[EN3] arguments that are not a usable JSON object never reach a tool", async () => {
  const huge = JSON.stringify({ text: "x".repeat(LIMITS.toolArgumentsBytesMax) });
  for (const bad of ["[1]", "{", "null", '"text"', huge]) {
    const functions = recorded();
    const model = modelOf([[call("c", bad)]], [[text("Sorry.")]]);
    assert.equal(spoken(await run(model, functions)), "Sorry.", bad.slice(0, 20));
    assert.deepEqual(functions.calls, []);
  }
  const functions = recorded();
  await run(modelOf([[call("c", '{"__proto__":{"x":1},"a":1}')]], [[text("Done.")]]), functions);
  assert.deepEqual(functions.calls[0]?.arguments, { a: 1 });
});

test("[EN4] an endless reply is cut at its limit", async () => {
  const model = modelOf(Array.from({ length: 50 }, () => [text("x".repeat(1000))]));
  assert.equal(spoken(await run(model, recorded())).length, LIMITS.replyCharsMax);
});

test("[EN5] an abort while a tool runs ends the turn without further text", async () => {
  const abort = new AbortController();
  const model = modelOf([[call("c")]], [[text("Never.")]]);
  const functions: TurnFunctions = {
    ...recorded(),
    call: () => {
      abort.abort(new Error("stopped"));
      return Promise.resolve({});
    },
  };
  await assert.rejects(run(model, functions, abort.signal), /aborted/);
  assert.equal(model.requests.length, 1);
});

test("[EN6] a template is filled in one pass: values are not scanned, unknown names remain", async () => {
  const filled = fillTemplate("{{ a }} {{b}} {{c}} {{constructor}}", { a: "{{b}}", b: "$&" });
  assert.equal(filled, "{{b}} $& {{c}} {{constructor}}");
  fc.assert(fc.property(fc.string(), fc.string(), (template, value) => {
    const out = fillTemplate(template, { name: value });
    if (!/\{\{\s*name\s*\}\}/.test(template)) assert.equal(out, template);
  }));
  await assertLinear("opened and never closed", 30_000, (size) => {
    const template = "{{".repeat(size) + " ".repeat(size);
    return () => fillTemplate(template, {});
  });
});

test("[EN7] history keeps whole messages from the newest back, within its token budget", () => {
  const message = fc.record({
    role: fc.constantFrom<"user" | "assistant">("user", "assistant"),
    content: fc.string({ minLength: 1 }), functionCalls: fc.constant<FunctionCall[]>([]),
  });
  fc.assert(fc.property(fc.array(message, { minLength: 1 }), fc.integer({ min: 1, max: 200 }),
    (newestFirst, tokensMax) => {
      const kept = trimHistory(newestFirst, tokensMax);
      const tail = newestFirst.slice(0, kept.length).reverse();
      assert.deepEqual(
        kept, tail.map(({ role, content }) => ({ role, content })), "a whole tail, in order");
      const tokens = kept.reduce((sum, { content }) => sum + estimateTokens(content), 0);
      assert.ok(kept.length === 1 || tokens <= tokensMax);
      if (kept.length < newestFirst.length && kept.length > 1) assert.equal(kept[0]?.role, "user");
    }));
});

test("[EN8] the queue runs one turn per conversation in order, and refuses those that wait too long", async () => {
  const system = createManualSystem();
  const queue = createTurnQueue(system, { max: 9, waitingMax: 2, waitMs: 1000 });
  const first = await queue.enter("a");
  await queue.enter("b");
  const order: string[] = [];
  const second = queue.enter("a").then((release) => (order.push("second"), release));
  const third = queue.enter("a").then((release) => (order.push("third"), release));
  await assert.rejects(queue.enter("a"), { status: 429 });
  assert.equal(queue.size(), 4);
  first();
  first();
  const releaseSecond = await second;
  assert.deepEqual(order, ["second"], "a release counts once");
  system.advance(1000);
  await assert.rejects(third, { status: 409 });
  releaseSecond();
  (await queue.enter("a"))();
  assert.equal(queue.size(), 1);
  assert.equal(system.pending(), 0);
});

test("[FA4] one account has at most seven eighths of the turns, those that wait included; two leave others room", async () => {
  const system = createManualSystem();
  const queue = createTurnQueue(system, { max: 8, waitingMax: 5, waitMs: 1000 });
  const first = await queue.enter("a1");
  const waiting = Array.from({ length: 5 }, () => queue.enter("a1"));
  queue.claim("a1", 1);
  const last = await queue.enter("a2");
  queue.claim("a2", 1);
  await assert.rejects(queue.enter("a2"), { status: 503 });
  const refused = await queue.enter("a3");
  assert.throws(() => queue.claim("a3", 1), { status: 503 });
  refused();
  await queue.enter("b1");
  queue.claim("b1", 2);
  await assert.rejects(queue.enter("b2"), { status: 503 }, "all are taken");
  last();
  first();
  for (const next of waiting) (await next)();
  assert.equal(queue.size(), 1);
  await queue.enter("a3");
  queue.claim("a3", 1);
  assert.equal(system.pending(), 0);

  const shared = createTurnQueue(system, { max: 32, waitingMax: 5, waitMs: 1000 });
  const take = async (key: string, accountId: number): Promise<void> => {
    const release = await shared.enter(key);
    try {
      shared.claim(key, accountId);
    } catch (error) {
      release();
      throw error;
    }
  };
  const mostOf = async (accountId: number): Promise<number> => {
    for (let turns = 0; ; turns += 1) {
      try {
        await take(`${accountId}-${turns}`, accountId);
      } catch {
        return turns;
      }
    }
  };
  assert.deepEqual([await mostOf(1), await mostOf(2), await mostOf(3)], [28, 3, 1]);
});

test("[EN60] tool results of earlier turns precede their replies; the newest are kept first", () => {
  const calls = (count: number, size: number) => Array.from({ length: count }, (_, at) => (
    { name: "look_up", arguments: { at }, result: { text: "x".repeat(size) } }));
  const turn = (count: number, size: number) => [
    { role: "assistant" as const, content: "Found.", functionCalls: calls(count, size) },
    { role: "user" as const, content: "Look", functionCalls: [] },
  ];
  const question = { role: "user" as const, content: "And?", functionCalls: [] };
  const kept = trimHistory([question, ...turn(2, 10_000), ...turn(1, 1)], 3000);
  assert.deepEqual(kept.map(({ role }) => role), [
    "user", "assistant", "function", "assistant", "user", "assistant", "function", "function", "assistant",
    "user",
  ]);
  const ids = kept.flatMap(({ functionCalls = [] }) => functionCalls.map(({ id }) => id));
  assert.equal(new Set(ids).size, 3);
  assert.deepEqual(ids.toSorted(),
    kept.flatMap(({ functionCallId }) => functionCallId ?? []).toSorted());
  assert.ok(kept.every(({ content }) => content.length <= LIMITS.historyCallCharsMax));
  const short = trimHistory([question, ...turn(2, 10_000), ...turn(1, 1)], 500);
  assert.deepEqual(short.map(({ role }) => role),
    ["user", "assistant", "user", "assistant", "user"], "words come before what functions said");
  const many = trimHistory(
    [question, ...Array.from({ length: 10 }, () => turn(4, 1)).flat()], 100_000);
  assert.equal(many.filter(({ role }) => role === "function").length, LIMITS.historyCallsMax);
  const tooMany = turn(LIMITS.historyCallsMax + 1, 1);
  assert.ok(
    trimHistory([question, ...tooMany, ...turn(1, 1)], 100_000).every(({ role }) => role !== "function"),
    "nor is an older result kept where a newer one is left out");
});

test("[EN181] the question is kept whatever the budget, also without words", () => {
  const said = (role: "user" | "assistant", content: string) =>
    ({ role, content, functionCalls: [] });
  assert.deepEqual(trimHistory([said("user", "")], 1), [{ role: "user", content: "" }]);
  const kept = trimHistory([said("assistant", "Good day to you."), said("user", "Hello")], 1);
  assert.deepEqual(kept.map(({ content }) => content), ["Good day to you."]);
  const silent = trimHistory([said("user", "And?"), said("assistant", ""), said("user", "A")], 99);
  assert.deepEqual(silent.map(({ content }) => content), ["A", "And?"]);
});

test("[EN182] a turn asks for no more tokens than its limit, and its deadline ends with it", async () => {
  const system = createManualSystem();
  for (const [asked, granted] of [[null, 50], [20, 20], [80, 50]] as const) {
    const model = modelOf([[text("At nine.")]]);
    await driveTurn({
      gather: async () => ({
        persona: {
          uuid: "", name: "A", systemPrompt: "", variables: {}, timezone: "UTC",
        },
        variables: {}, reference: null, languages: { main: "English", others: [] },
        historyNewestFirst: [{ role: "user", content: "When?", functionCalls: [] }],
        model, functions: joinFunctions([]), temperature: 0, tokensMax: asked,
      }),
      receiver: () => undefined, abort: new AbortController(), system,
      limits: { turnTotalMs: 1000, replyTokensMax: 50, historyTokensMax: 100 },
    });
    assert.equal(model.requests[0]?.tokensMax, granted);
    assert.equal(system.pending(), 0);
  }
});

test("[EN183] of two functions with one name the first is offered and called; an abort ends the wait", async () => {
  const asked: string[] = [];
  const source = (of: string, answer: () => Promise<Record<string, unknown>>): FunctionSource => ({
    offered: [{ name: "look_up", description: of, parameters: {} }],
    call: () => {
      asked.push(of);
      return answer();
    },
  });
  const { offered, call: callFunction } = joinFunctions([
    source("first", () => new Promise(() => undefined)), source("second", async () => ({})),
  ]);
  assert.deepEqual(offered.map(({ description }) => description), ["first"]);
  const request = { callId: "c", name: "look_up", arguments: {} };
  const abort = new AbortController();
  const waiting = callFunction(request, abort.signal);
  abort.abort(new Error("too late"));
  await assert.rejects(waiting, /too late/);
  await assert.rejects(callFunction(request, abort.signal), /too late/);
  assert.deepEqual(asked, ["first", "first"]);
});
