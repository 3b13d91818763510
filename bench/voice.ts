// Calls through the real server process with a scripted model. First with the server's built-in
// engines: how long callers wait for an answer at the default sensitivity, and what memory is held
// after the last call (voice-default.ts), then the same by a telephone's recordings, over SIP
// (voice-phone.ts). Then with synthetic speech made of numbers: what latency the engine adds
// between the caller's last word and the assistant's first, up to how many concurrent calls that
// stays bearable, what memory a call takes, how late the 20 ms clock ticks, and how soon an
// interrupted assistant is silent.
//
// The added time of a turn is `heard_ms` of the call's record (from the arrival of the caller's
// last voiced frame to the first frame of the reply that is sent) less what no engine could save:
//   - SILENCE_MS, the silence this assistant is set to wait for. Not the silence it really waited:
//     rounding up to frames is the engine's doing and stays in.
//   - the model's own time: the median of whole replies to one idle client over a raw socket.
//     Whole, as the scripted reply is one short piece without a full stop, which is spoken once
//     it has ended; idle, so that what the model's process loses to the calls here stays in.
//   - nothing for recogniser and synthesizer: those made of numbers answer within the same call.
// The ideal is 25 ms: 5 to round the silence up to frames, 20 until the next frame is due.
//
// Memory per call is the server's peak of resident memory in a step, less the least it has held
// since its first call was over and its start's garbage collected, divided by the step's calls.
// What the calls of earlier steps have left behind is in it.
//
// The far ends of the calls are in the media thread of the server, so their work (decoding what
// they hear, speaking) is in every figure: a carrier's lines would leave more to the engine.
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { file, load, start, stop } from "./load.ts";
import { median, percentile, print, printResult } from "./report.ts";
import { measureDefaultSpeech } from "./voice-default.ts";
import { measureAtThePhone } from "./voice-phone.ts";
import {
  ASKS_TWICE, createKeys, INTERRUPTS, parley, startCallServer, type CallServer, type Turn,
} from "./voice-server.ts";
import type { ThreadData, ThreadFigures } from "./voice-thread.ts";

const STEPS = (process.env.BENCH_STEPS ?? "25,50,75,100,150,200").split(",").map(Number);
const CLOCK_STEPS = [50, 100];
/** A step that takes longer is abandoned. */
const STEP_MS = 25_000;
/** The calls begin over this time. The first call's first turn ends later than this, the last
 * call's last turn before the first call is over: every turn is taken with all calls live. */
const SPAN_MS = 3000;
/** V8 releases the memory of the start only after 8 idle seconds. */
const SETTLE_MS = 10_000;
const SAMPLE_MS = 250;
const ADDED_MAX_MS = 150;
const TURNS_PER_CALL = 2;
/** `endpoint_sensitivity` 0.5 waits 750 ms; half of it after a whole sentence, as callers' are. */
const SILENCE_MS = 375;
const TOKENS = 10;

