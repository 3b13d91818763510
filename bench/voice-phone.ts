// Voice-to-voice latency as the caller has it: Debian's baresip calls the real server over SIP,
// asks one question after the other, and its own recordings of both directions say how long each
// answer took, from the last sound sent to the first heard. Everything has its defaults (Silero,
// PocketSphinx, Flite, a new assistant's settings) except the model, which answers at once. Started
// by bench/voice.ts.
import { setTimeout as delay } from "node:timers/promises";
import { createLogger } from "#core/logger.ts";
import { createEmbeddedVoices } from "#providers/speech/embedded/embedded-voices.ts";
import { speakWhole } from "#providers/speech/opening.ts";
import { heardIn, stretches, type Stretch } from "#support/calls/stretches.ts";
import { noBaresip, RATE, startBaresip } from "#support/sip/baresip.ts";
import { start, stop } from "./load.ts";
import { median, percentile, print } from "./report.ts";
import { startSipServer, type SipServer } from "./sip-calls.ts";
import { QUESTIONS } from "./voice-default.ts";

const CALLS = Number(process.env.BENCH_PHONE_CALLS ?? 3);
/** How long the greeting takes, and how long an answer from the end of its question. */
const GREETING_MS = 5000;
const ANSWER_MS = 5500;
const POLL_MS = 250;
/** A second and a half of speech. */
const ANSWER_TOKENS = 3;
/** The greeting and the answers are as long as on the telephone. */
const ASSISTANT = { initial_message: "Hello, how can I help you?", endpoint_sensitivity: 0.5 };
const STAGES = [
  "final_transcript_ms", "endpoint_ms", "first_token_ms", "first_audio_ms", "heard_ms",
] as const;
type Turn = Record<(typeof STAGES)[number], number | null>;

interface PhoneFigures {
  calls: number;
  turns: number;
  /** Questions that were not answered between their end and the next question. */
  unheard: number;
  /** Questions whose answer was heard before they were over. */
  cut_off: number;
  p50_ms: number;
  p95_ms: number;
  max_ms: number;
  /** Medians of the same turns from the call's record; the last is the record's own total. */
  record: Record<string, number>;
}

/** What the caller says: each question after the time that the answer before it takes. */
async function speakQuestions(): Promise<Int16Array> {
  const voices = createEmbeddedVoices(createLogger("silent"));
  // The thread of the voices does not keep the process alive.
  const alive = setInterval(() => undefined, 1000);
  const spoken: Int16Array[] = [];
  for (const question of QUESTIONS) {
    const pcm = await new Promise<Int16Array | null>((resolve) => speakWhole(voices.flite, {
      rate: RATE, voice: "rms", gender: "male", language: "en", speed: 1, stability: 1,
      similarity: 1, hasEmotion: false,
    }, question, resolve));
    spoken.push(pcm ?? new Int16Array(0));
  }
  await voices.close();
  clearInterval(alive);
  const silence = (ms: number): number[] => Array.from({ length: (ms * RATE) / 1000 }, () => 0);
  return Int16Array.from([
    ...silence(GREETING_MS), ...spoken.flatMap((pcm) => [...pcm, ...silence(ANSWER_MS)]),
  ]);
}

async function call(
  server: SipServer, key: string, microphone: Int16Array,
): Promise<{ said: Stretch[]; heard: Stretch[]; turns: Turn[] }> {
  const phone = await startBaresip({ microphone });
  await phone.command("dial", `sip:${server.numbers[0]}@127.0.0.1:${server.sipPort}`);
  await phone.events.event("CALL_ESTABLISHED");
  await delay((microphone.length * 1000) / RATE);
  await phone.command("hangup");
  const recordings = await phone.close();
  const newest = async () => {
    const { data } = await server.ask(key, "/user/calls?per_page=1") as unknown as
      { data: { id: number; status: string; latency: Turn[] }[] };
    return data[0];
  };
  let record = await newest();
  while (record === undefined || !record.status.startsWith("ended_")) {
    await delay(POLL_MS);
    record = await newest();
  }
  return { said: stretches(recordings.sent), heard: heardIn(recordings), turns: record.latency };
}

/** How long each question's answer took; null: nothing was heard before the next question. */
function waits(said: Stretch[], heard: Stretch[]): { ms: number | null; isCutOff: boolean }[] {
  return said.map(({ fromMs, toMs }, at) => {
    const untilMs = said[at + 1]?.fromMs ?? Infinity;
    const answers = heard.filter((one) => one.fromMs >= fromMs && one.fromMs < untilMs);
    const after = answers.find((one) => one.fromMs >= toMs);
    return {
      ms: after ? after.fromMs - toMs : null,
      isCutOff: answers.some((one) => one.fromMs < toMs),
    };
  });
}

export async function measureAtThePhone(
  env: Record<string, string>, keys: string[],
): Promise<PhoneFigures | null> {
  const missing = noBaresip();
  if (missing !== false) {
    print(`at the telephone: skipped, ${missing}`);
    return null;
  }
  const microphone = await speakQuestions();
  const model = await start(
    "../test/support/vendors/scripted-model.ts", ["--tokens", String(ANSWER_TOKENS)], {});
  process.once("exit", () => model.child.kill());
  const server = await startSipServer({
    ...env, PARLEY_SPEECH: "auto", PARLEY_MODEL_URL: `http://127.0.0.1:${model.port}/v1`,
  }, keys, ASSISTANT);
  const waited: ReturnType<typeof waits> = [];
  const turns: Turn[] = [];
  for (let number = 0; number < CALLS; number += 1) {
    const one = await call(server, keys[0] ?? "", microphone);
    waited.push(...waits(one.said, one.heard));
    turns.push(...one.turns);
  }
  await server.stop();
  await stop(model);
  const ms = waited.flatMap((one) => one.ms ?? []);
  const figures = {
    calls: CALLS, turns: waited.length, unheard: waited.length - ms.length,
    cut_off: waited.filter(({ isCutOff }) => isCutOff).length,
    p50_ms: Math.round(median(ms)), p95_ms: Math.round(percentile(ms, 95)),
    max_ms: Math.round(percentile(ms, 100)),
    record: Object.fromEntries(STAGES.map((stage) =>
      [stage, median(turns.flatMap((turn) => turn[stage] ?? []))])),
  };
  print(`at the telephone, ${JSON.stringify(figures)}; ${waited.map((one) => Math.round(one.ms ?? -1)).join(" ")}`);
  return figures;
}
