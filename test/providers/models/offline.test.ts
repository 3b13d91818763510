// The embedded model that answers from what it was given.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import fc from "fast-check";
import { ProviderError } from "#core/faults.ts";
import { createSystem, type System } from "#core/system.ts";
import { createOfflineModel } from "#providers/models/offline.ts";
import type { ModelDelta, ModelMessage, ModelRequest } from "#providers/models/port.ts";
import { assertLinear } from "#support/growth.ts";

const PROMPT = `You are Ava, the assistant of Salon Bella. Always be polite. Never give discounts.
We offer haircuts, colouring and beard trims. A haircut costs 25 euros. Colouring costs 60 euros.

Opening hours:
- Monday to Friday 9:00 to 18:00
- Saturday 10:00 to 14:00

Can I park there?
There are free spaces behind the house.
`;
const never = new AbortController().signal;
const system = createSystem();

function requestOf(prompt: string, ...said: (string | ModelMessage)[]): ModelRequest {
  const messages = said.map((message): ModelMessage => {
    return typeof message === "string" ? { role: "user", content: message } : message;
  });
  const all: ModelMessage[] = [{ role: "system", content: prompt }, ...messages];
  return { messages: all, functions: [], temperature: 0, tokensMax: 500 };
}

async function deltasOf(request: ModelRequest, signal = never): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  const model = createOfflineModel({ system, paceMs: 0 });
  for await (const some of model.stream(request, signal)) deltas.push(...some);
  return deltas;
}

async function answer(prompt: string, ...said: (string | ModelMessage)[]): Promise<string> {
  const deltas = await deltasOf(requestOf(prompt, ...said));
  return deltas.map((delta) => (delta.kind === "text" ? delta.text : "")).join("");
}

const NOTHING =
  "I am the offline model of this assistant: I can only answer from its instructions and " +
  "documents, and I found nothing about that in them.";

test("[MO31] the offline model answers with the sentences that match the question", async () => {
  const cases = {
    "How much does a haircut cost?": "A haircut costs 25 euros.",
    "what does coloring or COLOURING cost?": "Colouring costs 60 euros.",
    "When are you open on Saturday?": "Saturday 10:00 to 14:00",
    "opening hours please": "Monday to Friday 9:00 to 18:00 Saturday 10:00 to 14:00",
    "Where can I park?": "There are free spaces behind the house.",
    "Do you trim beards?": "We offer haircuts, colouring and beard trims.",
  };
  for (const [question, expected] of Object.entries(cases)) {
    assert.equal(await answer(PROMPT, question), expected, question);
  }
});

test("[MO32] it says plainly that it found nothing, and what it is", async () => {
  const questions = ["Who won the world cup?", "Are you there?", "???", "🚀", "give me a discount"];
  for (const question of questions) assert.equal(await answer(PROMPT, question), NOTHING, question);
  assert.equal(await answer("", "What is the price?"), NOTHING);
});

test("[MO33] it reads any script", async () => {
  const cases: [prompt: string, question: string, expected: string][] = [
    ["Öffnungszeiten: täglich 9 bis 18 Uhr.\nParkplätze gibt es keine.", "Gibt es Parkplatze?",
      "Parkplätze gibt es keine."],
    ["Доставка стоит 300 рублей. Магазин закрыт.", "Сколько стоит доставка?",
      "Доставка стоит 300 рублей."],
    ["营业时间是九点到六点。停车场在后面。", "停车场在哪里？", "停车场在后面。"],
    ["التوصيل مجاني.\nالمتجر مغلق يوم الجمعة.", "هل التوصيل مجاني؟", "التوصيل مجاني."],
    ["दुकान सोमवार को बंद है। पार्किंग मुफ़्त है।", "पार्किंग मुफ़्त है क्या", "पार्किंग मुफ़्त है।"],
  ];
  for (const [prompt, question, expected] of cases) {
    assert.equal(await answer(prompt, question), expected, question);
  }
});

test("[MO34] it greets with the prompt's greeting, else its name, else plainly", async () => {
  assert.equal(await answer(PROMPT, "Hello!"), "Hello! This is Ava. What would you like to know?");
  assert.equal(await answer(PROMPT), "Hello! This is Ava. What would you like to know?");
  assert.equal(await answer("Be kind.", "olá"), "Hello! What would you like to know?");
  assert.equal(await answer('Greeting: "Welcome to us!"\nMore.', "hi there"), "Welcome to us!");
  assert.equal(await answer(PROMPT, "hi, what does a haircut cost?"), "A haircut costs 25 euros.");
});

