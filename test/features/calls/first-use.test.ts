// A call under way beside another that is the first to use something: the real process with the
// engines it has by itself, and what its thread of sound worked in one turn of its loop.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { callApi } from "#support/api.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { freePorts } from "#support/free-ports.ts";
import { FarPage } from "#support/pages/far-page.ts";
import { startProcess } from "#support/process.ts";
import { assistantBody, testDataDir, type TestServer } from "#support/server.ts";
import { newTrunk } from "#support/sip/sip-trunks.ts";
import { noSipp, startSipp } from "#support/sip/sipp.ts";

/** As much sound as a far end keeps: with more of a pause its listener hears a gap. */
const JITTER_BUFFER_MS = 40;
const skip = process.platform !== "linux" && "what a thread has worked is counted by Linux";

const dataDir = testDataDir();
const turnsFile = join(dataDir, "turns");
writeFileSync(turnsFile, "");
const sipPort = await freePorts(2);
const { process: child, url, key } = await startProcess(dataDir, {
  NODE_OPTIONS: `--import=${new URL("../../support/calls/turns.ts", import.meta.url).pathname}`,
  TURNS_FILE: turnsFile, PARLEY_SIP_PORT: String(sipPort), PARLEY_SIP_HOST: "127.0.0.1",
  PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
});
after(async () => {
  child.kill("SIGKILL");
  await once(child, "exit");
});

const call: TestServer["call"] = async (method, path, { body } = {}) => {
  const answer = await callApi(url, method, path, { key, body });
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.body}`);
  return answer;
};
const server = { url, key: key ?? "", call } as Parameters<typeof WebCaller.open>[0];

async function newAssistant(settings: object): Promise<string> {
  const { body } = await call("POST", "/user/assistant", {
    body: assistantBody({
      status: "active", post_call_evaluation: false,
      initial_message: "Hello and welcome, how may I help you?", ...settings,
    }),
  });
  return String(body.data.uuid);
}

async function talk(settings: object = {}, start: object = {}): Promise<WebCaller> {
  const { body } = await call("POST", "/conversations", {
    body: { assistant_id: await newAssistant(settings) },
  });
  const conversation = String(body.conversation_id);
  return WebCaller.open(server, conversation, await callTicket(server, conversation), start);
}

const turnsMs = (): number[] =>
  readFileSync(turnsFile, "utf8").split("\n").filter((line) => line !== "").map(Number);
const isSound = (frame: Int16Array): boolean => frame.some((sample) => sample !== 0);
/** Background sounds follow what is said, so more than the greeting. */
const heard = async (caller: WebCaller, frames = 50): Promise<void> => {
  const holds = (): boolean => caller.sound.filter(isSound).length >= frames;
  await caller.until(holds);
};

/** Nobody says anything in it but the greeting. */
let underWay: WebCaller;
before(async () => {
  underWay = await talk({
    max_silence_duration: 300, max_initial_silence_duration: 120, initial_message: "Hello.",
  });
  await heard(underWay, 10);
});

async function first(t: TestContext, use: string, run: () => Promise<void>): Promise<void> {
  await t.test(use, async () => {
    const known = turnsMs().length;
    const frames = underWay.frames;
    await run();
    await underWay.until(() => underWay.frames > frames + 50);
    const longest = Math.max(0, ...turnsMs().slice(known));
    t.diagnostic(`${use}: ${longest} ms`);
    assert.ok(longest < JITTER_BUFFER_MS, `the thread of sound worked ${longest} ms in one turn`);
  });
}

const greeted = async (settings: object, start: object = {}): Promise<void> => {
  const caller = await talk(settings, start);
  await heard(caller);
  caller.hangUp();
};

test("[VL43] a live call has no gap while another call first uses a background, voice, recogniser or WebRTC", { skip, timeout: 120_000 }, async (t) => {
  for (const kind of ["crowded_room", "office", "city", "forest", "cafe", "nature"]) {
    await first(t, kind, () => greeted({ ambient_sound: kind, initial_message: "Hi." }));
  }
  await first(t, "voices of another language", () =>
    greeted({ language_id: 2, initial_message: "Guten Tag, wie geht es?" }, { hearing: "browser" }));
  await first(t, "a recording", () => greeted({ record: true }));
  await first(t, "the noise filter and the recogniser", async () => {
    const caller = await talk({ noise_cancellation: "everywhere" });
    await heard(caller);
    // Its own words, in pieces as they came.
    caller.play(Int16Array.from(caller.sound.flatMap((frame) => [...frame])));
    await heard(caller, 100);
    caller.hangUp();
  });
  await first(t, "packets of a page", async () => {
    const caller = await talk();
    const page = await FarPage.open();
    caller.send({ type: "offer", sdp: page.offer });
    await caller.until(() => caller.messages.some(({ type }) => type === "answer"));
    assert.ok(await page.connect(caller.messages.find(({ type }) => type === "answer")?.sdp ?? ""));
    caller.hangUp();
    page.close();
  });
  if (noSipp()) return;
  await first(t, "a telephone", async () => {
    const { id, phone_number: number } = await newTrunk(server, {
      phone_number: "+14155550190", sip_address: "127.0.0.1", country_code: "US",
      inbound_authorization_type: "ip", allowed_inbound_ips: ["127.0.0.1"],
    });
    await newAssistant({ phone_number_id: id, ambient_sound: "city" });
    await (await startSipp({
      scenario: "load", to: sipPort, numbers: [number], pauseMs: 2000, calls: 1,
    })).done;
  });
});
