// What the server says about WebRTC on the socket of a web call, to pages that do as they should
// and to others; the sound itself is in test/ui/talk-peer.test.ts and with the peers.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { openOpus } from "#audio/opus.ts";
import { askUntil } from "#support/asking.ts";
import { levelAt, sineOf } from "#support/calls/spectrum.ts";
import { callTicket, WebCaller, type ServerMessage } from "#support/calls/web-caller.ts";
import { FarPage, SHORTLY_MS } from "#support/pages/far-page.ts";
import { MicrophoneSocket } from "#support/pages/microphone-socket.ts";
import { pageOffer } from "#support/pages/offers.ts";
import { newAssistant, newConversation, startTestServer, type TestServer } from "#support/server.ts";

const SECRET = "a secret of the TURN servers";
const env = { PARLEY_SPEECH: "loopback" };
const server = await startTestServer({
  env: {
    ...env, PARLEY_TURN_SECRET: SECRET,
    PARLEY_ICE_URLS: "stun:stun.example.org, turn:turn.example.org:3478?transport=tcp",
  },
});
const without = await startTestServer({ env: { ...env, PARLEY_WEBRTC: "off" } });
after(() => Promise.all([server.close(), without.close()]));

async function startCall(one: TestServer, greeting = "Hi there."): Promise<WebCaller> {
  const { uuid } = await newAssistant(one, {
    initial_message: greeting, post_call_evaluation: false, endpoint_sensitivity: 1,
  });
  const conversation = await newConversation(one, uuid);
  return WebCaller.open(one, conversation, await callTicket(one, conversation));
}

/** The next message of the kind. */
async function next(caller: WebCaller, type: string): Promise<ServerMessage> {
  const seen = caller.messages.length;
  const find = (): ServerMessage | undefined =>
    caller.messages.slice(seen).find((message) => message.type === type);
  await caller.until(() => find() !== undefined);
  return find()!;
}

async function sent(caller: WebCaller, message: object, type: string): Promise<ServerMessage> {
  const answer = next(caller, type);
  caller.send(message);
  return answer;
}

test("[VL213] a page gets STUN servers, and TURN servers with a username that expires", async () => {
  const caller = await startCall(server);
  const { webrtc } = caller.messages.find(({ type }) => type === "ready")!;
  const [stun, turn] = webrtc!.ice_servers;
  assert.deepEqual(stun, { urls: ["stun:stun.example.org"] });
  assert.deepEqual(turn?.urls, ["turn:turn.example.org:3478?transport=tcp"]);
  const { username = "", credential } = turn;
  assert.ok(Number(username) > Date.now() / 1000 + 3600);
  assert.equal(credential, createHmac("sha1", SECRET).update(username).digest("base64"));
  caller.hangUp();
});

test("[VL214] unacceptable and too many offers are errors; the call continues over its WebSocket", async () => {
  const caller = await startCall(server);
  const refused = await sent(caller, { type: "offer", sdp: "v=0\r\n" }, "error");
  assert.equal(refused.status, 422);
  assert.match(refused.error ?? "", /of audio/);
  assert.equal((await sent(caller, { type: "offer", sdp: "x".repeat(20_000) }, "error")).status, 422);
  assert.equal((await sent(caller, { type: "path", path: "pigeon" }, "error")).status, 422);
  // There is no peer: the page is told to stay.
  assert.equal((await sent(caller, { type: "path", path: "peer" }, "path")).path, "socket");
  assert.equal((await sent(caller, { type: "path", path: "socket" }, "path")).path, "socket");
  const answer = await sent(caller, { type: "offer", sdp: pageOffer() }, "answer");
  assert.match(answer.sdp ?? "", /a=ice-lite/);
  // Another one takes the place of the first.
  await sent(caller, { type: "offer", sdp: pageOffer() }, "answer");
  assert.equal((await sent(caller, { type: "offer", sdp: pageOffer() }, "error")).status, 429);
  await caller.until(() => caller.words.join(" ") === "Hi there.");
  caller.hangUp();

  const other = await startCall(without);
  assert.equal(other.messages.find(({ type }) => type === "ready")!.webrtc, undefined);
  assert.equal((await sent(other, { type: "offer", sdp: pageOffer() }, "error")).status, 422);
  other.hangUp();
});

test("[VL215] sound takes one path at a time, packets once both sides say so; the peer ends with its call", async (t) => {
  // The assistant speaks all the time.
  const caller = await startCall(server, `${Array(39).fill("well").join(" ")}.`);
  const page = await FarPage.open();
  t.after(() => page.close());
  const { sdp = "" } = await sent(caller, { type: "offer", sdp: page.offer }, "answer");
  assert.equal(await page.connect(sdp), true);
  assert.equal(page.sounds.length, 0);
  assert.equal((await sent(caller, { type: "path", path: "peer" }, "path")).path, "peer");
  const { frames } = caller;
  const speaking = setInterval(() => page.sendSound(Buffer.from([0x08, 0, 0])), 20);
  t.after(() => clearInterval(speaking));
  await askUntil(() => page.sounds.length, (count) => count > 10);
  assert.equal(caller.frames, frames);
  assert.equal((await sent(caller, { type: "path", path: "socket" }, "path")).path, "socket");
  await caller.until(() => caller.frames > frames + 10);
  clearInterval(speaking);
  const again = await sent(caller, { type: "offer", sdp: page.offer }, "answer");
  assert.equal(await page.connect(again.sdp ?? ""), true);
  const { answers } = page;
  page.check();
  assert.equal(await page.answered(answers), true);
  caller.send({ type: "end" });
  await caller.closed();
  // The thread of the peers hears of the end a moment later.
  await askUntil(async () => {
    const before = page.answers;
    page.check();
    return !await page.answered(before, SHORTLY_MS);
  }, (isGone) => isGone);
});

test("[CR432] a WebRTC caller hears the person who took over, not the assistant, and is heard", async (t) => {
  const caller = await startCall(server);
  await caller.until(() => caller.words.join(" ") === "Hi there.");
  const page = await FarPage.open();
  t.after(() => page.close());
  const { sdp = "" } = await sent(caller, { type: "offer", sdp: page.offer }, "answer");
  assert.equal(await page.connect(sdp), true);
  await sent(caller, { type: "path", path: "peer" }, "path");
  assert.equal((await server.call("POST", `/user/calls/${caller.callId}/take-over`)).status, 200);
  const microphone = await MicrophoneSocket.open(server, caller.callId);
  const coder = await openOpus(48_000);
  const tone = sineOf(600, 48_000, 0.02);
  const speaking = setInterval(() => page.sendSound(coder.encode(tone)), 20);
  t.after(() => {
    clearInterval(speaking);
    coder.close();
  });
  await askUntil(() => microphone.peaks, (peaks) => peaks.some((peak) => peak > 3000));
  const { words: { length: words }, frames } = caller;
  const before = page.sounds.length;
  microphone.tone(3000);
  await askUntil(() => page.sounds.length, (count) => count >= before + 100);
  const heard = page.sounds.slice(before).flatMap((packet) => [...coder.decode(packet) ?? []]);
  const level = levelAt(Int16Array.from(heard), 1000, 48_000);
  assert.ok(level > -45, `${level} dB`);
  assert.deepEqual([caller.words.length, caller.frames], [words, frames], "nothing by the socket");
  caller.send({ type: "end" });
  await microphone.closed();
});
