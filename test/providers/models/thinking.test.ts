// Models that think before they answer, as their servers send it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DONE, END, ask, chunk, setUp } from "#support/model-calls.ts";

const said = (...contents: string[]): string =>
  contents.map((content) => chunk({ content })).join("");

test("[MO54] thinking in tags before the answer is not said, however it is cut", async (t) => {
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
