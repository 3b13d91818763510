// Streams over SSE and WebSocket: cut anywhere, resumed, watched by many, across a restart.
import assert from "node:assert/strict";
import { on, once } from "node:events";
import { connect } from "node:net";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { createParser } from "eventsource-parser";
import { WebSocket } from "ws";
import { LIMITS } from "#core/limits.ts";
import { createSystem, type System } from "#core/system.ts";
import {
  newAssistant, newConversation, openBeside, startTestServer, testDataDir, type TestServer,
} from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const dataDir = testDataDir();
const env = { PARLEY_MODEL_URL: model.url };
let server = await startTestServer({ dataDir, env });
const assistant = await newAssistant(server, { initial_message: "Hi" });
after(async () => {
  await server.close();
  await model.close();
  rmSync(dataDir, { recursive: true });
});

interface Frame {
  type: string;
  id?: string;
  text?: string;
  turn_id?: number | null;
  message?: { role: string; content: string };
}

/** The initial message belongs to no turn. */
const isReply = (frame: Frame): boolean =>
  frame.type === "message_added" && frame.message?.role === "assistant" && frame.turn_id !== null;

/** Reads frames until the predicate holds, the stream ends, or the byte budget is used up. */
async function read(
  response: Response,
  enough: (frame: Frame) => boolean,
  bytesMax = Infinity,
): Promise<{ frames: Frame[]; complete: boolean }> {
  const frames: Frame[] = [];
  let complete = false;
  const parser = createParser({
    onEvent: (event) => {
      const frame = JSON.parse(event.data) as Frame;
      if (complete) return;
      frames.push(frame);
      complete = enough(frame);
    },
  });
  const reader = response.body?.getReader();
  assert.ok(reader);
  const decoder = new TextDecoder();
  let left = bytesMax;
  while (!complete && left > 0) {
    const { value, done } = await reader.read();
    if (done) break;
    parser.feed(decoder.decode(value.subarray(0, left), { stream: true }));
    left -= value.byteLength;
  }
  await reader.cancel();
  return { frames, complete };
}

const sendStreaming = (on: TestServer, uuid: string, message: string): Promise<Response> =>
  fetch(`${on.url}/api/conversations/${uuid}/messages`, {
    method: "POST",
    headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify({ message }),
  });

const watch = (on: TestServer, uuid: string, lastId?: string): Promise<Response> =>
  fetch(`${on.url}/api/conversations/${uuid}/stream`, {
    headers: lastId === undefined ? {} : { "Last-Event-ID": lastId },
  });

const textOf = (frames: Frame[]): string =>
  frames.filter(({ type }) => type === "reply_delta").map(({ text }) => text).join("");

async function stored(on: TestServer, uuid: string): Promise<string> {
  const { body } = await on.call("GET", `/conversations/${uuid}`);
  return (body.history as { content: string }[]).at(-1)?.content ?? "";
}

test("[EV1] a streamed send shows the whole turn, and its joined deltas equal the stored text", async () => {
  const uuid = await newConversation(server, assistant.uuid);
  const { frames } = await read(await sendStreaming(server, uuid, "Hello"), isReply);
  const types = frames.map(({ type }) => type).filter((type) => type !== "reply_delta");
  assert.deepEqual(types, ["message_added", "reply_start", "reply_end", "message_added"]);
  assert.equal(textOf(frames), await stored(server, uuid));
});

