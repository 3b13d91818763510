// Telephone calls over SIP through the real server process, with Debian's sipp at the far end: how
// many fail, how late each 20 ms frame comes out of the far end's socket behind the punctual one of
// its call, what a call costs in CPU and memory, and what memory is held once the last is over.
//
// - `default_speech`: the server's built-in voice activity and voices, a question by the caller
//   after every answer, and a recogniser in another process that costs nothing (the embedded one
//   serves six calls).
// - `numbers`: synthetic speech made of numbers, so that engines cost nothing; then once more while
//   two clients that never pause have widget messages charged, and documents of a hundred pages are
//   read one after the other.
// - `refused_before_answer`: a server with its default settings, whose recogniser follows six
//   calls, is called by twice as many.
//
// The far end is a thread of this process that answers every packet; a bare 20 ms timer in a thread
// with nothing else to do shows how late the machine itself is at the same time.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "#core/logger.ts";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { createEmbeddedVoices } from "#providers/speech/embedded/embedded-voices.ts";
import { speakWhole } from "#providers/speech/opening.ts";
import { flow, makePdf } from "#support/documents/documents.ts";
import { noSipp } from "#support/sip/sipp.ts";
import { load, start, stop, type Subject } from "./load.ts";
import { print, printResult } from "./report.ts";
import { callAll, startSipServer, type SipServer, type Step } from "./sip-calls.ts";
import { createKeys, parley } from "./voice-server.ts";

const DEFAULT_CALLS = Number(process.env.BENCH_DEFAULT_CALLS ?? 60);
const CALLS = Number(process.env.BENCH_CALLS ?? 200);
const DEFAULT_PER_SECOND = 4;
const PER_SECOND = 20;
/** How many speakers the embedded recogniser follows. */
const SERVED = 6;
const DEFAULT_CALL_MS = 25_000;
const CALL_MS = 15_000;
const BUSY = { calls: 150, perSecond: PER_SECOND, atOnce: 100, callMs: 5000, speech: null };
/** V8 releases the memory of calls only after 8 idle seconds. */
const SETTLE_MS = Number(process.env.BENCH_SETTLE_MS ?? 12_000);
const CLIENTS = 2;
const PAGES = 100;
const QUESTION = "What time do you open on Saturday?";
const TELEPHONE_RATE = 8000;
/** Room for more calls than are measured; the plan allows an account ten at a time. */
const SPARE_CALLS = 20;