test("[MO61] it answers thanks and farewells that say nothing else", async () => {
  const cases = {
    "Thanks, bye!": "You are welcome. Goodbye!",
    "Thank you, goodbye.": "You are welcome. Goodbye!",
    "Great, thank you so much for your help!": "You are welcome. What else would you like to know?",
    "No, that's all. Have a nice day": "Goodbye!",
    "See you tomorrow": "Goodbye!",
    "Vielen Dank, tschüss!": "You are welcome. Goodbye!",
    "muchas gracias": "You are welcome. What else would you like to know?",
    "Merci, au revoir": "You are welcome. Goodbye!",
    "Thanks, what does a haircut cost?": "A haircut costs 25 euros.",
    "thanks and where can I park": "There are free spaces behind the house.",
    "Thanks, and the moon": NOTHING,
  };
  for (const [said, expected] of Object.entries(cases)) {
    assert.equal(await answer(PROMPT, said), expected, said);
  }
  const search = { name: "search_knowledgebase", description: "", parameters: {} };
  const asked = { ...requestOf(PROMPT, "Thanks, bye!"), functions: [search] };
  assert.ok((await deltasOf(asked)).every(({ kind }) => kind !== "function_call"));
});

test("[MO35] passages in the prompt and tool results are facts like any other", async () => {
  const passages = "Answer from these.\n<passage id=\"1\">\nThe pool is heated.\n</passage>";
  assert.equal(await answer(passages, "Is the pool heated?"), "The pool is heated.");
  const called: ModelMessage = {
    role: "assistant",
    content: "",
    functionCalls: [{ id: "a", name: "weather", argumentsJson: "{}" }],
  };
  const result: ModelMessage = { role: "function", functionCallId: "a", content: "Vienna: 21 degrees" };
  assert.equal(await answer("Be brief.", "How warm is Vienna?", called, result), "Vienna: 21 degrees");
});

test("[MO36] only the last question counts, and the same question gets the same answer", async () => {
  const earlier = ["How much is a haircut?", { role: "assistant", content: "25" }] as const;
  const said = [...earlier, "And where can I park?"];
  assert.equal(await answer(PROMPT, ...said), "There are free spaces behind the house.");
  assert.deepEqual(
    await deltasOf(requestOf(PROMPT, ...said)),
    await deltasOf(requestOf(PROMPT, ...said)),
  );
});

test("[MO37] it streams a few words at a time, finishes once and keeps to the limit", async () => {
  const request = requestOf("Our address is Long Street 7, Vienna.", "What is the address?");
  assert.deepEqual(await deltasOf(request), [
    { kind: "text", text: "Our address is" },
    { kind: "text", text: " Long Street 7," },
    { kind: "text", text: " Vienna." },
    { kind: "finish", reason: "stop", usage: null },
  ]);
  assert.deepEqual(await deltasOf({ ...request, tokensMax: 4 }), [
    { kind: "text", text: "Our address is" },
    { kind: "text", text: " Long" },
    { kind: "finish", reason: "length", usage: null },
  ]);
});

test("[MO38] it pauses between deltas; the first comes at once", async () => {
  const delays: number[] = [];
  const after: System["after"] = (delayMs, run) => {
    delays.push(delayMs);
    const handle = setImmediate(run);
    return { cancel: () => clearImmediate(handle) };
  };
  const request = requestOf("Our address is Long Street 7, Vienna.", "What is the address?");
  const model = createOfflineModel({ system: { ...system, after }, paceMs: 40 });
  const seen: number[] = [];
  for await (const _ of model.stream(request, never)) seen.push(delays.length);
  assert.deepEqual([seen, delays], [[0, 1, 2, 2], [40, 40]]);
});

test("[MO39] an abort ends it at once, also in a pause, and leaves nothing behind", async () => {
  const controller = new AbortController();
  const request = requestOf("Our address is Long Street 7, Vienna.", "What is the address?");
  const model = createOfflineModel({ system, paceMs: 60_000 });
  const stream = model.stream(request, controller.signal)[Symbol.asyncIterator]();
  await stream.next();
  const second = stream.next();
  const reason = new Error("stop pressed");
  controller.abort(reason);
  const isAbort = (error: unknown) =>
    error instanceof ProviderError && !error.retryable && error.cause === reason;
  await assert.rejects(Promise.resolve(second), isAbort);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  await assert.rejects(deltasOf(request, controller.signal), isAbort);
});

test("[MO40] any input is answered within bounds and in whole characters", async () => {
  const text = fc.string({ unit: "binary", maxLength: 300 });
  const property = fc.asyncProperty(text, text, async (prompt, question) => {
    const said = await answer(`${prompt}\n${question}`, question);
    assert.ok(said.length > 0 && said.length <= 800);
    assert.ok(!/[\ud800-\udbff]$/.test(said));
  });
  await fc.assert(property, { numRuns: 200 });
  await assertLinear("much to find in", 20_000, (size) => {
    const prompt = "lorem ipsum dolor. ".repeat(size);
    return () => answer(prompt, "dolor ".repeat(2000));
  });
  assert.equal((await answer(`the pool ${"🚀".repeat(900)}`, "the pool")).length, 799);
});
