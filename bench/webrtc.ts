// Web calls over a bad network, by WebRTC and by WebSocket: the real server and the talk page in
// Chromium, recorded in the page in both directions, behind proxies that add 40 ms each way.
// Packets are lost at the rates of BENCH_LOSS (percent); TCP is held back by its retransmissions.
//
// A gap is silence of more than 40 ms that was heard within a sentence and not sent with it: the
// server's recording is compared with the tape. Voice to voice is from the last loud sound of the
// microphone to the first of the loudspeaker; the recogniser costs nothing (ears.ts) and the model
// answers at once, so that what is left is network, detection and voice. The round trip of the
// sound is the same less what the server took by its own recording: network and buffers.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseWav } from "#support/calls/wav.ts";
import { freePorts } from "#support/free-ports.ts";
import { openBrowser } from "#support/pages/browser.ts";
import { microphoneOf } from "#support/pages/microphone.ts";
import { readTape, TAPE } from "#support/pages/page-tape.ts";
import { startUdpProxy } from "#support/pages/udp-proxy.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { cut, gapsIn, levelsOf, utterancesIn, type Utterance } from "./heard-gaps.ts";
import { cpuSeconds, start, startServer, stop, type Started } from "./load.ts";
import { median, percentile, print, printResult } from "./report.ts";
import { startSlowTcp } from "./slow-tcp.ts";
import { createKeys } from "./voice-server.ts";

const LOSSES = (process.env.BENCH_LOSS ?? "0,1,3,5").split(",").map(Number);
const QUESTIONS = Number(process.env.BENCH_QUESTIONS ?? 5);
const PATHS = ["peer", "socket"] as const;
type Path = (typeof PATHS)[number];
const DELAY_MS = 40;
const FIRST_SECONDS = 10;
const EVERY_SECONDS = 14;
const RECORDING_RATE = 16_000;
const FAR = "127.0.0.2";
const REPLY = "We are open every day of the week from nine in the morning until seven in the evening "
  + "and we will repair your bicycle while you are waiting in our nice little room upstairs.";
const ASSISTANT = {
  name: "Bench", type: "outbound", status: "active", mode: "pipeline", voice_id: 1, language_id: 1,
  llm_model_id: 1, timezone: "UTC", system_prompt: "You are helpful.", endpoint_sensitivity: 1,
  initial_message: "Hello and welcome, how can I help you?", post_call_evaluation: false, record: true,
  enable_noise_cancellation: false, allow_interruptions: false,
};

interface Figures {
  path: Path;
  /** At its end the call still used the path, WebRTC or WebSocket, that it was to take. */
  is_kept: boolean;
  loss_percent: number;
  questions: number;
  answered: number;
  speech_s: number;
  gaps_over_40_ms_per_minute: number;
  longest_gap_ms: number;
  v2v_p50_ms: number;
  v2v_p95_ms: number;
  way_p50_ms: number;
  way_p95_ms: number;
  server_cpu_percent: number;
}

const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
const model = await startScriptedModel();
model.script(() => ({ tokens: REPLY.split(/(?<= )/) }));
const ears = await start("ears.ts", [], {});
process.once("exit", () => {
  ears.child.kill();
  rmSync(folder, { recursive: true, force: true });
});
const microphone = await microphoneOf(join(folder, "microphone.wav"), "When are you open?",
  Array.from({ length: QUESTIONS }, (_, at) => FIRST_SECONDS + at * EVERY_SECONDS));

