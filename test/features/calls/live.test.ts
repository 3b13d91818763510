// Watching calls: a watcher who joins late, is cut anywhere, reads slowly or outlives the server
// holds what the server has; steering and listening in; a process dies in the middle of a call.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { after, suite, test } from "node:test";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { WebSocket } from "ws";
import { chargeOf } from "#features/calls/records/failures.ts";
import { applyCallEvent, type CallFrame, type CallState } from "#features/calls/replica.ts";
import { createWordDecoder } from "#providers/speech/loopback.ts";
import { accountEvent } from "#support/account-events.ts";
import { ask } from "#support/api.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { startProcess } from "#support/process.ts";
import {
  assistantBody, newAssistant, openBeside, startTestServer, testDataDir,
} from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const dataDir = testDataDir();
const env = {
  PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url, PARLEY_CALL_PRICE: "0.001",
};
let server = await startTestServer({ dataDir, env });
after(async () => {
  await server.close();
  await model.close();
  rmSync(dataDir, { recursive: true });
});
const outbound = await newAssistant(server, {
  status: "active", type: "outbound", initial_message: "Hi there.", post_call_evaluation: false,
  end_call_on_voicemail: false,
});
/** The owner of the calls: a restarted server makes an account of its own, which is not used. */
const { key, accountId } = server;
const authorization = { Authorization: `Bearer ${key}` };
const call: typeof server.call = (method, path, options) =>
  server.call(method, path, { key, ...options });
const ENDED = {
  reason: "customer_hung_up", turns: [], hasRecording: false,
} as const;

async function beginCall(): Promise<number> {
  const assistant = await server.app.features.assistants.find(accountId, outbound.id);
  assert.ok(assistant);
  const begun = await server.app.features.calls.begin({
    assistant, type: "outbound", conversationUuid: null, assistantPhone: null,
    customerPhone: "+15550100", variables: {},
  });
  return begun.call.id;
}

interface Held {
  state: CallState | null;
  lastId: string | null;
  isOver: boolean;
}
const NOTHING: Held = { state: null, lastId: null, isOver: false };

/** Goes on from what is held until the end, or until so many bytes or frames have come. */
async function follow(
  id: number,
  from: Held,
  {
    bytesMax = Infinity, framesMax = Infinity, readMs = 0, seen = new Map<string, CallState>(),
  } = {},
): Promise<Held> {
  const response = await fetch(`${server.url}/api/user/calls/${id}/stream`, {
    headers: {
      ...authorization, ...(from.lastId === null ? {} : { "Last-Event-ID": from.lastId }),
    },
  });
  let held = from;
  let frames = 0;
  const parser = createParser({
    onEvent: ({ id: eventId, data }) => {
      if (held.isOver) return;
      const frame = JSON.parse(data) as CallFrame;
      frames += 1;
      held = {
        state: applyCallEvent(held.state, frame),
        lastId: eventId ?? held.lastId,
        isOver: frame.type === "call_ended",
      };
      if (eventId !== undefined && held.state) seen.set(eventId, held.state);
    },
  });
  const reader = response.body?.getReader();
  assert.ok(reader);
  const decoder = new TextDecoder();
  for (let left = bytesMax; left > 0 && !held.isOver && frames < framesMax;) {
    const { value, done } = await reader.read();
    if (done) break;
    parser.feed(decoder.decode(value.subarray(0, left), { stream: true }));
    left -= value.byteLength;
    if (readMs > 0) await new Promise((resolve) => setTimeout(resolve, readMs));
  }
  await reader.cancel();
  return held;
}

/** The state of a call as the server itself holds it, in the replica's words. */
async function serverState(id: number): Promise<Partial<CallState>> {
  const { body } = await call("GET", `/user/calls/${id}`);
  const { status, answered_by, end_reason, duration, total_cost, evaluation } = body;
  const transcript = (body.transcript_entries as CallState["transcript"])
    .map(({ number, sender, text, interrupted }) => ({ number, sender, text, interrupted }));
  return { id, status, answered_by, end_reason, duration, total_cost, evaluation, transcript };
}