const missing = noSipp();
if (missing !== false) {
  print(`skipped: ${missing}`);
  printResult("sip", { skipped: missing });
  process.exit();
}

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const store = { PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off", PARLEY_LOG_LEVEL: "info" };
const model = await start("../test/support/vendors/scripted-model.ts", ["--tokens", "20"], {});
const ears = await start("ears.ts", [], {});
process.once("exit", () => {
  model.child.kill();
  ears.child.kill();
});
const withModel = {
  PARLEY_MODEL_URL: `http://127.0.0.1:${model.port}/v1`, PARLEY_MODEL_NAME: "scripted",
};
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A question in mu-law, as a caller's telephone sends it. */
async function speakQuestion(): Promise<Uint8Array> {
  const voices = createEmbeddedVoices(createLogger("silent"));
  // The thread of the voices does not keep the process alive.
  const alive = setInterval(() => undefined, 1000);
  const pcm = await new Promise<Int16Array | null>((resolve) => speakWhole(voices.flite, {
    rate: TELEPHONE_RATE, voice: "rms", gender: "male", language: "en", speed: 1, stability: 1,
    similarity: 1, hasEmotion: false,
  }, QUESTION, resolve));
  await voices.close();
  clearInterval(alive);
  return Buffer.from(encodeG711(LAWS.PCMU, pcm ?? new Int16Array(0)));
}

interface Measured {
  calls: number;
  late_p99_ms: number;
  failed: number;
  mib_per_call: number;
  /** Memory before the first call, and a while after the last. */
  mib_before: number;
  mib_after: number;
  step: Step;
}

/** Starts one server and makes one call to begin with, then all of them at once. */
async function measure(
  env: Record<string, string>, calls: number, wave: Parameters<typeof callAll>[1],
  then: (server: SipServer, keys: string[]) => Promise<void> = async () => undefined,
): Promise<Measured> {
  const folder = { ...store, PARLEY_DATA_DIR: mkdtempSync(join(dataDir, "server-")) };
  const keys = createKeys(folder, Math.max(calls, BUSY.atOnce) + SPARE_CALLS);
  // The limit is lifted: calls that a late machine would refuse are to be measured here.
  const server = await startSipServer(
    { ...folder, ...withModel, ...env, PARLEY_CALLS_MAX: "100000" }, keys);
  await callAll(server, { ...wave, calls: 1, callMs: 4000 });
  await wait(SETTLE_MS);
  const before = server.residentMib();
  const step = await callAll(server, wave);
  await wait(SETTLE_MS);
  const after = server.residentMib();
  await then(server, keys);
  await server.stop();
  const { ok } = parley(folder, ["ledger", "verify"]);
  if (ok !== true) throw new Error("the ledger does not add up");
  return {
    calls, late_p99_ms: step.late.p99Ms, failed: step.failed,
    mib_per_call: Number((Math.max(0, step.mostMib - before) / calls).toFixed(2)),
    mib_before: Math.round(before), mib_after: Math.round(after), step,
  };
}

// Other work of the server

function widget(server: SipServer, key: string): Subject {
  const client = async () => {
    let [conversation, sent] = ["", 0];
    return async () => {
      if (sent % 20 === 0) {
        const opened = await server.ask(key, "/conversations", {
          assistant_id: server.assistantUuid,
        });
        conversation = opened.conversation_id;
      }
      sent += 1;
      const path = `/api/conversations/${conversation}/messages`;
      return { path, body: JSON.stringify({ message: "When are you open?" }) };
    };
  };
  return { name: "parley", started: server.started, marker: "reply_delta", client };
}

async function readDocuments(
  { ask }: SipServer, key: string, isOver: () => boolean,
): Promise<number> {
  const lines = Array.from({ length: 45 }, (_, line) => `${line}. Guests may cancel until six.`);
  const pdf = makePdf(Array.from({ length: PAGES }, () => flow(lines)));
  const base = await ask(key, "/user/knowledgebases", { name: "Book" });
  const path = `/user/knowledgebases/${base.data.id}/documents`;
  let count = 0;
  for (; !isOver(); count += 1) {
    const form = new FormData();
    form.set("name", `Book ${count}`);
    form.set("type", "pdf");
    form.set("file", new Blob([new Uint8Array(pdf)], { type: "application/pdf" }), "book.pdf");
    const { data } = await ask(key, path, form);
    while ((await ask(key, `${path}/${data.id}`)).data.status !== "active") await wait(50);
  }
  return count;
}

async function callWhileBusy(server: SipServer, key: string) {
  let isOver = false;
  const seconds = BUSY.calls / BUSY.perSecond + BUSY.callMs / 1000;
  const charging = load(widget(server, key), CLIENTS, seconds);
  const reading = readDocuments(server, key, () => isOver);
  const step = await callAll(server, BUSY);
  isOver = true;
  const { perSecond } = await charging;
  return { charges_per_second: perSecond, documents_read: await reading, step };
}

/** Makes twice the calls that the recogniser follows, at a server with default settings. */
async function isRefusedInTime(speech: Uint8Array): Promise<boolean> {
  const folder = { ...store, PARLEY_DATA_DIR: mkdtempSync(join(dataDir, "server-")) };
  const keys = createKeys(folder, 2 * SERVED + SPARE_CALLS);
  const server = await startSipServer({ ...folder, ...withModel }, keys);
  const step = await callAll(server, {
    calls: 2 * SERVED, perSecond: PER_SECOND, atOnce: 2 * SERVED, callMs: 4000, speech,
  });
  await server.stop();
  print(`beyond what is served: ${JSON.stringify(step)}`);
  return step.refused === SERVED && step.failed === 0;
}

const speech = await speakQuestion();
const defaultSpeech = await measure({
  PARLEY_TRANSCRIPTION_URL: `http://127.0.0.1:${ears.port}/v1`,
}, DEFAULT_CALLS, {
  calls: DEFAULT_CALLS, perSecond: DEFAULT_PER_SECOND, atOnce: DEFAULT_CALLS,
  callMs: DEFAULT_CALL_MS, speech,
});
print(`default speech: ${JSON.stringify(defaultSpeech)}`);
let busy: Awaited<ReturnType<typeof callWhileBusy>> | null = null;
const numbers = await measure({ PARLEY_SPEECH: "loopback" }, CALLS, {
  calls: CALLS, perSecond: PER_SECOND, atOnce: CALLS, callMs: CALL_MS, speech: null,
}, async (server, [key = ""]) => {
  busy = await callWhileBusy(server, key);
});
print(`numbers: ${JSON.stringify(numbers)}`);
print(`numbers, busy: ${JSON.stringify(busy)}`);
const refusedBeforeAnswer = await isRefusedInTime(speech);
await stop(model);
await stop(ears);
rmSync(dataDir, { recursive: true });

printResult("sip", {
  default_speech: defaultSpeech, numbers, busy, refused_before_answer: refusedBeforeAnswer,
});
