// The AI SDK's UI message stream on the message route, read by what useChat is made of, against the
// real server.
import {
  AbstractChat, APICallError, type ChatState, type ChatStatus, DefaultChatTransport,
  readUIMessageStream, type UIMessage, type UIMessageChunk,
} from "ai";
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { createUiEncoder } from "#gateways/ai-sdk/ui-message-stream.ts";
import { newConversation } from "#support/server.ts";
import { clientOf, REPLY, startProtocolWorld } from "#support/vendors/server-with-model.ts";

const world = await startProtocolWorld();
const { model, server, fresh, balanceOf, withTool, holdHalfway } = world;
after(() => world.close());
beforeEach(() => model.script(null));

/** One chat as useChat holds it: sends its messages, reads what comes into a message. */
function createChat(conversation: string, address = "") {
  const transport = new DefaultChatTransport<UIMessage>({
    api: `${server.url}/api/conversations/${conversation}/messages${address}`,
    prepareReconnectToStreamRequest: () => ({
      api: `${server.url}/api/conversations/${conversation}/messages/stream`,
    }),
  });
  const messages: UIMessage[] = [];
  const send = (): Promise<ReadableStream<UIMessageChunk>> => transport.sendMessages({
    chatId: "chat", messages, trigger: "submit-message", messageId: undefined,
    abortSignal: undefined,
  });
  const say = (id: string, text: string): Promise<ReadableStream<UIMessageChunk>> => {
    messages.push({ id, role: "user", parts: [{ type: "text", text }] });
    return send();
  };
  return { messages, send, say, transport };
}

async function read(stream: ReadableStream<UIMessageChunk>): Promise<UIMessage> {
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
    last = message;
  }
  assert.ok(last);
  return last;
}

const textOf = (message: UIMessage): string =>
  message.parts.map((part) => part.type === "text" ? part.text : "").join("");

test("[PR13] useChat's transport chats with a conversation, and each message is charged once", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const chat = createChat(conversation, "?protocol=ai-sdk");
  const first = await read(await chat.say("m1", "Hello"));
  assert.equal(textOf(first), REPLY);
  assert.equal(first.role, "assistant");
  assert.match(first.id, /^turn-\d+$/);
  const again = await read(await chat.send());
  assert.deepEqual([again.id, textOf(again)], [first.id, REPLY]);
  assert.equal(await balanceOf(key), 4.99);
  chat.messages.push(first);
  const second = await read(await chat.say("m2", "More"));
  assert.notEqual(second.id, first.id);
  const { body } = await server.call("GET", `/conversations/${conversation}`);
  assert.deepEqual((body.history as { role: string; content: string }[]).map((item) =>
    item.role === "user" ? item.content : item.role), ["assistant", "Hello", "assistant", "More",
    "assistant"]);
  assert.equal(await balanceOf(key), 4.98);
});