const replicaOf = (state: CallState | null): Partial<CallState> => {
  assert.ok(state);
  const { id, status, answered_by, end_reason, duration, total_cost, evaluation } = state;
  const transcript = state.transcript
    .map(({ number, sender, text, interrupted }) => ({ number, sender, text, interrupted }));
  return { id, status, answered_by, end_reason, duration, total_cost, evaluation, transcript };
};

async function live(
  id: number, texts: string[], { restartAt = -1, told = async () => {} }: {
    restartAt?: number;
    told?: (index: number) => Promise<void>;
  } = {},
): Promise<void> {
  await server.app.features.calls.change({ id, accountId }, "ringing", {});
  await server.app.features.calls.change({ id, accountId }, "in-progress", {});
  for (const [index, text] of texts.entries()) {
    const { calls } = server.app.features;
    calls.transcriptDelta({ id, accountId: accountId }, { speaker: "customer", text });
    await calls.addTranscript({ id, accountId }, {
      speaker: index % 2 === 0 ? "assistant" : "customer", text, startMs: index, endMs: index + 1,
      interrupted: index % 3 === 0, functionCalls: [],
    });
    if (index === restartAt) {
      await server.close();
      server = await startTestServer({ dataDir, env });
    }
    await told(index);
  }
  const { calls } = server.app.features;
  await calls.change({ id, accountId }, "in-progress", { answeredBy: "human" });
  await calls.end({ id, accountId }, { finalStatus: "ended_by_customer", ...ENDED });
  await calls.finish({ id, accountId }, { evaluation: { ok: true }, evaluationError: null });
}

test("[CR10] cut anywhere, late, slow, across a restart: a replica equals the server's state", async () => {
  const history = fc.record({
    texts: fc.array(fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }), { maxLength: 8 }),
    cuts: fc.array(fc.integer({ min: 20, max: 900 }), { maxLength: 6 }),
    readMs: fc.constantFrom(0, 0, 3),
  });
  let run = 0;
  await fc.assert(fc.asyncProperty(history, async ({ texts, cuts, readMs }) => {
    run += 1;
    const id = await beginCall();
    const seen = new Map<string, CallState>();
    const truths = new Map<string, Partial<CallState>>();
    const keepTruth = async (): Promise<void> => {
      const sequence = (await server.app.features.calls.snapshot(id))?.call.eventSequence;
      truths.set(String(sequence), await serverState(id));
    };
    // A restart closes what is live: it ends the call's history as failed.
    let held = await follow(id, NOTHING, { framesMax: 1, seen });
    let joined = held;
    const going = live(id, texts, {
      restartAt: run % 10 === 9 ? 0 : -1,
      told: async (index) => {
        await keepTruth();
        if (index === 1) joined = await follow(id, NOTHING, { framesMax: 1, seen });
      },
    });
    for (const bytesMax of cuts) {
      // A server that is just starting again refuses: what was held stays held.
      if (!held.isOver) held = await follow(id, held, { bytesMax, readMs, seen }).catch(() => held);
    }
    await going;
    if (!held.isOver) held = await follow(id, held, { readMs, seen });
    if (!joined.isOver && joined.state?.end_reason === null) joined = await follow(id, joined);
    const late = await follow(id, NOTHING, { framesMax: 1 });
    const truth = await serverState(id);
    assert.deepEqual(replicaOf(held.state), truth);
    assert.deepEqual(replicaOf(joined.state), truth);
    for (const [sequence, expected] of truths) {
      const replica = seen.get(sequence);
      assert.ok(replica, `nothing was held at ${sequence}`);
      assert.deepEqual(replicaOf(replica), expected);
    }
    assert.deepEqual(replicaOf(late.state), truth);
  }), { numRuns: 40, includeErrorInReport: true });
});