async function ask<Answer>(
  { port }: Started, key: string, path: string, body?: object,
): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${port}/api${path}`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return await response.json() as Answer;
}

/** One call by either path: what the page taped, and what the server sent. */
async function call(path: Path, loss: number) {
  const udp = await freePorts();
  const env = {
    PARLEY_DATA_DIR: mkdtempSync(join(folder, "data-")), PARLEY_DEMO: "off",
    PARLEY_MODEL_URL: model.url, PARLEY_TRANSCRIPTION_URL: `http://127.0.0.1:${ears.port}/v1`,
    PARLEY_PORT: "0", PARLEY_WEBRTC: path === "peer" ? "on" : "off",
    PARLEY_WEBRTC_PORT: String(udp), PARLEY_WEBRTC_PUBLIC_HOSTS: FAR,
  };
  const [key = ""] = createKeys(env, 1);
  const server = await startServer(env);
  const far = await freePorts(1, FAR);
  const network = { delayMs: DELAY_MS, loss: loss / 100 };
  const packets = await startUdpProxy({ port: udp, ...network });
  const stream = await startSlowTcp({ host: FAR, port: far, to: server.port, ...network });
  const browser = await openBrowser(microphone);
  try {
    const { data } = await ask<{ data: { uuid: string } }>(server, key, "/user/assistant", ASSISTANT);
    const page = await (await browser.newContext({ bypassCSP: true })).newPage();
    await page.addInitScript(TAPE);
    await page.goto(`http://${FAR}:${far}/talk/${data.uuid}`);
    await page.getByRole("button", { name: "Start the call" }).click();
    const said = path === "peer" ? "Sound by WebRTC" : "Sound by WebSocket";
    await page.getByText(said).waitFor();
    const [cpu, startedMs] = [cpuSeconds(server.child.pid), performance.now()];
    await delay((FIRST_SECONDS + QUESTIONS * EVERY_SECONDS) * 1000);
    const seconds = (performance.now() - startedMs) / 1000;
    const cpuPercent = ((cpuSeconds(server.child.pid) - cpu) / seconds) * 100;
    const isKept = await page.getByText(said).isVisible();
    const tape = await readTape(page);
    await page.getByRole("button", { name: "Hang up" }).click();
    return { tape, recording: await recordingOf(server, key), cpuPercent, isKept };
  } finally {
    await browser.close();
    stream.close();
    packets.close();
    await stop(server);
  }
}

interface Recording {
  customer: Int16Array;
  assistant: Int16Array;
}

/** Waits for the only recording there is. */
async function recordingOf(server: Started, key: string): Promise<Recording> {
  for (;;) {
    const { data: [call] } = await ask<{ data: { recording_url: string | null }[] }>(
      server, key, "/user/calls");
    if (call?.recording_url) {
      const url = new URL(call.recording_url, `http://127.0.0.1:${server.port}`);
      const sound = parseWav(Buffer.from(await (await fetch(url)).arrayBuffer()));
      const [customer = new Int16Array(0), assistant = new Int16Array(0)] = sound.channels;
      return { customer, assistant };
    }
    await delay(200);
  }
}

/** Leaves out the greeting, which comes before the first question and may use another path. */
function answersTo(questions: Utterance[], levels: number[]) {
  const answers = utterancesIn(levels)
    .filter(({ fromMs }) => fromMs > (questions[0]?.toMs ?? Number.POSITIVE_INFINITY));
  const waits = questions.map(({ toMs }) =>
    (answers.find(({ fromMs }) => fromMs > toMs)?.fromMs ?? Number.NaN) - toMs)
    .filter((wait) => wait < EVERY_SECONDS * 1000);
  return { answers, waits };
}

async function measure(path: Path, loss: number): Promise<Figures> {
  const { tape, recording, cpuPercent, isKept } = await call(path, loss);
  const [heard, whole] = [
    levelsOf(tape.heard, tape.rate), levelsOf(recording.assistant, RECORDING_RATE)];
  const questions = utterancesIn(levelsOf(tape.said, tape.rate));
  const { answers, waits } = answersTo(questions, heard);
  const atServer = answersTo(utterancesIn(levelsOf(recording.customer, RECORDING_RATE)), whole);
  const originals = atServer.answers;
  const ways = waits.map((wait, at) => wait - (atServer.waits[at] ?? Number.NaN))
    .filter((way) => !Number.isNaN(way));
  const gaps = answers.map((answer, at) => {
    const original = originals[at];
    return original ? gapsIn(cut(whole, original), cut(heard, answer)) : { count: 0, longestMs: 0 };
  });
  const speechMs = answers.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  const count = gaps.reduce((sum, one) => sum + one.count, 0);
  const figures = {
    path, is_kept: isKept, loss_percent: loss, questions: questions.length, answered: waits.length,
    speech_s: Math.round(speechMs / 1000),
    gaps_over_40_ms_per_minute: Number(((count * 60_000) / speechMs).toFixed(1)),
    longest_gap_ms: Math.max(0, ...gaps.map(({ longestMs }) => longestMs)),
    v2v_p50_ms: Math.round(median(waits)), v2v_p95_ms: Math.round(percentile(waits, 95)),
    way_p50_ms: Math.round(median(ways)), way_p95_ms: Math.round(percentile(ways, 95)),
    server_cpu_percent: Number(cpuPercent.toFixed(1)),
  };
  print(JSON.stringify(figures));
  return figures;
}

print(`${QUESTIONS} questions a call, ${DELAY_MS} ms each way`);
const figures: Figures[] = [];
for (const loss of LOSSES) {
  for (const path of PATHS) figures.push(await measure(path, loss));
}
await stop(ears);
await model.close();
printResult("webrtc", { delay_ms: DELAY_MS, figures });
