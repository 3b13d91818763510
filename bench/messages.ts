// Widget-billed, durable messages through the real server process: time to first token added over
// the model, replies a second and CPU per reply, at 1, 32 and 256 conversations. The same load sent
// straight to the scripted model server is the baseline, in turn within each round.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Agent, request } from "undici";
import { median, percentile, print, printResult } from "./report.ts";

const CLIENTS = [1, 32, 256];
const SECONDS = Number(process.env.BENCH_SECONDS ?? 3);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const CLOCK_TICKS = 100;

const file = (path: string): string => new URL(path, import.meta.url).pathname;
const agent = new Agent({ connections: 512, pipelining: 1 });

interface Started {
  child: ChildProcess;
  line: Record<string, unknown>;
}

async function start(path: string, args: string[], env: Record<string, string>): Promise<Started> {
  const child = spawn(process.execPath, [file(path), ...args], {
    env, stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const text of createInterface({ input: child.stdout })) {
    if (!text.startsWith("{")) continue;
    const line = JSON.parse(text) as Record<string, unknown>;
    if (typeof line.port !== "number") continue;
    child.stdout.resume();
    return { child, line };
  }
  throw new Error(`${path} did not start`);
}

async function stop({ child }: Started): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}

/** CPU seconds a process has used so far, all its threads. */
function cpuSeconds(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

interface Sample {
  firstMs: number;
  wholeMs: number;
}

/** One streamed request; only a complete 200 with a first token counts. */
async function streamOnce(url: string, body: object, marker: string): Promise<Sample> {
  const at = performance.now();
  const response = await request(url, {
    method: "POST",
    dispatcher: agent,
    headers: { accept: "text/event-stream", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  let text = "";
  let firstMs = 0;
  for await (const chunk of response.body) {
    text += String(chunk);
    if (firstMs === 0 && text.includes(marker)) firstMs = performance.now() - at;
  }
  if (response.statusCode !== 200 || firstMs === 0) throw new Error(text.slice(0, 200));
  return { firstMs, wholeMs: performance.now() - at };
}

interface Figures {
  perSecond: number;
  firstP50Ms: number;
  firstP99Ms: number;
  wholeP50Ms: number;
  cpuMsPerReply: number;
}

async function load(
  clients: number,
  pid: number | undefined,
  once: (client: number) => Promise<Sample>,
): Promise<Figures> {
  const samples: Sample[] = [];
  const cpuBefore = cpuSeconds(pid);
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    while (performance.now() < startedMs + SECONDS * 1000) samples.push(await once(client));
  }));
  const seconds = (performance.now() - startedMs) / 1000;
  const first = samples.map(({ firstMs }) => firstMs);
  return {
    perSecond: Math.round(samples.length / seconds),
    firstP50Ms: median(first),
    firstP99Ms: percentile(first, 99),
    wholeP50Ms: median(samples.map(({ wholeMs }) => wholeMs)),
    cpuMsPerReply: ((cpuSeconds(pid) - cpuBefore) * 1000) / samples.length,
  };
}

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const env = { PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "0", PARLEY_LOG_LEVEL: "info" };
const cli = (args: string[]): Record<string, unknown> =>
  JSON.parse(execFileSync(process.execPath, [file("../src/cli.ts"), ...args, "--json"], {
    env, encoding: "utf8",
  })) as Record<string, unknown>;

const model = await start("../test/support/scripted-model.ts", ["--tokens", "20"], {});
const modelUrl = `http://127.0.0.1:${Number(model.line.port)}/v1`;
const { api_key: key } = cli(["account", "create", "--name", "Bench", "--balance", "1000000"]);
const server = await start("../src/main.ts", [], {
  ...env, PARLEY_PORT: "0", PARLEY_RATE_LIMITS: "off", PARLEY_MODEL_URL: modelUrl,
  PARLEY_MODEL_NAME: "scripted",
});
const api = `http://127.0.0.1:${Number(server.line.port)}/api`;

async function call(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await request(api + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${String(key)}` },
    body: JSON.stringify(body),
  });
  return (await response.body.json()) as Record<string, unknown>;
}

const created = await call("/user/assistant", {
  name: "Bench", type: "inbound", mode: "pipeline", voice_id: 1, language_id: 1, llm_model_id: 1,
  timezone: "UTC", initial_message: "Hello", system_prompt: "You are helpful.",
});
const assistantId = (created.data as { uuid: string }).uuid;

/** New conversations for each run, and again when one is full, as widgets make them. */
async function throughParley(clients: number): Promise<Figures> {
  const open = async (): Promise<string> =>
    String((await call("/conversations", { assistant_id: assistantId })).conversation_id);
  const conversations = await Promise.all(Array.from({ length: clients }, open));
  const sent = conversations.map(() => 0);
  return load(clients, server.child.pid, async (client) => {
    if ((sent[client] ?? 0) >= 20) {
      conversations[client] = await open();
      sent[client] = 0;
    }
    sent[client] = (sent[client] ?? 0) + 1;
    const url = `${api}/conversations/${conversations[client]}/messages`;
    return streamOnce(url, { message: "When are you open?" }, "reply_delta");
  });
}

const direct = (clients: number): Promise<Figures> =>
  load(clients, model.child.pid, () =>
    streamOnce(`${modelUrl}/chat/completions`, {
      model: "scripted", stream: true, messages: [{ role: "user", content: "When are you open?" }],
    }, "content"));

const rounds: Record<string, Figures[]> = {};
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const clients of CLIENTS) {
    const figures = { direct: await direct(clients), parley: await throughParley(clients) };
    // The first round warms up.
    if (round === 0) continue;
    for (const [name, value] of Object.entries(figures)) {
      (rounds[`${name}_${clients}`] ??= []).push(value);
    }
  }
}
await stop(server);
await stop(model);
const { ok } = cli(["ledger", "verify"]);
rmSync(dataDir, { recursive: true });

const medians: Record<string, Figures> = {};
for (const [name, values] of Object.entries(rounds)) {
  const of = (read: (figures: Figures) => number): number =>
    Number(median(values.map(read)).toFixed(3));
  medians[name] = {
    perSecond: of((value) => value.perSecond),
    firstP50Ms: of((value) => value.firstP50Ms),
    firstP99Ms: of((value) => value.firstP99Ms),
    wholeP50Ms: of((value) => value.wholeP50Ms),
    cpuMsPerReply: of((value) => value.cpuMsPerReply),
  };
  print(`${name.padEnd(12)} ${JSON.stringify(medians[name])}`);
}
printResult("messages", { rounds: ROUNDS, seconds: SECONDS, ledger_ok: ok, medians });
