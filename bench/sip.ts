// Telephone calls over SIP through the real server process, with Debian's sipp at the other end:
// 150 calls, 20 begun a second, 100 at once, each with sound both ways (speech made of numbers, so
// that engines cost nothing). First alone, then while two clients that never pause have widget
// messages charged, and documents of a hundred pages are read one after the other. How many calls
// fail, how late each 20 ms frame comes out of the far end's socket behind the punctual one of its
// call, and what a call costs in CPU.
//
// The far end is a thread of this process that answers every packet; a bare 20 ms timer in a thread
// with nothing else to do says what the machine itself makes late at the same time.
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { flow, makePdf } from "#support/documents.ts";
import { freePorts } from "#support/free-ports.ts";
import type { RtpFigures } from "#support/rtp-peer.ts";
import { noSipp, startSipp } from "#support/sipp.ts";
import { file, load, start, startServer, stop, type Started, type Subject } from "./load.ts";
import { percentile, print, printResult } from "./report.ts";
import { createKeys, parley } from "./voice-server.ts";

const CALLS = Number(process.env.BENCH_CALLS ?? 150);
const PER_SECOND = 20;
const AT_ONCE = 100;
const CALL_MS = 5000;
const CLIENTS = 2;
const PAGES = 100;
const CLOCK_TICKS = 100;
const rounded = (value: number): number => Number(value.toFixed(2));