const ASSISTANT = {
  name: "Bench", type: "outbound", status: "active", mode: "pipeline", voice_id: 1, language_id: 1,
  llm_model_id: 1, timezone: "UTC", system_prompt: "You are helpful.", endpoint_sensitivity: 0.5,
  initial_message: "Hello and welcome, how can I help you?", post_call_evaluation: false,
};

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const store = { PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off", PARLEY_LOG_LEVEL: "info" };
const keys = createKeys(store, Math.max(...STEPS));
const model = await start("../test/support/vendors/scripted-model.ts", ["--tokens", String(TOKENS)], {});
// No process is left behind, whatever goes wrong.
process.once("exit", () => model.child.kill());
const env = {
  ...store, PARLEY_MODEL_URL: `http://127.0.0.1:${model.port}/v1`, PARLEY_MODEL_NAME: "scripted",
};
const rounded = (value: number): number => Number(value.toFixed(2));

/** The model asked directly, by one client. */
async function modelAlone(): Promise<number> {
  const body = JSON.stringify({
    model: "scripted", stream: true, messages: [{ role: "user", content: "When are you open?" }],
  });
  const next = () => Promise.resolve({ path: "/v1/chat/completions", body });
  const subject = {
    name: "direct", started: model, marker: "content", client: () => Promise.resolve(next),
  };
  return (await load(subject, 1, 1)).wholeP50Ms;
}

// Added latency, and how many concurrent calls

interface Step {
  calls: number;
  /** False: not all calls ended in time, and no turn was measured. */
  isOver: boolean;
  turns: number;
  /** Questions to which no answer was heard. */
  unheard: number;
  addedP50Ms: number;
  addedP95Ms: number;
  addedMaxMs: number;
  /** Medians of the parts: deciding that the turn is over, the answer's first token, its first
   * audio, its first frame. */
  parts: { decideMs: number; tokenMs: number; audioMs: number; frameMs: number };
  /** The share of one core that all threads of the server take. */
  cpuPercent: number;
  mibPerCall: number;
  leastMib: number;
}

function partsOf(turns: Turn[], modelMs: number): Step["parts"] {
  const between = (from: keyof Turn, to: keyof Turn): number =>
    median(turns.map((turn) => Number(turn[to]) - Number(turn[from])));
  return {
    decideMs: median(turns.map(({ endpoint_ms }) => Number(endpoint_ms) - SILENCE_MS)),
    tokenMs: rounded(between("endpoint_ms", "first_token_ms") - modelMs),
    audioMs: between("first_token_ms", "first_audio_ms"),
    frameMs: between("first_audio_ms", "heard_ms"),
  };
}

/** Makes `calls` concurrent calls, until all have hung up. */
async function runStep(server: CallServer, calls: number, idleMib: number) {
  const startedMs = performance.now();
  const cpuBefore = server.cpuSeconds();
  let mostMib = 0;
  let leastMib = idleMib;
  const sampling = setInterval(() => {
    const residentMib = server.residentMib();
    mostMib = Math.max(mostMib, residentMib);
    leastMib = Math.min(leastMib, residentMib);
  }, SAMPLE_MS);
  await server.dial(calls, SPAN_MS, ASKS_TWICE);
  const isOver = await server.areOver(startedMs + STEP_MS);
  clearInterval(sampling);
  const seconds = (performance.now() - startedMs) / 1000;
  const cpuPercent = Math.round(((server.cpuSeconds() - cpuBefore) / seconds) * 100);
  const mibPerCall = rounded((mostMib - leastMib) / calls);
  return { isOver, turns: isOver ? await server.turns() : [], cpuPercent, mibPerCall, leastMib };
}

async function measureStep(
  server: CallServer, calls: number, { modelMs, idleMib }: { modelMs: number; idleMib: number },
): Promise<Step> {
  const { isOver, turns, cpuPercent, mibPerCall, leastMib } = await runStep(server, calls, idleMib);
  const heard = turns.filter(({ heard_ms }) => heard_ms !== null);
  const added = heard.map(({ heard_ms }) => Number(heard_ms) - SILENCE_MS - modelMs);
  // If the assistant were set to wait less, every figure would flatter it. A single turn may seem
  // to wait less: it counts from a frame that was late itself.
  if (isOver && median(heard.map(({ endpoint_ms }) => Number(endpoint_ms))) < SILENCE_MS) {
    throw new Error("turns are taken before their silence is over");
  }
  return {
    calls, isOver, turns: turns.length, unheard: calls * TURNS_PER_CALL - heard.length,
    addedP50Ms: rounded(median(added)),
    addedP95Ms: rounded(percentile(added, 95)),
    addedMaxMs: rounded(percentile(added, 100)),
    parts: partsOf(heard, modelMs),
    cpuPercent,
    mibPerCall,
    leastMib: rounded(leastMib),
  };
}

const isBearable = ({ isOver, unheard, addedP95Ms }: Step): boolean =>
  isOver && unheard === 0 && addedP95Ms <= ADDED_MAX_MS;

/** Steps up to the first that is not bearable. */
async function climb(modelMs: number): Promise<{ steps: Step[]; afterMib: number }> {
  const server = await startCallServer(env, keys, ASSISTANT);
  await server.dial(1, 0, INTERRUPTS);
  if (!await server.areOver(performance.now() + STEP_MS)) throw new Error("no call ends");
  await server.turns();
  await delay(SETTLE_MS);
  let idleMib = server.residentMib();
  const steps: Step[] = [];
  for (const calls of STEPS) {
    const step = await measureStep(server, calls, { modelMs, idleMib });
    steps.push(step);
    idleMib = Math.min(idleMib, step.leastMib);
    print(`${String(calls).padStart(3)} calls: added p50 ${step.addedP50Ms} p95 ${step.addedP95Ms} max ${step.addedMaxMs} ms over ${step.turns} turns, ${step.unheard} unheard, ${step.cpuPercent} % of a core, ${step.mibPerCall} MiB a call; parts ${JSON.stringify(step.parts)}`);
    if (!isBearable(step)) break;
  }
  await delay(SETTLE_MS);
  const afterMib = Math.round(server.residentMib());
  await server.stop();
  return { steps, afterMib };
}

// Clock and barge-in, in a thread of this process

interface ThreadStep {
  calls: number;
  clock: Spread;
  bareTimer: Spread;
  bargeIn: Spread;
}

interface Spread {
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
  maxMs: number;
}

const spread = (values: number[]): Spread => ({
  p50Ms: rounded(median(values)),
  p95Ms: rounded(percentile(values, 95)),
  p99Ms: rounded(percentile(values, 99)),
  maxMs: rounded(percentile(values, 100)),
});

async function measureThread(calls: number): Promise<ThreadStep> {
  const timer = new Worker(file("voice-timer.ts"));
  const workerData: ThreadData = { calls, spanMs: SPAN_MS };
  const thread = new Worker(file("voice-thread.ts"), { workerData });
  const { latenessMs, bargeInMs } = await new Promise<ThreadFigures>((resolve, reject) => {
    thread.on("message", (message: ThreadFigures | string) => {
      if (typeof message === "object" && "latenessMs" in message) resolve(message);
    });
    thread.on("error", reject);
    thread.on("exit", () => reject(new Error("the thread ended before its calls")));
  });
  timer.postMessage("stop");
  const [bareMs] = await once(timer, "message") as [number[]];
  if (bargeInMs.length < calls) throw new Error("a call was not interrupted");
  const step = {
    calls, clock: spread(latenessMs), bareTimer: spread(bareMs), bargeIn: spread(bargeInMs),
  };
  print(`${calls} calls: clock late ${JSON.stringify(step.clock)}, bare timer ${JSON.stringify(step.bareTimer)}, barge-in to silence ${JSON.stringify(step.bargeIn)}`);
  return step;
}

const modelMs = await modelAlone();
print(`model alone ${rounded(modelMs)} ms, silence ${SILENCE_MS} ms`);
const defaultSpeech = await measureDefaultSpeech(env, keys, ASSISTANT);
print(`default speech: ${defaultSpeech.mib_before} MiB before, ${defaultSpeech.mib_after} after`);
const phone = await measureAtThePhone(env, keys);
const threads: ThreadStep[] = [];
for (const calls of CLOCK_STEPS) threads.push(await measureThread(calls));
const { steps, afterMib } = await climb(modelMs);
const { ok } = parley(env, ["ledger", "verify"]);
await stop(model);
rmSync(dataDir, { recursive: true });

const at = (wanted: number): Step | null => steps.find(({ calls }) => calls === wanted) ?? null;
printResult("voice", {
  ledger_ok: ok, model_ms: rounded(modelMs), silence_ms: SILENCE_MS,
  added_p50_ms_at_50: at(50)?.addedP50Ms ?? null, added_p95_ms_at_50: at(50)?.addedP95Ms ?? null,
  calls_bearable: steps.findLast(isBearable)?.calls ?? 0, calls_tried: steps.at(-1)?.calls ?? 0,
  mib_per_call_at_50: at(50)?.mibPerCall ?? null, mib_per_call_at_100: at(100)?.mibPerCall ?? null,
  numbers: { mib_after: afterMib }, default_speech: defaultSpeech, phone, steps, threads,
  clock_p99_to_bare_timer: Object.fromEntries(threads.map(({ calls, clock, bareTimer }) =>
    [calls, rounded(clock.p99Ms / bareTimer.p99Ms)])),
});
