// The bounds of calls over hosted carriers, on a clock that the test moves: sockets that never
// start, take nothing or fall silent, and calls of which nobody reports.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHosted, NO_REPLY } from "#features/calls/hosted/hosted.ts";
import { HOSTED_CALL_LIMITS } from "#features/calls/hosted/call.ts";
import { HOSTED_MEDIA_LIMITS } from "#features/calls/hosted/media.ts";
import { Fault, ProviderError } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import type { Socket } from "#http/exchange.ts";
import type {
  CallReport, Dialled, HostedCalls, HostedDial,
} from "#providers/carriers/hosted/port.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const RINGING_MS = 30_000;
const settled = () => new Promise((resolve) => setImmediate(resolve));

function createWorld(
  outcome: Dialled = { kind: "placed", callId: "CA1" }, changes: Partial<HostedCalls> = {},
) {
  const system = createManualSystem();
  const hungUp: string[] = [];
  const dials: HostedDial[] = [];
  const carrier: HostedCalls = {
    account: "twilio", vendor: "Twilio", connect: null, dialect: "twilio", signsSockets: true,
    sendDtmf: null,
    isGenuine: () => true, read: () => null,
    dial: (request) => {
      dials.push(request);
      return Promise.resolve(outcome);
    },
    answer: () => Promise.resolve({ status: 200, contentType: "text/xml", body: "answered" }),
    refuse: (_, reason) => Promise.resolve({ status: 200, contentType: "text/xml", body: reason }),
    hangUp: (callId) => {
      hungUp.push(callId);
      return Promise.resolve();
    },
    transfer: () => Promise.resolve(),
    close: () => Promise.resolve(),
    ...changes,
  };
  const hosted = createHosted({
    carrier, publicUrl: "https://parley.example", system, log: createLogger("silent"),
  });
  const told: LegEvent[] = [];
  const party = {
    callId: 1, callerId: null, publish: (event: LegEvent) => void told.push(event),
    transferFailed: () => undefined,
  };
  const open = () => {
    const sent: Record<string, unknown>[] = [];
    const socket = { closed: false, code: 0, takes: true };
    const raw: Socket = {
      get closed() { return socket.closed; },
      send: (text) => {
        sent.push(JSON.parse(text) as Record<string, unknown>);
        return socket.takes;
      },
      sendBytes: () => true,
      end: (code) => void (socket.closed ||= (socket.code = code) > 0),
    };
    const handlers = hosted.serve(raw);
    const say = (message: object): void => handlers.message(JSON.stringify(message));
    const start = (token: string, callSid = "CA1") => say({
      event: "start", streamSid: "MZ1", start: { callSid, customParameters: { token } },
    });
    return { sent, socket, handlers, say, start };
  };
  const dial = async () => {
    const far = hosted.call(party);
    far.dial({ to: "+1", from: "+2", ringingMs: RINGING_MS, detectMachine: false });
    await settled();
    const [{ join } = assert.fail()] = dials.slice(-1);
    const statusToken = join.statusUrl.split("/").at(-1) ?? "";
    return { face: far.face, token: join.parameters.token ?? "", statusToken };
  };
  const report = (statusToken: string, ...kinds: ("ringing" | "answered")[]) =>
    hosted.report(statusToken, {
      callId: "CA1", from: null, to: null, isOffer: false,
      events: kinds.map((kind) => ({ kind })), reply: null,
    });
  const talking = async () => {
    const call = await dial();
    const stream = open();
    stream.start(call.token);
    return { ...call, ...stream };
  };
  return { system, hosted, hungUp, told, open, dial, report, talking, party };
}

const ended = (told: LegEvent[]) => told.filter(({ kind }) => kind === "ended");

