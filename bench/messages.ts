// Widget-billed, durable messages through the real server process: time to first token, replies a
// second, CPU per reply and memory at 1, 32 and 256 conversations. Beside it, in turn within each
// round: the model server asked directly, and two baselines of bench/baseline/ (Fastify with fetch,
// Fastify with the `ai` package), both with SQLite at the same durability.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  file, load, start, startServer, stop, type Figures, type Started, type Subject,
} from "./load.ts";
import { median, print, printResult } from "./report.ts";

const CLIENTS = (process.env.BENCH_CLIENTS ?? "1,32,256").split(",").map(Number);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 3);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
/** As a widget's conversation would be; the history grows with each. */
const MESSAGES_PER_CONVERSATION = 20;
const MESSAGE = JSON.stringify({ message: "When are you open?" });

const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const env = { PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "0", PARLEY_LOG_LEVEL: "info" };
const cli = (args: string[]): Record<string, unknown> =>
  JSON.parse(execFileSync(process.execPath, [file("../src/cli.ts"), ...args, "--json"], {
    env, encoding: "utf8",
  })) as Record<string, unknown>;

async function post(url: string, body: object, key = ""): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}

/** A client that opens a new conversation whenever its last one has had its share of messages. */
function conversing(started: Started, root: string, body: object): Subject["client"] {
  const open = async (): Promise<string> =>
    String((await post(`http://127.0.0.1:${started.port}${root}/conversations`, body)).conversation_id);
  return async () => {
    let uuid = await open();
    let sent = 0;
    return async () => {
      if (sent === MESSAGES_PER_CONVERSATION) {
        uuid = await open();
        sent = 0;
      }
      sent += 1;
      return { path: `${root}/conversations/${uuid}/messages`, body: MESSAGE };
    };
  };
}

const model = await start("../test/support/scripted-model.ts", ["--tokens", "20"], {});
const modelUrl = `http://127.0.0.1:${model.port}/v1`;

function direct(): Subject {
  const body = JSON.stringify({
    model: "scripted", stream: true, messages: [{ role: "user", content: "When are you open?" }],
  });
  const request = { path: "/v1/chat/completions", body };
  const next = () => Promise.resolve(request);
  return { name: "direct", started: model, marker: "content", client: () => Promise.resolve(next) };
}

async function parley(): Promise<Subject> {
  const { api_key: key } = cli(["account", "create", "--name", "Bench", "--balance", "1000000"]);
  const started = await startServer({
    ...env, PARLEY_PORT: "0", PARLEY_RATE_LIMITS: "off", PARLEY_MODEL_URL: modelUrl,
    PARLEY_MODEL_NAME: "scripted",
  });
  const created = await post(`http://127.0.0.1:${started.port}/api/user/assistant`, {
    name: "Bench", type: "inbound", mode: "pipeline", voice_id: 1, language_id: 1, llm_model_id: 1,
    timezone: "UTC", initial_message: "Hello", system_prompt: "You are helpful.",
  }, String(key));
  const { uuid } = created.data as { uuid: string };
  const client = conversing(started, "/api", { assistant_id: uuid });
  return { name: "parley", started, marker: "reply_delta", client };
}

async function baseline(way: "fetch" | "ai"): Promise<Subject> {
  const args = [way, join(dataDir, `${way}.db`), modelUrl];
  const started = await start("baseline/server.ts", args, {});
  return { name: way, started, marker: "reply_delta", client: conversing(started, "", {}) };
}

const subjects = [direct(), await parley(), await baseline("fetch"), await baseline("ai")];
const rounds: Record<string, Figures[]> = {};
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const clients of CLIENTS) {
    for (const subject of subjects) {
      const figures = await load(subject, clients, SECONDS);
      // The first round warms up.
      if (round > 0) (rounds[`${subject.name}_${clients}`] ??= []).push(figures);
    }
  }
}
for (const { started } of subjects.toReversed()) await stop(started);
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
    residentMb: of((value) => value.residentMb),
  };
  print(`${name.padEnd(12)} ${JSON.stringify(medians[name])}`);
}

const figure = (name: string, read: (figures: Figures) => number): number =>
  medians[name] ? read(medians[name]) : NaN;
const rate = (name: string): number => figure(name, (value) => value.perSecond);
const cpu = (name: string): number => figure(name, (value) => value.cpuMsPerReply);
const first = (name: string): number => figure(name, (value) => value.firstP50Ms);
const ratio = (a: number, b: number): number => Number((a / b).toFixed(2));
printResult("messages", {
  rounds: ROUNDS, seconds: SECONDS, ledger_ok: ok, medians,
  added_first_token_ms: ratio(first("parley_1") - first("direct_1"), 1),
  added_first_token_ms_fetch: ratio(first("fetch_1") - first("direct_1"), 1),
  added_first_token_ms_ai: ratio(first("ai_1") - first("direct_1"), 1),
  rate_32_to_fetch: ratio(rate("parley_32"), rate("fetch_32")),
  rate_32_to_ai: ratio(rate("parley_32"), rate("ai_32")),
  cpu_32_fetch_to_parley: ratio(cpu("fetch_32"), cpu("parley_32")),
  cpu_32_ai_to_parley: ratio(cpu("ai_32"), cpu("parley_32")),
});
