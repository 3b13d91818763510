// What a model reads of a conversation whose newest messages are kept from turn to turn.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { createRecent, saidOf } from "#features/conversations/turns/recent.ts";
import type { Message } from "#features/conversations/records.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

test("[CV132] a model reads every message since its last reply, whoever wrote it and even if unanswered", async () => {
  const model = await startScriptedModel({ tokens: 2 });
  const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
  const { uuid: assistant } = await newAssistant(server, { initial_message: "Hi" });
  const uuid = await newConversation(server, assistant);
  const path = `/conversations/${uuid}/messages`;
  const send = (message: string) => server.call("POST", path, { body: { message } });
  const at = (action: string, body?: object) => server.call(
    "POST", `/user/conversations/${uuid}/${action}`, { key: server.key, ...body ? { body } : {} });
  const said = async (): Promise<string[]> => {
    const { body } = await server.call("GET", `/conversations/${uuid}`);
    return (body.history as { content: string }[]).map(({ content }) => content);
  };
  /** The last request's messages but for the instructions, a colleague's name taken away. */
  const read = (): string[] => {
    const { messages } = model.requests.at(-1) as unknown as { messages: { content: string }[] };
    return messages.slice(1).map(({ content }) => content.replace(/^\[.*, a colleague\]: /, ""));
  };
  const sendAndCompare = async (message: string): Promise<void> => {
    const before = await said();
    assert.equal((await send(message)).status, 200);
    assert.deepEqual(read(), [...before, message]);
  };
  await sendAndCompare("one");
  await sendAndCompare("two");
  model.script(() => ({ status: 400 }));
  assert.equal((await send("unanswered")).status, 400);
  model.script(null);
  await sendAndCompare("three");
  await sendAndCompare("four");
  assert.equal((await at("take-over")).status, 200);
  assert.equal((await at("messages", { message: "Ana here" })).status, 201);
  assert.equal((await send("thanks")).status, 200);
  assert.equal((await at("hand-back")).status, 200);
  await sendAndCompare("five");
  await sendAndCompare("six");
  assert.equal((await said()).length, 16);
  await server.close();
  await model.close();
});

const message = (content: string): Message => ({
  role: "user", content, author: null, functionCalls: [], stopped: false, truncated: false,
  usage: null, attachments: [], rating: null, createdAt: 0,
});
const reply = (text: string) => ({
  kind: "completed" as const, text, functionCalls: [], stopped: false, truncated: false, usage: null,
});

test("[CV133] recent messages are cached while the conversation's count matches, bounded in count and size", async () => {
  const reads: number[] = [];
  const recent = createRecent({
    recent: async (id) => {
      reads.push(id);
      return [message("stored")];
    },
  });
  const contents = async (id: number, messageCount: number | null): Promise<string[]> =>
    (await recent.read(id, messageCount)).map(({ content }) => content);
  recent.keep(1, saidOf([message("asked")], 1), reply("answered"), 0);
  assert.deepEqual(await contents(1, 2), ["answered", "asked"]);
  assert.deepEqual(reads, []);
  assert.deepEqual(await contents(1, 3), ["stored"], "somebody has written since");
  assert.deepEqual(await contents(1, null), ["stored"], "it is not known how many there are");
  const long = "x".repeat(LIMITS.historyKeptCharsMax);
  recent.keep(1, saidOf([message(long)], 1), reply("answered"), 0);
  assert.deepEqual(await contents(1, 2), ["stored"], "too long to be kept");
  recent.keep(1, saidOf([message("asked")], 1), reply(long), 0);
  assert.deepEqual(await contents(1, 2), ["stored"], "too long an answer");
  const many = Array.from({ length: LIMITS.historyMessagesMax }, () => message("m"));
  recent.keep(2, saidOf(many, 300), reply("newest"), 0);
  const kept = await contents(2, 301);
  assert.deepEqual([kept.length, kept[0]], [LIMITS.historyMessagesMax, "newest"]);
  for (let id = 3; id < 3 + LIMITS.historiesKeptMax; id += 1) {
    recent.keep(id, saidOf([], 0), reply("r"), 0);
  }
  assert.deepEqual(await contents(2, 301), ["stored"], "the one answered in longest ago is gone");
  assert.deepEqual(await contents(3, 1), ["r"]);
});

test("[CV147] cached messages are dropped soon after their conversation goes quiet", async () => {
  const recent = createRecent({ recent: async () => [message("stored")] });
  const minutes = (count: number): number => count * 60e6;
  const contents = async (id: number): Promise<string[]> =>
    (await recent.read(id, 1)).map(({ content }) => content);
  recent.keep(1, saidOf([], 0), reply("early"), minutes(1));
  recent.keep(2, saidOf([], 0), reply("later"), minutes(4));
  recent.forgetQuiet(minutes(5.5));
  assert.deepEqual([await contents(1), await contents(2)], [["early"], ["later"]]);
  recent.forgetQuiet(minutes(6.5));
  assert.deepEqual([await contents(1), await contents(2)], [["stored"], ["later"]]);
  recent.forgetQuiet(minutes(20));
  assert.deepEqual(await contents(2), ["stored"]);
});