const missing = noSipp();
if (missing !== false) {
  print(`skipped: ${missing}`);
  printResult("sip", { skipped: missing });
  process.exit();
}

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const store = { PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off", PARLEY_LOG_LEVEL: "info" };
const keys = createKeys(store, AT_ONCE + 10 * PER_SECOND);
const model = await start("../test/support/scripted-model.ts", ["--tokens", "20"], {});
const sipPort = await freePorts();
const server = await startServer({
  ...store, PARLEY_PORT: "0", PARLEY_RATE_LIMITS: "off", PARLEY_SPEECH: "loopback",
  PARLEY_SIP_PORT: String(sipPort), PARLEY_SIP_HOST: "127.0.0.1",
  PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  PARLEY_MODEL_URL: `http://127.0.0.1:${model.port}/v1`, PARLEY_MODEL_NAME: "scripted",
});
// Whatever goes wrong, no process is left behind.
process.once("exit", () => {
  model.child.kill();
  server.child.kill();
});

interface Wire {
  data: { id: number; uuid: string; status: string };
  conversation_id: string;
}

async function ask(key: string, path: string, body?: object): Promise<Wire> {
  const isForm = body instanceof FormData;
  const response = await fetch(`http://127.0.0.1:${server.port}/api${path}`, {
    method: body ? "POST" : "GET",
    headers: {
      authorization: `Bearer ${key}`, ...(isForm ? {} : { "content-type": "application/json" }),
    },
    ...(body ? { body: isForm ? body : JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Wire;
}

const ASSISTANT = {
  name: "Bench", type: "inbound", status: "active", mode: "pipeline", voice_id: 1, language_id: 1,
  llm_model_id: 1, timezone: "UTC", system_prompt: "You are helpful.", post_call_evaluation: false,
  initial_message: "Hello and welcome. ".repeat(8),
};

async function openDesk(key: string, index: number): Promise<string> {
  const number = `+1415555${String(1000 + index)}`;
  const { data } = await ask(key, "/user/phone-numbers/sip-trunks", {
    sip_trunk_type: "number", phone_number: number, sip_username: "bench", sip_password: "bench-secret",
    sip_address: "127.0.0.1", sip_calling_format: "+e164", inbound_authorization_type: "ip",
    allowed_inbound_ips: ["127.0.0.1"], country_code: "US",
  });
  await ask(key, "/user/assistant", { ...ASSISTANT, phone_number_id: data.id });
  return number;
}

const cpuSeconds = ({ child }: Started): number => {
  const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
};

// What else the server does

async function widget(): Promise<Subject> {
  const [key = ""] = keys;
  const { data: { uuid } } = await ask(key, "/user/assistant", ASSISTANT);
  const client = async () => {
    let [conversation, sent] = ["", 0];
    return async () => {
      if (sent % 20 === 0) {
        conversation = (await ask(key, "/conversations", { assistant_id: uuid })).conversation_id;
      }
      sent += 1;
      const path = `/api/conversations/${conversation}/messages`;
      return { path, body: JSON.stringify({ message: "When are you open?" }) };
    };
  };
  return { name: "parley", started: server, marker: "reply_delta", client };
}

async function readDocuments(isOver: () => boolean): Promise<number> {
  const [key = ""] = keys;
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

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// The calls

interface Step {
  failed: string | null;
  streams: number;
  packets: number;
  lost: number;
  late: { p50Ms: number; p99Ms: number; maxMs: number; over15: number };
  bareTimer: { p99Ms: number; maxMs: number };
  cpuSeconds: number;
  seconds: number;
}

async function callAll(numbers: string[]): Promise<Step> {
  const peer = new Worker(file("../test/support/rtp-peer.ts"));
  const timer = new Worker(file("voice-timer.ts"));
  const [rtpPort] = await once(peer, "message") as [number];
  const [cpuBefore, startedMs] = [cpuSeconds(server), performance.now()];
  const phones = await startSipp({
    scenario: "load", to: sipPort, numbers, calls: CALLS, perSecond: PER_SECOND, atOnce: AT_ONCE,
    pauseMs: CALL_MS, keys: { rtp_port: String(rtpPort) },
  });
  const failed = await phones.done.then(() => null, (error: unknown) => String(error).slice(-500));
  const seconds = (performance.now() - startedMs) / 1000;
  const cpu = cpuSeconds(server) - cpuBefore;
  timer.postMessage("stop");
  const [bareMs] = await once(timer, "message") as [number[]];
  peer.postMessage("stop");
  const [figures] = await once(peer, "message") as [RtpFigures];
  const { streams, packets, lost, latenessMs } = figures;
  return {
    failed, streams, packets, lost,
    late: {
      p50Ms: rounded(percentile(latenessMs, 50)), p99Ms: rounded(percentile(latenessMs, 99)),
      maxMs: rounded(percentile(latenessMs, 100)),
      over15: latenessMs.filter((ms) => ms > 15).length,
    },
    bareTimer: {
      p99Ms: rounded(percentile(bareMs, 99)), maxMs: rounded(percentile(bareMs, 100)),
    },
    cpuSeconds: rounded(cpu), seconds: rounded(seconds),
  };
}

const numbers = await Promise.all(keys.map(openDesk));
const alone = await callAll(numbers);
print(`alone: ${JSON.stringify(alone)}`);
let isOver = false;
const charging = load(await widget(), CLIENTS, (CALLS / PER_SECOND) + CALL_MS / 1000);
const reading = readDocuments(() => isOver);
const busy = await callAll(numbers);
isOver = true;
print(`busy: ${JSON.stringify(busy)}`);
const { perSecond } = await charging;
const documents = await reading;
await stop(server);
await stop(model);
const { ok } = parley(store, ["ledger", "verify"]);
rmSync(dataDir, { recursive: true });

printResult("sip", {
  ledger_ok: ok, calls: CALLS, per_second: PER_SECOND, at_once_max: AT_ONCE, call_ms: CALL_MS,
  charges_per_second: perSecond, documents_read: documents, alone, busy,
  cpu_ms_per_call_second: rounded((alone.cpuSeconds * 1000) / (alone.packets / 50)),
  late_p99_to_bare_timer: {
    alone: rounded(alone.late.p99Ms / alone.bareTimer.p99Ms),
    busy: rounded(busy.late.p99Ms / busy.bareTimer.p99Ms),
  },
});