test("[EV2] cut at any byte and resumed, also across a restart: no gap, no repeat", async () => {
  model.script(() => ({ tokens: ["äöü ", "😀😀 ", "three ", "four ", "five"], gapMs: 3 }));
  for (let round = 0; round < 24; round += 1) {
    const uuid = await newConversation(server, assistant.uuid);
    const budget = 40 + Math.floor(Math.random() * 900);
    const first = await read(await sendStreaming(server, uuid, "Hello"), isReply, budget);
    const frames = [...first.frames];
    let { complete } = first;
    if (round % 8 === 7) {
      await server.close();
      server = await startTestServer({ dataDir, env });
    }
    for (let cut = 0; !complete; cut += 1) {
      const lastId = frames.at(-1)?.id ?? "1";
      const bytes = cut < 2 ? 60 + Math.floor(Math.random() * 300) : Infinity;
      const next = await read(await watch(server, uuid, lastId), isReply, bytes);
      frames.push(...next.frames.filter((frame) => frame.type !== "reply_end"));
      ({ complete } = next);
    }
    const reply = frames.at(-1)?.message?.content;
    assert.equal(reply, await stored(server, uuid));
    assert.equal(textOf(frames), reply, `round ${round}`);
  }
  model.script(null);
});

test("[EV95] an EventSource with a position in its URL resumes from Last-Event-ID on reconnect", async () => {
  const uuid = await newConversation(server, assistant.uuid);
  model.script(null);
  await read(await sendStreaming(server, uuid, "Hello"), isReply);
  const open = (headers: Record<string, string>): Promise<Response> =>
    fetch(`${server.url}/api/conversations/${uuid}/stream?after=0`, { headers });
  const { frames: all } = await read(await open({}), isReply);
  const seen = all.findIndex(({ message }) => message?.role === "user");
  assert.ok(seen > 0);
  const { frames } = await read(await open({ "Last-Event-ID": all[seen]?.id ?? "" }), isReply);
  assert.deepEqual(frames, all.slice(seen + 1));
  const { frames: afresh } = await read(await open({ "Last-Event-ID": "" }), isReply);
  assert.deepEqual(afresh, all);
});

test("[EV96] a message resent under its key resumes from Last-Event-ID, and its stream ends", async () => {
  const uuid = await newConversation(server, assistant.uuid);
  const gate = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["one ", "two."], hold: gate.promise, holdAfter: 1 }));
  const send = (lastId = ""): Promise<Response> =>
    fetch(`${server.url}/api/conversations/${uuid}/messages`, {
      method: "POST", body: JSON.stringify({ message: "Hello" }),
      headers: {
        "Content-Type": "application/json", Accept: "text/event-stream", "Idempotency-Key": "ev96",
        "Last-Event-ID": lastId,
      },
    });
  // What a client has had of another message says nothing of this one.
  const first = await read(await send("1"), ({ type }) => type === "reply_delta");
  assert.deepEqual(
    first.frames.map(({ type }) => type), ["message_added", "reply_start", "reply_delta"]);
  const again = await send(first.frames.at(-1)?.id);
  gate.resolve();
  const rest = await read(again, isReply);
  assert.deepEqual(rest.frames.map(({ type }) => type), ["reply_delta", "reply_end", "message_added"]);
  assert.equal(textOf([...first.frames, ...rest.frames]), await stored(server, uuid));
  const late = await read(await send(first.frames.at(-1)?.id), () => false);
  assert.deepEqual(late.frames, rest.frames);
  assert.deepEqual((await read(await send(rest.frames.at(-1)?.id), () => false)).frames, []);
  // Its events are no more in the log.
  const beside = await openBeside(server.dataDir);
  await beside.trimLog(Date.now() * 2000, 10_000);
  await beside.close();
  const reset = await read(await send(), () => false);
  assert.deepEqual(reset.frames.map(({ type }) => type), ["stream_reset"]);
  model.script(null);
});

