// Models that think before they answer, as their servers send it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DONE, END, REQUEST, adaptor, ask, chunk, never, setUp } from "#support/vendors/model-calls.ts";
import type { ModelDelta, ModelFunctionCall } from "#providers/models/port.ts";

const said = (...contents: string[]): string =>
  contents.map((content) => chunk({ content })).join("");

test("[MO54] thinking in tags before the answer is not spoken, however it is split", async (t) => {
  const cases: [body: string, text: string][] = [
    [said("<think>", "\nRude. ", "Be nice.\n</think>", "\n\nHello ", "there."), "Hello there."],
    [said("<th", "ink>no</th", "ink", ">", "\n", "\nHello"), "Hello"],
    [said("<think>\n\n</think>\n\nHello"), "Hello"],
    [said("\n<think>a</think>\n<think>b</think>Hello"), "Hello"],
    [said("<think>a < b </thin </think>Hello"), "Hello"],
    // Whatever only looks like it, or comes later, is the answer.
    [said("<thin", "g> is a tag"), "<thing> is a tag"],
    [said("\n", " <b>Hello</b>"), "\n <b>Hello</b>"],
    [said("Write <think>so</think>"), "Write <think>so</think>"],
    [said("<think>a</think>Use ", "<think>b</think>"), "Use <think>b</think>"],
    [said("<thi"), "<thi"],
    [said(" ".repeat(600), " ".repeat(600), "a"), `${" ".repeat(1200)}a`],
    [said("<think>and so on"), ""],
  ];
  for (const [body, expected] of cases) {
    const { model } = await setUp(t, [{ body: body + END }, { body: body + END, chunkBytes: 7 }]);
    for (let turn = 0; turn < 2; turn += 1) {
      const { error, finish, text } = await ask(model);
      assert.deepEqual([text, finish?.kind, error], [expected, "finish", undefined], body);
    }
  }
  const whole = { message: { content: "<think>\nhm\n</think>\n\nHello" }, finish_reason: "stop" };
  const json = { "content-type": "application/json" };
  const body = JSON.stringify({ choices: [whole] });
  const unstreamed = await setUp(t, [{ headers: json, body }]);
  assert.equal((await ask(unstreamed.model)).text, "Hello");
  const apart = chunk({ reasoning_content: "hm" }) + chunk({ reasoning: "hm", content: null })
    + chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] })
    + said("Hello") + DONE;
  assert.equal((await ask((await setUp(t, [{ body: apart }])).model)).text, "Hello");
});

test("[MO55] the server gets its signatures and thinking back with its function calls", async (t) => {
  const signature = { google: { thought_signature: "c2ln" } };
  const called = { name: "f", arguments: "{}" };
  const body = chunk({ reasoning_content: "I should " }) + chunk({ reasoning_content: "look." })
    + chunk({ tool_calls: [{ id: "a", extra_content: signature, function: called }] })
    + chunk({ tool_calls: [{ id: "b", function: called }] }, "tool_calls") + DONE;
  const plain = chunk({ reasoning: "hm" })
    + chunk({ tool_calls: [{ id: "c", function: called }] }, "tool_calls") + DONE;
  const { server, model } = await setUp(t, [{ body }, { tokens: ["so"] }, { body: plain }]);
  const callsOf = (deltas: ModelDelta[]): ModelFunctionCall[] =>
    deltas.flatMap((delta) => (delta.kind === "function_call" ? [delta.call] : []));
  const goOn = (calls: ModelFunctionCall[], other = model) => ask(other, never, {
    ...REQUEST,
    messages: [...REQUEST.messages, { role: "assistant", content: "", functionCalls: calls },
      ...calls.map(({ id }) =>
        ({ role: "function", content: "1", functionCallId: id }) as const)],
  });
  const calls = callsOf((await ask(model)).items.flat());
  await goOn(calls);
  const wire = (id: string, extra = {}) => ({ id, type: "function", function: called, ...extra });
  const returned = wire("a", { extra_content: signature });
  assert.deepEqual(server.requests[1]!.messages[1], {
    role: "assistant", content: null, reasoning_content: "I should look.",
    tool_calls: [returned, wire("b")],
  });
  // Others, as a fallback, are sent nothing that they did not write.
  const other = adaptor({ url: server.url });
  t.after(() => other.close());
  const [nothing] = [callsOf((await ask(other)).items.flat())];
  await goOn(calls, other);
  await goOn(nothing);
  const bare = (...ids: string[]) =>
    ({ role: "assistant", content: null, tool_calls: ids.map((id) => wire(id)) });
  assert.deepEqual(server.requests[3]!.messages[1], bare("a", "b"));
  assert.deepEqual(server.requests[4]!.messages[1], bare("c"));
});