test("[TW90] a socket without a start is closed in time, one with a start is not", async () => {
  const { system, open, dial } = createWorld();
  const { token } = await dial();
  const [idle, chatty, started] = [open(), open(), open()];
  started.start(token);
  const { startMs } = HOSTED_MEDIA_LIMITS;
  system.advance(startMs - 1);
  chatty.say({ event: "connected" });
  assert.equal(idle.socket.code + chatty.socket.code + started.socket.code, 0);
  system.advance(1000);
  assert.deepEqual([idle.socket.code, chatty.socket.code, started.socket.code], [4408, 4408, 0]);
});

test("[TW91] a call whose far end sends nothing or accepts nothing is hung up and has failed", async () => {
  for (const fault of ["silent", "slow"] as const) {
    const { system, told, hungUp, talking } = createWorld();
    const { face, say, sent, socket } = await talking();
    const frame = new Int16Array(160);
    socket.takes = fault !== "slow";
    const limitMs = fault === "slow" ? HOSTED_MEDIA_LIMITS.stallMs : HOSTED_MEDIA_LIMITS.silenceMs;
    face.frame(frame);
    face.frame(frame);
    // What it does not take is dropped, not kept.
    assert.equal(sent.length, fault === "slow" ? 1 : 2);
    system.advance(limitMs - 1000);
    if (fault === "slow") say({ event: "media", media: { payload: "" } });
    assert.deepEqual(ended(told), []);
    system.advance(2000);
    await settled();
    assert.deepEqual(ended(told), [{ kind: "ended", cause: "failed" }]);
    assert.deepEqual([socket.closed, hungUp], [true, ["CA1"]]);
  }
  // A socket that has caught up goes on.
  const { system, told, talking } = createWorld();
  const { face, handlers, sent, socket } = await talking();
  socket.takes = false;
  face.frame(new Int16Array(160));
  system.advance(HOSTED_MEDIA_LIMITS.stallMs - 1);
  socket.takes = true;
  handlers.drained();
  system.advance(2000);
  face.frame(new Int16Array(160));
  assert.deepEqual([sent.length, ended(told)], [2, []]);
});

test("[TW92] audio that arrives faster than real time is dropped", async () => {
  const { system, told, talking } = createWorld();
  const { say } = await talking();
  const second = { event: "media", media: { payload: Buffer.alloc(8000, 0xff).toString("base64") } };
  const heard = () => told.filter(({ kind }) => kind === "audio").length;
  for (let number = 0; number < 10; number += 1) say(second);
  assert.equal(heard(), HOSTED_MEDIA_LIMITS.aheadMs / 1000);
  system.advance(2000);
  for (let number = 0; number < 10; number += 1) say(second);
  assert.equal(heard(), HOSTED_MEDIA_LIMITS.aheadMs / 1000 + 2);
});

/** What the owner reads of a call that its carrier told nothing of. */
const SILENT = "the carrier reported nothing about it; it may not reach PARLEY_PUBLIC_URL";

test("[TW93] a call without reports is given up, and hung up if it rings later", async () => {
  const error = new ProviderError("lost", { retryable: false });
  const limitMs = RINGING_MS + HOSTED_CALL_LIMITS.reportMs;
  const lost = createWorld({ kind: "unknown", error });
  const { statusToken } = await lost.dial();
  lost.system.advance(limitMs - 1);
  assert.deepEqual(ended(lost.told), []);
  lost.system.advance(1);
  assert.deepEqual(ended(lost.told), [{ kind: "ended", cause: "failed", detail: SILENT }]);
  assert.deepEqual(lost.hungUp, []);
  lost.report(statusToken, "ringing");
  assert.deepEqual(lost.hungUp, ["CA1"]);
  // One that rang was not picked up.
  const rang = createWorld();
  rang.report((await rang.dial()).statusToken, "ringing");
  rang.system.advance(limitMs);
  await settled();
  assert.deepEqual(ended(rang.told), [{ kind: "ended", cause: "no_answer" }]);
  assert.deepEqual(rang.hungUp, ["CA1"]);
  // One that was picked up and has no sound has failed sooner.
  const mute = createWorld();
  mute.report((await mute.dial()).statusToken, "ringing", "answered");
  mute.system.advance(HOSTED_MEDIA_LIMITS.startMs);
  await settled();
  assert.deepEqual(ended(mute.told), [{ kind: "ended", cause: "failed", detail: SILENT }]);
  assert.deepEqual(mute.hungUp, ["CA1"]);
});