test("[EV3] watchers on any mix of transports see the same text", async () => {
  const uuid = await newConversation(server, assistant.uuid);
  model.script(() => ({ tokens: ["one ", "two ", "three"], gapMs: 5 }));
  const watchers = await Promise.all([watch(server, uuid), watch(server, uuid)]);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/conversations/${uuid}/socket`);
  const heard: Frame[] = [];
  const finished = Promise.withResolvers<void>();
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString("utf8")) as Frame;
    heard.push(frame);
    if (frame.type === "connected") {
      socket.send(JSON.stringify({ type: "send", message: "Hello", request_id: "r1" }));
    }
    if (frame.type === "send_result") finished.resolve();
  });
  const [left, right] = await Promise.all(watchers.map((response) => read(response, isReply)));
  await finished.promise;
  for (const frames of [left?.frames ?? [], right?.frames ?? [], heard]) {
    assert.equal(textOf(frames), "one two three");
  }
  socket.send(JSON.stringify({ type: "ping" }));
  const [pong] = (await once(socket, "message")) as [Buffer];
  assert.deepEqual(JSON.parse(pong.toString()), { type: "pong" });
  socket.send("not json");
  const [error] = (await once(socket, "message")) as [Buffer];
  assert.equal((JSON.parse(error.toString()) as { status: number }).status, 400);
  socket.close();
  await once(socket, "close");
  model.script(null);
});

/** A socket whose frames are awaited one by one. */
class Listener {
  readonly socket: WebSocket;
  readonly #frames: Frame[] = [];
  #wake = (): void => undefined;

  constructor(on: TestServer, uuid: string, query = "") {
    const base = on.url.replace("http", "ws");
    this.socket = new WebSocket(`${base}/api/conversations/${uuid}/socket${query}`);
    this.socket.on("message", (data: Buffer) => {
      this.#frames.push(JSON.parse(data.toString("utf8")) as Frame);
      this.#wake();
    });
  }

  send(command: object): void {
    this.socket.send(JSON.stringify(command));
  }

  /** Every frame up to the first of the type. */
  async until(type: string): Promise<Frame[]> {
    for (;;) {
      const index = this.#frames.findIndex((frame) => frame.type === type);
      if (index >= 0) return this.#frames.splice(0, index + 1);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

test("[EV6] over a socket a reply can be stopped, and the log resumed from any position", async () => {
  const uuid = await newConversation(server, assistant.uuid);
  const hold = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["first ", "second"], hold: hold.promise, holdAfter: 1 }));
  const listener = new Listener(server, uuid);
  await listener.until("connected");
  listener.send({ type: "send", message: "Hello", idempotency_key: "k", request_id: "r" });
  await listener.until("reply_delta");
  listener.send({ type: "stop" });
  const stopped = await listener.until("stop_result");
  assert.equal((stopped.at(-1) as { stopped?: boolean }).stopped, true);
  hold.resolve();
  listener.send({ type: "stop" });
  assert.equal(((await listener.until("stop_result")).at(-1) as { stopped?: boolean }).stopped, false);
  listener.send({ type: "resume", after: "0" });
  const frames = await listener.until("resumed");
  assert.equal(textOf(frames), "first ");
  assert.equal(await stored(server, uuid), "first ");
  const added = frames.filter(({ type }) => type === "message_added");
  assert.deepEqual(added.map(({ message }) => message?.content), ["Hi", "Hello", "first "]);
  const late = new Listener(server, uuid, `?after=${added[1]?.id}`);
  assert.equal(textOf(await late.until("message_added")), "first ");
  listener.socket.close();
  late.socket.close();
  model.script(null);
});

test("[SE65] a refused command is answered with its own request_id", async () => {
  const listener = new Listener(server, await newConversation(server, assistant.uuid));
  await listener.until("connected");
  for (const refused of [
    { type: "zzz" }, { type: "stop", turn_id: "x" }, { type: "send", message: "a", idempotency_key: 5 },
  ]) {
    const { type } = refused;
    listener.send({ ...refused, request_id: type });
    const frame = (await listener.until("error")).at(-1) as { request_id?: string } | undefined;
    assert.equal(frame?.request_id, type);
  }
  listener.socket.close();
});

test("[EV299] the account's socket names what is wrong in a command, and repeats its request_id", async () => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/user/socket`, {
    headers: { Authorization: `Bearer ${server.key}` },
  });
  await once(socket, "open");
  const ask = async (command: object): Promise<object> => {
    socket.send(JSON.stringify({ ...command, request_id: "r" }));
    for await (const [data] of on(socket, "message")) {
      const frame = JSON.parse((data as Buffer).toString()) as Frame & { request_id?: string };
      if (frame.type === "error" || frame.request_id === "r") return frame;
    }
    throw new Error("the socket was closed");
  };
  assert.deepEqual(await ask({ type: "ping" }), { type: "pong", request_id: "r" });
  assert.deepEqual(await ask({ type: "resume", after: "rubbish" }), {
    type: "error", status: 422, request_id: "r",
    error: "The value of after is not a position of this stream.",
  });
  assert.deepEqual(await ask({ type: "resume", after: "0" }), { type: "resumed", request_id: "r" });
  const { error } = await ask({ type: "say" }) as { error?: string };
  assert.equal(error, "The selected type is invalid: it is one of ping, resume.");
  socket.close();
});