test("[CR11] a watcher whose position the log no longer holds gets a snapshot", async () => {
  const id = await beginCall();
  await server.app.features.calls.change({ id, accountId }, "ringing", {});
  const early = await follow(id, NOTHING, { framesMax: 1 });
  await server.app.features.calls.change({ id, accountId }, "in-progress", {});
  const storage = await openBeside(dataDir);
  await storage.trimLog(Number.MAX_SAFE_INTEGER, 100_000);
  await storage.close();
  const held = await follow(id, early, { framesMax: 1 });
  assert.deepEqual(replicaOf(held.state), await serverState(id));
  assert.equal(held.state?.status, "in-progress");
  await server.app.features.calls.end({ id, accountId }, { finalStatus: "ended_by_customer", ...ENDED });
  await server.app.features.calls.finish(
    { id, accountId }, { evaluation: {}, evaluationError: null });
});

test("[CR12] live calls are a snapshot, and the account's stream continues from it", async () => {
  const id = await beginCall();
  const { calls } = server.app.features;
  await calls.change({ id, accountId }, "ringing", {});
  const { body } = await call("GET", "/user/calls/live");
  const state = (body.calls as CallState[]).find((state) => state.id === id) ?? null;
  assert.equal(state?.status, "ringing");
  await calls.change({ id, accountId }, "in-progress", {});
  await calls.end({ id, accountId }, { finalStatus: "ended_by_customer", ...ENDED });
  await calls.finish({ id, accountId }, { evaluation: {}, evaluationError: null });
  const response = await fetch(`${server.url}/api/user/stream?after=${body.id}`, {
    headers: authorization,
  });
  let held: CallState | null = state;
  const over = Promise.withResolvers<void>();
  const parser = createParser({
    onEvent: ({ data }) => {
      const frame = JSON.parse(data) as CallFrame;
      held = applyCallEvent(held, frame);
      if (frame.type === "call_ended" && frame.call_id === id) over.resolve();
    },
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  void (async () => {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      parser.feed(read.value);
    }
  })();
  await over.promise;
  await reader.cancel();
  assert.deepEqual(replicaOf(held), await serverState(id));
  assert.equal((await call("GET", "/user/calls/live")).body.calls.length, 0);
});

test("[CR13] an operator can say, mute, listen and end; strangers cannot", async () => {
  const { body: made } = await call("POST", "/user/make_call", {
    body: { phone_number: "+15550100006", assistant_id: outbound.id },
  });
  const id = made.call_id as number;
  const base = `${server.url.replace("http", "ws")}/api/user/calls/${id}`;
  const socket = new WebSocket(`${base}/socket`, { headers: authorization });
  const frames: CallFrame[] = [];
  const waiting = new Set<() => void>();
  socket.on("message", (data: Buffer) => {
    frames.push(JSON.parse(data.toString()) as CallFrame);
    for (const look of [...waiting]) look();
  });
  const until = (found: (frame: CallFrame) => boolean): Promise<void> => new Promise((resolve) => {
    const look = (): void => {
      if (!frames.some(found)) return;
      waiting.delete(look);
      resolve();
    };
    waiting.add(look);
    look();
  });
  await until(({ type, entry }) =>
    type === "transcript_added" && JSON.stringify(entry).includes("Hi there."));
  const listener = new WebSocket(`${base}/listen`, { headers: authorization });
  const words: string[] = [];
  const heard = Promise.withResolvers<void>();
  const decoder = createWordDecoder(16_000, ({ text }) => {
    words.push(text);
    if (text === "moment.") heard.resolve();
  });
  listener.on("message", (data: Buffer, isBinary: boolean) => {
    if (isBinary) decoder.write(new Int16Array(Uint8Array.from(data).buffer));
  });
  await once(listener, "open");
  socket.send(JSON.stringify({ type: "say", text: "One moment.", request_id: "r" }));
  await until(({ type, ok, request_id }) =>
    type === "say_result" && ok === true && request_id === "r");
  await heard.promise;
  assert.deepEqual(words, ["One", "moment."]);
  socket.send(JSON.stringify({ type: "say", text: "x".repeat(5000), request_id: "long" }));
  await until(({ type, request_id }) => type === "error" && request_id === "long");
  socket.send(JSON.stringify({ type: "mute", on: true }));
  await until(({ type, ok }) => type === "mute_result" && ok === true);
  const stranger = await server.newAccount();
  for (const command of ["say", "mute", "end"]) {
    const { status } = await server.call("POST", `/user/calls/${id}/${command}`, {
      key: stranger.key, body: { text: "x", on: true },
    });
    assert.equal(status, 404);
  }
  const gone = once(listener, "close");
  socket.send(JSON.stringify({ type: "end" }));
  await until(({ type }) => type === "call_ended");
  await gone;
  assert.equal((await call("GET", `/user/calls/${id}`)).body.end_reason, "operator");
  socket.close();
  await once(socket, "close");
});

test("[CR425] a revoked key no longer hears the call it listens to", async () => {
  const { body: made } = await call("POST", "/user/make_call", {
    body: { phone_number: "+15550100006", assistant_id: outbound.id },
  });
  const id = made.call_id as number;
  const statusOf = async () => (await call("GET", `/user/calls/${id}`)).body.status as string;
  while (await statusOf() !== "in-progress");
  const { accounts } = server.app.features;
  const { token, key } = await accounts.createKey(accountId, "listens");
  const place = `${server.url.replace("http", "ws")}/api/user/calls/${id}/listen`;
  const listener = new WebSocket(place, { headers: { authorization: `Bearer ${token}` } });
  const closed = once(listener, "close") as Promise<[code: number]>;
  await once(listener, "message");
  await call("DELETE", `/user/api-keys/${key.id}`);
  const [code] = await closed;
  assert.equal(code, 4501);
  assert.equal(await statusOf(), "in-progress");
  await call("POST", `/user/calls/${id}/end`);
});

test("[CR202] a failed call's record says why in words, and what to do about it; a busy number is busy", async () => {
  for (const [ending, status, reason, words] of [
    ["0001", "busy", "busy", /^The number was busy\. Call again/],
    ["0005", "failed", "carrier_failed", /^The call could not be put through\. Check/],
    ["0004", "failed", "rejected", /^The called side refused the call\. Ask/],
  ] as const) {
    const { body: made } = await call("POST", "/user/make_call", {
      body: { assistant_id: outbound.id, phone_number: `+1555010${ending}` },
    });
    const over = await follow(made.call_id, NOTHING);
    assert.equal(over.state?.status, status);
    const { body } = await call("GET", `/user/calls/${made.call_id}`);
    assert.deepEqual([body.end_reason, body.total_cost], [reason, 0]);
    assert.match(body.failure_reason, words);
    const { body: page } = await call("GET", "/user/calls?per_page=1");
    assert.equal(page.data[0].failure_reason, body.failure_reason);
  }
});

const folder = testDataDir();
const childEnv = { PARLEY_SPEECH: "loopback" };
let child = await startProcess(folder, childEnv);
/** Resolves to what it ended with. */
const endChild = (signal: NodeJS.Signals) => {
  const ended = once(child.process, "exit");
  child.process.kill(signal);
  return ended;
};
after(async () => {
  await endChild("SIGTERM");
  rmSync(folder, { recursive: true });
});
const { key: childKey } = child;
const askChild = (path: string, body?: object) =>
  ask({ url: child.url, key: childKey }, path, body);

const GREETS = assistantBody({
  type: "outbound", status: "active", initial_message: "Hi there.", post_call_evaluation: false,
});

/** A call in which the assistant has spoken, stopped by the signal; its record afterwards. */
async function stoppedBy(signal: NodeJS.Signals): Promise<Record<string, unknown>> {
  const { data } = await askChild("/user/assistant", GREETS);
  const { call_id: id } = await askChild(
    "/user/make_call", { phone_number: "+15550100006", assistant_id: data.id });
  await accountEvent({ url: child.url, key: childKey }, ({ type, call_id: of }) =>
    type === "transcript_added" && of === id);
  await endChild(signal);
  child = await startProcess(folder, childEnv);
  assert.deepEqual((await auditBeside(folder)).problems, []);
  return await askChild(`/user/calls/${id}`);
}

const PRICE_PER_SECOND = 0.1 / 60;
const costsItsTime = ({ total_cost: cost, duration }: Record<string, unknown>): void =>
  assert.ok(Number(cost) <= Number(duration) * PRICE_PER_SECOND, `${cost} for ${duration} s`);

void suite("at the same time", { concurrency: true }, () => {
  test("[CR204] a call that failed by this server's speech, model or line costs nothing", async () => {
    const fault = { isAnswered: true, isOwnLine: true, detail: null, wasMute: false };
    assert.equal(chargeOf({ ...fault, reason: "speech_failed" }), "nothing");
    assert.equal(chargeOf({ ...fault, reason: "carrier_failed" }), "nothing");
    // A trunk that an account brings along must not make its calls free.
    assert.equal(chargeOf({ ...fault, reason: "carrier_failed", isOwnLine: false }), "lasted");
    assert.equal(chargeOf({ ...fault, reason: "customer_hung_up" }), "full");
    assert.equal(chargeOf({ ...fault, reason: "media_timeout" }), "lasted");
    const balance = async () => (await call("GET", "/user/me")).body.total_balance as number;
    const before = await balance();
    model.script(() => ({ status: 401 }));
    await Promise.all(([
      [["Hello."], "ended_by_customer", "customer_hung_up"],
      [["One.", "Two.", "Three.", "Four."], "failed", "model_failed"],
    ] as const).map(async ([lines, status, reason]) => {
      const { body: made } = await call("POST", "/user/try_call", {
        body: { assistant_id: outbound.id, lines },
      });
      const over = await follow(made.call_id, NOTHING);
      assert.equal(over.state?.status, status);
      const { body } = await call("GET", `/user/calls/${made.call_id}`);
      assert.deepEqual([body.end_reason, body.total_cost], [reason, 0]);
      assert.match(body.failure_reason, /^The language model (failed|gave no reply).*401.*Check the assistant's model/);
    }));
    model.script(null);
    assert.equal(await balance(), before);
  });

  void suite("a process that is stopped", { concurrency: false }, () => {
    test("[CR411] PARLEY_CALL_DRAIN_SECONDS: calls finish while the server stops", async () => {
      await endChild("SIGTERM");
      child = await startProcess(folder, { ...childEnv, PARLEY_CALL_DRAIN_SECONDS: "60" });
      const { data } = await askChild("/user/assistant", GREETS);
      const { call_id: id } = await askChild("/user/try_call", {
        assistant_id: data.id, lines: ["Hello.", "What do you sell?"],
      });
      await accountEvent({ url: child.url, key: childKey }, ({ type, call_id: of }) =>
        type === "transcript_added" && of === id);
      assert.deepEqual(await endChild("SIGTERM"), [0, null]);
      child = await startProcess(folder, childEnv);
      const { status, end_reason, transcript } = await askChild(`/user/calls/${id}`);
      assert.deepEqual([status, end_reason], ["ended_by_customer", "customer_hung_up"]);
      assert.match(String(transcript), /Customer: What do you sell\?\nAI: /);
      assert.doesNotMatch(String(transcript), /Goodbye/);
    });

    test("[CR14] killed during a call: it failed, its transcript is kept, at most what it lasted is charged", async () => {
      const killed = await stoppedBy("SIGKILL");
      const { status, end_reason, transcript, failure_reason } = killed;
      assert.deepEqual(
        [status, end_reason, transcript], ["failed", "server_restarted", "AI: Hi there."]);
      assert.match(
        String(failure_reason), /^The server was stopped or restarted during the call\./);
      costsItsTime(killed);
    });

    test("[CR203] SIGTERM: callers hear a goodbye, the call is completed and costs at most what it lasted", async () => {
      const ended = await stoppedBy("SIGTERM");
      const { status, end_reason, transcript } = ended;
      assert.deepEqual([status, end_reason], ["completed", "server_restarted"]);
      assert.equal(transcript,
        "AI: Hi there.\nAI: I am sorry, this call has to end now. "
          + "Please call again later. Goodbye.");
      assert.ok(Number(ended.duration) < 30);
      costsItsTime(ended);
    });
  });
});
