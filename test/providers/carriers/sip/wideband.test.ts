// Wide sound over SIP, judged by the telephone: what Debian's baresip wrote down of both
// directions, in G.722 and Opus, in the clear and encrypted, and after it was held.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { levelAt, loudestBetween, sineOf } from "#support/calls/spectrum.ts";
import { parseWav } from "#support/calls/wav.ts";
import { createReceived } from "#support/received.ts";
import { noBaresip, startBaresip, type Baresip } from "#support/sip/baresip.ts";
import { newNumber, startSipWorld, type SipWorld } from "#support/sip/server-with-sip.ts";
import { startScriptedModel, type ScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noBaresip();
const RATES = { g722: 16_000, opus: 48_000 } as const;
type Wide = keyof typeof RATES;
const model: ScriptedModel | null = skip ? null : await startScriptedModel();
const closing: { close(): Promise<unknown> }[] = [];
after(async () => {
  for (const one of closing) await one.close();
  await model?.close();
});

const GREETING = "She sells six shiny silver spoons. This is a test of speech.";
const startWorld = async (): Promise<SipWorld> => {
  const world = await startSipWorld({ PARLEY_MODEL_URL: model!.url, PARLEY_SPEECH: "auto" });
  closing.push(world.server);
  return world;
};

/** A second of a low tone and one of a high one, which no narrow line carries. */
const LOW_HZ = 1000;
const HIGH_HZ = 5600;
function microphone(rate: number): Int16Array {
  const pcm = new Int16Array(23 * rate);
  pcm.set(sineOf(LOW_HZ, rate, 1), rate);
  pcm.set(sineOf(HIGH_HZ, rate, 1), 2 * rate);
  return pcm;
}

/** The second that holds most of a tone. */
function loudestSecond(pcm: Int16Array, hz: number, rate: number): number {
  let best = -200;
  for (let from = 0; from + rate / 2 <= pcm.length; from += rate / 10) {
    best = Math.max(best, levelAt(pcm.subarray(from, from + rate / 2), hz, rate));
  }
  return best;
}

/** Speech in it is as loud however long the call went on around it. */
function loudestPart(pcm: Int16Array, rate: number): Int16Array {
  const parts = Array.from({ length: Math.floor(pcm.length / rate) }, (_, second) =>
    pcm.subarray(second * rate, (second + 1) * rate));
  const powerOf = (part: Int16Array): number => part.reduce((sum, one) => sum + one * one, 0);
  return parts.toSorted((one, other) => powerOf(other) - powerOf(one))[0] ?? pcm;
}

async function recordingOf(world: SipWorld, callId: number): Promise<ReturnType<typeof parseWav>> {
  const { body } = await world.server.call("GET", `/user/calls/${callId}`);
  const name = new URL(String(body.recording_url)).pathname.split("/").at(-1);
  return parseWav(readFileSync(join(world.server.dataDir, "recordings", `${name}.wav`)));
}

const phone = async (options: Parameters<typeof startBaresip>[0]): Promise<Baresip> => {
  const made = await startBaresip(options);
  closing.push(made);
  return made;
};

const settled = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Both directions of a call that is over: the low and the high tone came, and the wide voice. */
async function judge(
  t: TestContext, world: SipWorld, callId: number, telephone: Baresip, codec: Wide,
): Promise<void> {
  const rate = RATES[codec];
  const { heard, log } = await telephone.close();
  const { rate: recordedRate, channels: [customer] } = await recordingOf(world, callId);
  assert.equal(recordedRate, 16_000);
  const [low, high] = [LOW_HZ, HIGH_HZ].map((hz) => loudestSecond(customer!, hz, recordedRate));
  assert.ok(heard.length > rate, log);
  const voice = loudestPart(heard, rate);
  const above = loudestBetween(voice, [4500, 7000], rate, 25);
  const beyond = rate > 16_000 ? loudestBetween(voice, [9000, 15_000], rate, 50) : -200;
  t.diagnostic(`${codec}: server heard ${low!.toFixed(1)} and ${high!.toFixed(1)} dB; telephone heard ${above.toFixed(1)} dB above 4.5 kHz, ${beyond.toFixed(1)} above 9 kHz`);
  const sent = 20 * Math.log10(8000 / 32_768);
  assert.ok(Math.abs(low! - sent) < 3 && Math.abs(high! - sent) < 4, `${low} ${high}`);
  assert.ok(above > -75, `${above}`);
  assert.ok(beyond < above - 20, `${beyond}`);
}

for (const codec of ["g722", "opus"] as const) {
  test(`[SC195] a caller in ${codec} is heard in wideband, and hears a wideband voice`, { skip, timeout: 180_000 }, async (t: TestContext) => {
    const world = await startWorld();
    const { id, number } = await world.trunk({ sip_codecs: [codec, "pcmu"] });
    await world.assistant(id, { voice_id: 2, record: true, initial_message: GREETING });
    const telephone = await phone({ microphone: microphone(RATES[codec]), codec });
    await telephone.command("dial", `sip:${number}@127.0.0.1:${world.sipPort}`);
    const callId = await world.nextCall(number);
    await world.when(callId, "in-progress");
    await settled(5500);
    await telephone.command("hangup");
    await world.when(callId, "ended_by_customer");
    await judge(t, world, callId, telephone, codec);
  });

  test(`[SC196] a telephone called in ${codec} with SRTP can hold and resume, and its keys are received`, { skip, timeout: 180_000 }, async (t: TestContext) => {
    const world = await startWorld();
    model!.script((body) => ({
      tokens: [`keys ${JSON.stringify(body.messages.at(-1)?.content).replace(/\D/g, "")}`],
    }));
    const to = newNumber();
    const telephone = await phone({
      microphone: microphone(RATES[codec]), codec, number: to, isEncrypted: true,
    });
    const { id } = await world.trunk({
      sip_codecs: ["opus", "g722", "pcmu", "pcma"], sip_port: telephone.port, require_srtp: true,
    });
    const assistant = await world.assistant(id, {
      type: "outbound", voice_id: 2, record: true, initial_message: GREETING,
    });
    const callId = await world.dial(assistant.id, to);
    await world.when(callId, "in-progress");
    const replied = createReceived<{ kind: "reply"; json: string }>();
    world.server.app.features.bus.subscribe(`call:${callId}`, (notice) => {
      if (notice.kind === "committed" && notice.event.json.includes("keys ")) {
        replied.receive({ kind: "reply", json: notice.event.json });
      }
    });
    await settled(5500);
    await telephone.command("hold");
    await telephone.command("resume");
    for (const key of ["4", "2", "#"]) await telephone.command("sndcode", key);
    assert.match((await replied.event("reply")).json, /keys 42/);
    await telephone.command("hangup");
    await world.when(callId, "ended_by_customer");
    await judge(t, world, callId, telephone, codec);
  });
}