test("[EV7] a stalled reader is closed with a code that tells it to reconnect", async () => {
  const real = createSystem();
  const hurried: System = {
    ...real,
    after: (ms, run) => real.after(ms === LIMITS.stalledReaderMs ? 20 : ms, run),
  };
  const on = await startTestServer({ env, system: hurried });
  const { uuid: id } = await newAssistant(on);
  const uuid = await newConversation(on, id, { type: "test" });
  model.script(() => ({ tokens: ["x".repeat(30_000)] }));
  const slow = new Listener(on, uuid);
  await slow.until("connected");
  const closed = once(slow.socket, "close");
  slow.socket.pause();
  const stalled = connect(on.port, "127.0.0.1");
  stalled.write(`GET /api/conversations/${uuid}/stream HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(stalled, "readable");
  const { streams } = on.app.features;
  while (streams.counts().sse + streams.counts().websocket > 0) {
    const { status } = await on.call("POST", `/conversations/${uuid}/messages`, {
      body: { message: "Hello" },
    });
    assert.equal(status, 200);
  }
  slow.socket.resume();
  const [code] = (await closed) as [number];
  assert.equal(code, 4008);
  stalled.resume();
  await once(stalled, "close");
  await on.close();
  model.script(null);
});

test("[EV4] the account's stream opens by key or ticket, includes balance changes and ends with its key", async () => {
  const { accountId, key } = await server.newAccount();
  const anonymous = await fetch(`${server.url}/api/user/stream`);
  assert.equal(anonymous.status, 401);
  const { body } = await server.call("POST", "/user/stream-tickets", { key });
  const stream = await fetch(`${server.url}/api/user/stream?ticket=${body.ticket}`);
  assert.equal(stream.status, 200);
  const told = read(stream, (frame) => frame.type === "balance_changed");
  await server.app.features.accounts.credit(accountId, 1_000_000);
  assert.equal((await told).complete, true);
  const open = await fetch(`${server.url}/api/user/stream`, {
    headers: { Authorization: `Bearer ${key}` },
  });
  await server.app.features.accounts.revokeKey(accountId, Number(key.split("|")[0]));
  const silent = read(open, (frame) => frame.type === "balance_changed");
  await server.app.features.accounts.credit(accountId, 1_000_000);
  assert.deepEqual(await silent, { frames: [], complete: false });
});

test("[EV5] a stalled reader costs almost no memory, and others continue", async () => {
  const uuid = await newConversation(server, assistant.uuid, { type: "test" });
  model.script(() => ({ tokens: ["x".repeat(30_000)] }));
  const stalled = connect(server.port, "127.0.0.1");
  stalled.write(`GET /api/conversations/${uuid}/stream HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(stalled, "readable");
  const before = process.memoryUsage().rss;
  for (let count = 0; count < 200; count += 1) {
    const { status } = await server.call("POST", `/conversations/${uuid}/messages`, {
      body: { message: "Hello" },
    });
    assert.equal(status, 200);
  }
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 150 * 2 ** 20, `grew by ${Math.round(grown / 2 ** 20)} MiB`);
  stalled.destroy();
  model.script(null);
});
