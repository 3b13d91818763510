// What the model is told of a talk that is longer than it is told: its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import { createSummarise } from "#features/calls/briefing.ts";
import { createEvaluate } from "#features/calls/evaluation.ts";
import type { LanguageModel } from "#providers/models/port.ts";

/** Half of a character that has two UTF-16 units. */
const HALF = /\p{Surrogate}/u;

test("[ER757] the transcript of a long talk is cut between two characters", async () => {
  const asked: string[] = [];
  const model: LanguageModel = {
    async *stream({ messages }) {
      asked.push(String(messages.at(-1)?.content));
      yield [{ kind: "text", text: "{}" }];
    },
  };
  const options = { resolveModel: () => model, system: createSystem(), log: createLogger("silent") };
  const assistant = {
    settings: { system_prompt: "", post_call_evaluation: true, post_call_schema: [{
      name: "happy", type: "bool", description: "",
    }] },
  } as unknown as Assistant;
  for (const end of ["", "."]) {
    const text = `${"🙂".repeat(40_000)}${end}`;
    await createEvaluate({ ...options, isOffline: () => false })(
      assistant, [{ speaker: "customer", text } as never], new AbortController().signal);
    await createSummarise(options)({
      assistant, instructions: "", language: "English", localTime: "noon",
      history: [{ role: "user", content: text, functionCalls: [] }],
    });
  }
  assert.equal(asked.length, 4);
  for (const text of asked) {
    assert.match(text, /🙂{9999,}/u);
    assert.doesNotMatch(text, HALF);
  }
});
