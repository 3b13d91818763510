// Conversations and their streams over three nodes, behind a door that takes another node for each
// request: as over one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createParser } from "eventsource-parser";
import { withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodes, type Nodes } from "#support/nodes/nodes.ts";
import { newAssistant, newConversation, type TestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = withoutPostgres || withoutNats;
const model = await startScriptedModel();
let nodes: Nodes;
let assistant: { id: number; uuid: string };
before(async () => {
  if (skip) return;
  nodes = await startNodes(3, { PARLEY_MODEL_URL: model.url });
  assistant = await newAssistant(nodes.door, { initial_message: "Hi" });
});
after(async () => {
  if (!skip) await nodes.close();
  await model.close();
});

interface Frame {
  type: string;
  id?: string;
  text?: string;
  turn_id?: number | null;
  conversation_id?: string;
  message?: { role: string; content: string; stopped?: boolean };
}

const isReply = ({ type, message, turn_id }: Frame): boolean =>
  type === "message_added" && message?.role === "assistant" && turn_id !== null;
const textOf = (frames: Frame[]): string => frames.map(({ text }) => text ?? "").join("");

/** Frames as they come. */
function follow(url: string, headers: Record<string, string> = {}) {
  const frames: Frame[] = [];
  const waiting = new Set<() => void>();
  const leaving = new AbortController();
  const parser = createParser({
    onEvent: ({ data }) => {
      frames.push(JSON.parse(data) as Frame);
      for (const look of [...waiting]) look();
    },
  });
  const opened = fetch(url, { headers, signal: leaving.signal });
  const read = async (): Promise<void> => {
    const { body } = await opened;
    const decoder = new TextDecoder();
    for await (const chunk of body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
  };
  // It ends when it is left.
  read().catch(() => undefined);
  return {
    frames, opened,
    until: (isSo: (frames: Frame[]) => boolean): Promise<void> => new Promise((resolve) => {
      const look = (): void => {
        if (!isSo(frames)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    }),
    leave: () => leaving.abort(),
  };
}

const watch = (on: TestServer, uuid: string, lastId?: string) =>
  follow(`${on.url}/api/conversations/${uuid}/stream`,
    lastId === undefined ? {} : { "Last-Event-ID": lastId });

/** A reply that stands after so many of its tokens until it is let go. */
function held(tokens: string[], holdAfter: number): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  model.script(() => ({ tokens, hold: promise, holdAfter, gapMs: 1 }));
  return resolve;
}

test("[WI50] a reply can be watched live at every node, from before, during and after it", { skip }, async () => {
  const go = held(["Nine ", "o'clock", ", ", "as ", "ever."], 2);
  const uuid = await newConversation(nodes.door, assistant.uuid);
  const early = nodes.all.map((node) => watch(node, uuid, "2"));
  await Promise.all(early.map(({ opened }) => opened));
  const sent = nodes.next().call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  await Promise.all(early.map(({ until }) => until((frames) => textOf(frames) === "Nine o'clock")));
  const middle = nodes.all.map((node) => watch(node, uuid, "3.5"));
  await Promise.all(middle.map(({ until }) => until((frames) => textOf(frames) === "o'clock")));
  go();
  const { body } = await sent;
  const late = nodes.all.map((node) => watch(node, uuid, "2"));
  await Promise.all([...early, ...middle, ...late].map(({ until }) =>
    until((frames) => frames.some(isReply))));
  const typesOf = (frames: Frame[]): string[] =>
    frames.map(({ type }) => type).filter((type) => type !== "reply_delta");
  const whole = ["message_added", "reply_start", "reply_end", "message_added"];
  for (const { frames } of [...early, ...late]) {
    assert.deepEqual([textOf(frames), typesOf(frames)], [body.message, whole]);
  }
  for (const { frames } of middle) {
    assert.deepEqual([textOf(frames), typesOf(frames)], ["o'clock, as ever.", whole.slice(2)]);
  }
  for (const { leave } of [...early, ...middle, ...late]) leave();
});

test("[WI51] stop reaches the node that writes the reply, from any node", { skip }, async () => {
  for (const [index, asker] of nodes.all.entries()) {
    const go = held(["Nine ", "o'clock"], 1);
    const uuid = await newConversation(nodes.door, assistant.uuid);
    const watcher = watch(asker, uuid, "2");
    await watcher.opened;
    const writer = nodes.all[(index + 1) % nodes.all.length]!;
    const sent = writer.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
    await watcher.until((frames) => textOf(frames) === "Nine ");
    const other = await asker.call("POST", `/conversations/${uuid}/stop`, { body: { turn_id: 1e9 } });
    assert.deepEqual(other.body, { status: true, stopped: false });
    const { status, body } = await asker.call("POST", `/conversations/${uuid}/stop`, { body: {} });
    assert.deepEqual([status, body], [200, { status: true, stopped: true }]);
    assert.deepEqual((await sent).body,
      { status: true, message: "Nine ", function_calls: [], stopped: true });
    await watcher.until((frames) => frames.some(isReply));
    const again = await asker.call("POST", `/conversations/${uuid}/stop`, { body: {} });
    assert.deepEqual(again.body, { status: true, stopped: false });
    watcher.leave();
    go();
  }
});

test("[WI52] the account's stream at one node includes what others commit", { skip }, async () => {
  model.script(() => ({ tokens: ["Nine."] }));
  const [a, b, c] = nodes.all;
  const { key } = a!;
  const stream = follow(`${b!.url}/api/user/stream`, { Authorization: `Bearer ${key}` });
  assert.equal((await stream.opened).status, 200);
  const uuid = await newConversation(c!, assistant.uuid);
  for (const node of nodes.all) {
    await node.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  }
  await stream.until((frames) => frames.filter(isReply).length === 3);
  const numbers = stream.frames.map(({ id }) => Number(id));
  assert.deepEqual(numbers, numbers.map((_, index) => (numbers[0] ?? 0) + index), "without a hole");
  stream.leave();
});

test("[WI53] a reply is rejoined at another node than its own; with none being written the answer is 204", { skip }, async () => {
  const go = held(["Nine ", "o'clock"], 1);
  const uuid = await newConversation(nodes.door, assistant.uuid);
  const [writer, other] = nodes.all;
  const watcher = watch(other!, uuid, "2");
  const sent = writer!.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  await watcher.until((frames) => textOf(frames) === "Nine ");
  const rejoined = await fetch(`${other!.url}/api/conversations/${uuid}/messages/stream`);
  assert.equal(rejoined.status, 200);
  go();
  await sent;
  assert.match(await rejoined.text(), /Nine .*o'clock/s);
  const none = await fetch(`${other!.url}/api/conversations/${uuid}/messages/stream`);
  assert.equal(none.status, 204);
  watcher.leave();
});

test("[WI54] without NATS watchers at other nodes get what is committed, and live text once it is back", { skip }, async () => {
  await nodes.nats.kill();
  model.script(() => ({ tokens: ["Nine."] }));
  const uuid = await newConversation(nodes.door, assistant.uuid);
  const watchers = nodes.all.map((node) => watch(node, uuid, "2"));
  await Promise.all(watchers.map(({ opened }) => opened));
  await nodes.all[0]!.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  await Promise.all(watchers.map(({ until }) => until((frames) => frames.some(isReply))));
  await nodes.nats.start();
  const go = held(["Ten ", "o'clock"], 1);
  const sent = nodes.all[1]!.call(
    "POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  await Promise.all(watchers.map(({ until }) =>
    until((frames) => textOf(frames) === "Nine.Ten ")));
  go();
  await sent;
  await Promise.all(watchers.map(({ until }) =>
    until((frames) => frames.filter(isReply).length === 2)));
  for (const { leave } of watchers) leave();
});

test("[WI55] a stream ticket opens one stream, at whichever node it is used", { skip }, async () => {
  const { key } = nodes.all[0]!;
  const ticket = async (): Promise<string> => {
    const { status, body } = await nodes.door.call("POST", "/user/stream-tickets", { key });
    assert.equal(status, 201, JSON.stringify(body));
    return body.ticket as string;
  };
  const shown = await ticket();
  const streams = [...nodes.all, ...nodes.all].map((node) =>
    follow(`${node.url}/api/user/stream?ticket=${shown}`));
  const statuses = await Promise.all(streams.map(async ({ opened }) => (await opened).status));
  assert.deepEqual(statuses.toSorted(), [200, 401, 401, 401, 401, 401]);
  for (const { leave } of streams) leave();
});

test("[WI57] taking over at another node stops the reply where it is written, and only one side speaks on", { skip }, async () => {
  const [first, second, third] = nodes.all;
  assert.ok(first && second && third);
  const uuid = await newConversation(first, assistant.uuid);
  const { promise: hold, resolve: go } = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["One ", "two ", "three."], hold, holdAfter: 1 }));
  const seen = watch(third, uuid, "0");
  const answered = first.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hello" } });
  await seen.until((frames) => textOf(frames).includes("One"));
  const key = first.key;
  const [taken, again] = await Promise.all([
    second.call("POST", `/user/conversations/${uuid}/take-over`, { key }),
    third.call("POST", `/user/conversations/${uuid}/take-over`, { key }),
  ]);
  assert.deepEqual([taken.status, taken.body.desk, again.status], [200, "person", 200]);
  assert.equal((await answered).body.stopped, true);
  go();
  const said = await second.call("POST", `/user/conversations/${uuid}/messages`, {
    key, body: { message: "Ana here" },
  });
  assert.equal(said.status, 201);
  // The assistant is silent at the node that wrote, and at every other one.
  for (const node of nodes.all) {
    const { body } = await node.call("POST", `/conversations/${uuid}/messages`, {
      body: { message: "Who?" },
    });
    assert.equal(body.ai_disabled, true);
  }
  await seen.until((frames) => frames.filter(({ message }) => message?.content === "Who?").length === 3);
  const messages = seen.frames.flatMap(({ type, message }) =>
    (type === "message_added" && message ? [`${message.role}: ${message.content.trim()}`] : []));
  assert.deepEqual(messages, [
    "assistant: Hi", "user: Hello", "assistant: One", "operator: Ana here",
    "user: Who?", "user: Who?", "user: Who?",
  ]);
  seen.leave();
  const { body: { history } } = await first.call("GET", `/conversations/${uuid}`);
  assert.deepEqual((history as { role: string; content: string }[])
    .map(({ role, content }) => `${role}: ${content.trim()}`), messages);
});

