// How sessions are opened over SSE and WebSocket, and the places of a topic that they take.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import type { ByteStream, Socket } from "#http/exchange.ts";
import { createStreams, type StreamRequest } from "#realtime/streams.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { atOnce, createLateSource, createTalk, START } from "#support/watched-talk.ts";

const TOO_MANY = { status: 429, message: "Too many streams are open." };

/** `isFull`: the client takes nothing more; `allowed`: what the watcher may still see. */
function createWorld() {
  const talk = createTalk();
  const system = createManualSystem();
  const state = { isFull: false, allowed: true };
  const source = { ...atOnce(talk), allowed: async () => state.allowed };
  const streams = createStreams({
    bus: talk.bus, countElsewhere: null, system, log: createLogger("silent"),
  });
  const asked = (sessionsMax: number): StreamRequest => ({ source, position: START, sessionsMax });
  /** What the client was sent, and how it was closed; its stream is open once `begin` is called. */
  const openSse = async (request: StreamRequest) => {
    const sent: string[] = [];
    let [drained, gone] = [() => {}, () => {}];
    const stream: ByteStream = {
      write: (data) => {
        sent.push(String(data));
        return !state.isFull;
      },
      onDrain: (callback) => (drained = callback),
      onClose: (callback) => (gone = callback),
      end: (text) => void sent.push(text ?? "", "end"),
      abort: () => void sent.push("abort"),
    };
    const reply = await streams.openSse(request);
    return {
      sent, drain: () => drained(), leave: () => gone(),
      begin: () => void ("stream" in reply && reply.stream?.(stream)),
    };
  };
  return { talk, system, state, streams, asked, openSse };
}

test("[EV471] a place is held during the act and is free afterwards, however that ends", async () => {
  const { streams, asked, openSse } = createWorld();
  const acts = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const held = acts.map(({ promise }) => streams.withPlace(asked(2), () => promise));
  await nextTurn();
  await assert.rejects(streams.withPlace(asked(2), async () => assert.fail()), TOO_MANY);
  const opened = await openSse({ ...asked(2), hasPlace: true });
  opened.begin();
  await nextTurn();
  assert.match(opened.sent.join(""), /^retry/);
  acts[0]?.reject(new Error("refused"));
  await assert.rejects(held[0] ?? Promise.resolve(), /refused/);
  assert.throws(() => streams.assertRoom(asked(2)), TOO_MANY);
  acts[1]?.resolve();
  await held[1];
  streams.assertRoom(asked(2));
  opened.leave();
  streams.assertRoom(asked(1));
});

test("[EV403] a stream has its place while the log is asked where it begins; a later one gets 429", async () => {
  const { talk, streams, asked } = createWorld();
  const late = createLateSource(talk, 1);
  const request = { ...asked(1), source: late.source };
  const first = streams.openSse(request);
  await assert.rejects(streams.openSse(request), TOO_MANY);
  late.answerOne();
  assert.equal((await first).status, 200);
  // A place that was not used is free again.
  const second = streams.openSse(request);
  late.answerOne();
  assert.equal((await second).status, 200);
});

test("[EV472] of two that begin for the last place one is dropped, so that it comes again", async () => {
  const { talk, streams, asked, openSse, system } = createWorld();
  talk.ask();
  const both = [await openSse(asked(1)), await openSse(asked(1))];
  for (const { begin } of both) begin();
  await nextTurn();
  const [first = "", second = ""] = both.map(({ sent }) => sent.join(""));
  assert.match(first, /message_added/);
  assert.match(second, /abort/);
  assert.doesNotMatch(second, /message_added|end$/);
  for (const { leave } of both) leave();
  assert.deepEqual([streams.counts(), system.pending()], [{ sse: 0, websocket: 0 }, 0]);
});

test("[EV473] a stream beats; it ends at an event, a beat or a check once it may see nothing more", async () => {
  const { talk, state, system, streams, asked, openSse } = createWorld();
  const ends = [
    () => talk.ask(), () => system.advance(LIMITS.heartbeatMs), () => streams.check(),
  ];
  for (const end of ends) {
    state.allowed = true;
    const { begin, sent, leave } = await openSse(asked(1));
    begin();
    await nextTurn();
    system.advance(LIMITS.heartbeatMs);
    assert.equal(sent.at(-1), ": beat\n\n");
    const before = sent.length;
    state.allowed = false;
    end();
    await nextTurn();
    assert.equal(sent.at(-1), "end");
    assert.doesNotMatch(sent.slice(before).join(""), /message_added/);
    leave();
  }
});

test("[EV474] a reader over SSE is sent what it missed once it takes more, and told to reconnect at a stop", async () => {
  const { talk, state, streams, asked, openSse } = createWorld();
  const { begin, sent, drain } = await openSse(asked(1));
  begin();
  await nextTurn();
  state.isFull = true;
  talk.ask();
  talk.ask();
  await nextTurn();
  assert.doesNotMatch(sent.join(""), /"id":"2"/);
  state.isFull = false;
  drain();
  await nextTurn();
  assert.match(sent.join(""), /"id":"2"/);
  streams.closeAll();
  assert.match(sent.slice(-2).join(""), /^event: reconnect\n.*end$/s);
});

test("[EV475] a socket that was full in the middle of what it is sent waits until it takes more", async () => {
  const { talk, streams, asked } = createWorld();
  const sent: string[] = [];
  const socket: Socket = {
    // Full once, at the first of three events.
    send: (text) => sent.push(text) !== 2,
    sendBytes: () => true, end: () => assert.fail(), closed: false,
  };
  for (let event = 0; event < 3; event += 1) talk.ask();
  const session = (await streams.openSocket(asked(1)))(socket);
  await nextTurn();
  assert.equal(sent.length, 4);
  talk.ask();
  await nextTurn();
  assert.equal(sent.length, 4);
  session.drained();
  await nextTurn();
  assert.equal(sent.length, 5);
  session.closed();
});