test("[TW94] a socket that closes without a stop waits briefly for the report, one with a stop does not", async () => {
  const cut = createWorld();
  (await cut.talking()).handlers.closed(1006);
  cut.system.advance(HOSTED_CALL_LIMITS.graceMs - 1);
  assert.deepEqual(ended(cut.told), []);
  cut.system.advance(1);
  await settled();
  assert.deepEqual(ended(cut.told), [{ kind: "ended", cause: "far_hung_up" }]);
  assert.deepEqual(cut.hungUp, ["CA1"]);
  const stopped = createWorld();
  const { say, socket } = await stopped.talking();
  say({ event: "stop" });
  await settled();
  assert.deepEqual(ended(stopped.told), [{ kind: "ended", cause: "far_hung_up" }]);
  assert.deepEqual([socket.code, stopped.hungUp], [1000, []]);
});

test("[TW95] the last words are waited for, but only briefly", async () => {
  const { system, hungUp, talking } = createWorld();
  const { face, sent } = await talking();
  face.mark();
  face.over("assistant_ended");
  await settled();
  assert.deepEqual([sent.at(-1)?.event, hungUp], ["mark", []]);
  system.advance(HOSTED_CALL_LIMITS.lastWordsMs);
  await settled();
  assert.deepEqual(hungUp, ["CA1"]);
  const heard = createWorld();
  const call = await heard.talking();
  call.face.mark();
  call.face.over("assistant_ended");
  call.say({ event: "mark", mark: { name: "1" } });
  await settled();
  assert.deepEqual(heard.hungUp, ["CA1"]);
});

test("[TW96] an incoming call that is never connected ends in time and leaves nothing", async () => {
  const { system, hosted, told, party } = createWorld();
  const report: CallReport = {
    callId: "CA7", from: null, to: "+1", isOffer: true, events: [],
    reply: null,
  };
  let asked = 0;
  const receive: Parameters<typeof hosted.offer>[1] = (_, join) => {
    asked += 1;
    join(party);
    return Promise.resolve(null);
  };
  await hosted.offer(report, receive);
  assert.equal((await hosted.offer(report, receive)).body, "answered");
  assert.equal(asked, 1);
  system.advance(HOSTED_MEDIA_LIMITS.startMs);
  assert.deepEqual(ended(told), [{ kind: "ended", cause: "far_hung_up" }]);
  await settled();
  system.advance(HOSTED_CALL_LIMITS.memoryMs);
  assert.equal(system.pending(), 0);
  await hosted.offer(report, receive);
  assert.equal(asked, 2);
});

test("[TW97] an answer the carrier rejects ends the call, once; a rejected refusal is retried", async () => {
  const gone = () => Promise.reject(new ProviderError("the call is over", { retryable: false }));
  const { hosted, told, party, hungUp } = createWorld(undefined, { answer: gone, refuse: gone });
  const report: CallReport = {
    callId: "CA8", from: null, to: "+1", isOffer: true, events: [], reply: null,
  };
  let asked = 0;
  const receive: Parameters<typeof hosted.offer>[1] = (_, join) => {
    asked += 1;
    join(party);
    return Promise.resolve(null);
  };
  for (let time = 0; time < 2; time += 1) {
    assert.deepEqual(await hosted.offer(report, receive), NO_REPLY);
  }
  assert.deepEqual([asked, ended(told)], [1, [{ kind: "ended", cause: "failed" }]]);
  await settled();
  assert.deepEqual(hungUp, ["CA8"]);
  for (let time = 0; time < 2; time += 1) {
    await assert.rejects(hosted.offer({ ...report, callId: "CA9" }, () => {
      asked += 1;
      return Promise.resolve("busy");
    }), (error) => error instanceof Fault && error.status === 503);
  }
  assert.equal(asked, 3);
});