test("[CV148] a message sent for the AI SDK's stream keeps its files, and repeats as one on every route", async () => {
  const { key, uuid, id } = await fresh();
  await server.call("PUT", `/user/assistant/${id}`, {
    key, body: { widget_settings: { attachments: true } },
  });
  const conversation = await newConversation(server, uuid);
  const path = `/conversations/${conversation}`;
  const form = new FormData();
  form.set("file", new Blob(["%PDF-1.7 a bill"]), "bill.pdf");
  const left = await fetch(`${server.url}/api${path}/attachments`, { method: "POST", body: form });
  const { attachment } = await left.json() as { attachment: { id: string } };
  const attachments = [attachment.id];
  const headers = { "Idempotency-Key": "k" };
  const send = (query: string, body: object) =>
    server.call("POST", `${path}/messages${query}`, { body, headers });
  assert.equal((await send("?protocol=ai-sdk", { message: "Seen?", attachments })).status, 200);
  const again = await send("", { message: "Seen?", attachments });
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  const { body: { history } } = await server.call("GET", path);
  assert.deepEqual(history[1].attachments, [attachment]);
  assert.equal((await send("?protocol=ai-sdk", { message: " " })).status, 422);
  const chat = { messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Hi" }] }] };
  const refused = await send("?protocol=ai-sdk", { ...chat, attachments });
  assert.deepEqual([refused.status, refused.body.message], [422, "The messages may not have files."]);
});

test("[PR14] the AI SDK stream is chosen by the body alone or by a header; otherwise the reply is JSON", async () => {
  const { uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  assert.equal(textOf(await read(await createChat(conversation).say("m1", "Hello"))), REPLY);
  const path = `/conversations/${conversation}/messages`;
  const headed = await server.call("POST", path, {
    body: { message: "Hello" },
    headers: { Accept: "text/event-stream", "x-vercel-ai-ui-message-stream": "v1" },
  });
  assert.equal(headed.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  assert.match(headed.body as string, /^data: \{"type":"start",[\s\S]*data: \[DONE\]\n\n$/);
  const required = "The message field is required.";
  const unasked = await server.call("POST", path, { body: { messages: [] } });
  assert.deepEqual([unasked.status, unasked.body.message], [422, required]);
  for (const messages of [[], [{ role: "user", parts: [{ type: "text", text: " " }] }]]) {
    const { status, body } = await server.call("POST", `${path}?protocol=ai-sdk`, {
      body: { messages },
    });
    assert.deepEqual([status, body.message], [422, required]);
  }
  const file = [{ role: "user", parts: [{ type: "file", url: "data:,x", mediaType: "a/b" }] }];
  const refused = await server.call("POST", `${path}?protocol=ai-sdk`, { body: { messages: file } });
  assert.equal(refused.status, 422);
  for (const body of [{}, { message: null }, { message: " " }]) {
    const refusedPlain = await server.call("POST", path, { body });
    assert.equal(refusedPlain.status, 422);
    assert.deepEqual(refusedPlain.body, { message: required, errors: { message: [required] } });
  }
  const plain = await server.call("POST", path, { body: { message: "Hello" } });
  assert.deepEqual(plain.body, { status: true, message: REPLY, function_calls: [] });
});

test("[PR15] tool calls appear as tool parts that the server has run, in steps", async () => {
  const { uuid } = await withTool();
  const chat = createChat(await newConversation(server, uuid));
  const message = await read(await chat.say("m1", "Look"));
  assert.deepEqual(message.parts.map(({ type }) => type),
    ["step-start", "text", "dynamic-tool", "step-start", "text"]);
  const check = (part: UIMessage["parts"][number] | undefined): void => {
    assert.ok(part?.type === "dynamic-tool" && part.state === "output-available");
    assert.equal(part.toolName, "look_up");
    assert.deepEqual(part.input, { item: "bikes" });
    assert.equal(part.providerExecuted, true);
    assert.ok(part.output);
  };
  check(message.parts[2]);
  assert.equal(textOf(message), "Let me look. Done.");
  const again = await read(await chat.send());
  check(again.parts.find(({ type }) => type === "dynamic-tool"));
  assert.equal(textOf(again), "Let me look. Done.");
});

test("[PR16] a failed reply is an error in the chat, and the same message retries it", async () => {
  const { key, uuid } = await fresh();
  const chat = createChat(await newConversation(server, uuid));
  model.script(() => ({ tokens: ["a", "b", "c", "d"], fault: "error_event" }));
  const stream = await chat.say("m1", "Hello");
  await assert.rejects(read(stream), /Failed to process message: /);
  assert.equal(await balanceOf(key), 5);
  model.script(null);
  assert.equal(textOf(await read(await chat.send())), REPLY);
  assert.equal(await balanceOf(key), 4.99);
  const poor = await fresh({}, "0.01");
  const last = createChat(await newConversation(server, poor.uuid));
  await read(await last.say("m1", "Hello"));
  await assert.rejects(last.say("m2", "Hello"), (error: unknown) => {
    assert.ok(APICallError.isInstance(error));
    return error.statusCode === 400 && /Insufficient balance/.test(error.message);
  });
});

test("[PR17] a chat that reconnects gets the reply from its beginning, or learns that there is none", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const chat = createChat(conversation);
  const back = () => chat.transport.reconnectToStream({ chatId: "chat" });
  assert.equal(await back(), null);
  const release = holdHalfway();
  const left = await chat.say("m1", "Hello");
  const reader = left.getReader();
  for (;;) {
    const { value } = await reader.read();
    if (value?.type === "text-delta") break;
  }
  await reader.cancel();
  const stream = await back();
  assert.ok(stream);
  release();
  const message = await read(stream);
  assert.equal(textOf(message), "One two.");
  assert.equal(await back(), null);
  assert.equal(await balanceOf(key), 4.99);
});

test("[PR18] with the AI switched off a message is stored and the chat learns that no reply comes", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  await server.call("POST", `/automate/conversations/${conversation}/disable-ai`, { key });
  const chat = createChat(conversation);
  for (const [id, text] of [["m1", "Hello"], ["m2", "Anyone?"]] as const) {
    const types: string[] = [];
    for await (const { type } of await chat.say(id, text)) types.push(type);
    assert.deepEqual(types, ["start", "start-step", "finish-step", "finish"]);
  }
  const { body } = await server.call("GET", `/conversations/${conversation}`);
  assert.deepEqual((body.history as { content: string }[]).slice(1).map(({ content }) => content),
    ["Hello", "Anyone?"]);
  assert.equal(await balanceOf(key), 5);
});

test("[PR19] a reply stopped before its first text is aborted and costs nothing", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const gate = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["Late"], hold: gate.promise }));
  const stream = await createChat(conversation).say("m1", "Hello");
  const stopped = await server.call("POST", `/conversations/${conversation}/stop`);
  assert.equal(stopped.body.stopped, true);
  const types: string[] = [];
  for await (const { type } of stream) types.push(type);
  assert.deepEqual(types, ["start", "start-step", "abort"]);
  const chunks = await clientOf(key, server).chat.completions.create({
    model: uuid, messages: [{ role: "user", content: "Hello" }], stream: true,
  });
  for await (const { id, choices: [choice] } of chunks) {
    if (choice?.delta.role) {
      await server.call("POST", `/conversations/${id.replace("chatcmpl-", "")}/stop`);
    } else assert.deepEqual([choice?.delta, choice?.finish_reason], [{}, "stop"]);
  }
  gate.resolve();
  assert.equal(await balanceOf(key), 5);
});