test("[WI56] a conversation deleted at one node is gone at all, and account watchers there hear of it once", { skip }, async () => {
  const uuids: string[] = [];
  for (const node of nodes.all) {
    uuids.push(await newConversation(node, assistant.uuid));
  }
  const watchers = nodes.all.map(({ url }) =>
    follow(`${url}/api/user/stream`, { Authorization: `Bearer ${nodes.door.key}` }));
  await Promise.all(watchers.map(({ opened }) => opened));
  const deletedIn = (frames: Frame[]): unknown[] =>
    frames.filter(({ type }) => type === "conversation_deleted")
      .map(({ conversation_id: uuid }) => uuid);
  for (const [index, uuid] of uuids.entries()) {
    const asked = nodes.all[(index + 1) % nodes.all.length]!;
    const { status } = await asked.call(
      "DELETE", `/user/conversations/${uuid}`, { key: nodes.door.key });
    assert.equal(status, 200);
    for (const { until } of watchers) {
      await until((frames) => deletedIn(frames).length > index);
    }
    for (const node of nodes.all) {
      const read = await node.call("GET", `/user/conversations/${uuid}`, { key: nodes.door.key });
      const said = await node.call(
        "POST", `/conversations/${uuid}/messages`, { body: { message: "Are you there?" } });
      assert.deepEqual([read.status, said.status], [404, 404]);
    }
  }
  for (const { frames, leave } of watchers) {
    assert.deepEqual(deletedIn(frames), uuids);
    leave();
  }
});