test("[PR20] tool calls a slow reader missed are reported with the end of the reply", async () => {
  const encoder = createUiEncoder(7);
  const call = { name: "look_up", arguments: { item: "bikes" }, result: { ok: true } };
  const text = encoder.begin() + encoder.take({ kind: "text", text: "Done." })
    + encoder.take({ kind: "completed", functionCalls: [call], truncated: false });
  const transport = new DefaultChatTransport<UIMessage>({
    fetch: () => Promise.resolve(new Response(text)),
  });
  const stream = await transport.reconnectToStream({ chatId: "chat" });
  assert.ok(stream);
  const message = await read(stream);
  assert.deepEqual(message.parts.map(({ type }) => type), ["step-start", "text", "dynamic-tool"]);
  const part = message.parts[2];
  assert.ok(part?.type === "dynamic-tool" && part.state === "output-available");
  assert.deepEqual([part.input, part.output], [call.arguments, call.result]);
});

/** What useChat keeps in React's state. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined = undefined;
  messages: UIMessage[] = [];
  pushMessage = (message: UIMessage): void => void this.messages.push(message);
  popMessage = (): void => void this.messages.pop();
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages[index] = message;
  };
  snapshot = <T>(thing: T): T => structuredClone(thing);
}

class PlainChat extends AbstractChat<UIMessage> {
  constructor(conversation: string, answered = (): void => undefined) {
    super({
      state: new PlainState(),
      transport: new DefaultChatTransport({
        api: `${server.url}/api/conversations/${conversation}/messages`,
        fetch: async (...request) => {
          const response = await fetch(...request);
          answered();
          return response;
        },
      }),
    });
  }
}

test("[PR85] the SDK's own chat can regenerate: a new answer, charged as one more turn", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const chat = new PlainChat(conversation);
  model.script(() => ({ tokens: ["One."] }));
  await chat.sendMessage({ text: "Hello" });
  assert.equal(textOf(chat.messages.at(-1)!), "One.");
  for (const [said, balance] of [["Two.", 4.98], ["Three.", 4.97]] as const) {
    model.script(() => ({ tokens: [said] }));
    await chat.regenerate();
    assert.equal(chat.status, "ready");
    assert.deepEqual(chat.messages.map(textOf), ["Hello", said]);
    assert.equal(await balanceOf(key), balance);
  }
  model.script(() => ({ status: 400 }));
  await chat.sendMessage({ text: "More" });
  assert.equal(chat.status, "error");
  model.script(() => ({ tokens: ["Four."] }));
  await chat.regenerate();
  assert.equal(textOf(chat.messages.at(-1)!), "Four.");
  const { body } = await server.call("GET", `/conversations/${conversation}`);
  assert.equal((body.history as { content: string }[]).filter(({ content }) =>
    content === "More").length, 1, "what failed is tried again, not asked once more");
  assert.equal(await balanceOf(key), 4.96);
});

test("[PR93] the SDK's own chat can edit a message: it is answered and charged as one more turn", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const chat = new PlainChat(conversation);
  await chat.sendMessage({ text: "Are you open on Munday?" });
  const { id } = chat.messages[0]!;
  model.script(() => ({ tokens: ["At nine."] }));
  await chat.sendMessage({ text: "Are you open on Monday?", messageId: id });
  assert.equal(chat.status, "ready", chat.error?.message);
  assert.deepEqual(chat.messages.map(textOf), ["Are you open on Monday?", "At nine."]);
  assert.equal(await balanceOf(key), 4.98);
  model.script(() => ({ tokens: ["From nine."] }));
  await chat.regenerate();
  assert.deepEqual(chat.messages.map(textOf), ["Are you open on Monday?", "From nine."]);
  assert.equal(await balanceOf(key), 4.97);
});

test("[PR86] the SDK's own chat can resume at its transport's default address", async () => {
  const { uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const idle = new PlainChat(conversation);
  await idle.resumeStream();
  assert.deepEqual([idle.status, idle.messages], ["ready", []]);
  const release = holdHalfway();
  const first = new PlainChat(conversation);
  const sending = first.sendMessage({ text: "Hello" });
  await model.waitFor("requests", model.counts.requests + 1);
  const back = new PlainChat(conversation, release);
  await Promise.all([sending, back.resumeStream()]);
  assert.equal(textOf(back.messages.at(-1)!), "One two.");
});
