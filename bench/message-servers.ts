// The servers that messages.ts and peers.ts put under the same load, each in a process of its own:
// the model asked directly, Parley, the baselines in bench/baseline/, and those in bench/peers/.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { file, load, start, startServer, stop, type Figures, type Started, type Subject } from "./load.ts";
import { median, print } from "./report.ts";

/** As many as in a widget's conversation; the history grows with each. */
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

const model = await start("../test/support/vendors/scripted-model.ts", ["--tokens", "20"], {});
const modelUrl = `http://127.0.0.1:${model.port}/v1`;

export function direct(): Subject {
  const body = JSON.stringify({
    model: "scripted", stream: true, messages: [{ role: "user", content: "When are you open?" }],
  });
  const request = { path: "/v1/chat/completions", body };
  const next = () => Promise.resolve(request);
  return { name: "direct", started: model, marker: "content", client: () => Promise.resolve(next) };
}

export async function parley(): Promise<Subject> {
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

/** A program with the baselines' interface: its own arguments, then DATABASE MODEL_URL. */
async function other(name: string, path: string, args: string[]): Promise<Subject> {
  const started = await start(path, [...args, join(dataDir, `${name}.db`), modelUrl], {});
  return { name, started, marker: "reply_delta", client: conversing(started, "", {}) };
}

export const baseline = (way: "fetch" | "ai"): Promise<Subject> =>
  other(way, "baseline/server.ts", [way]);

/** The upper bound set by the libraries that Parley uses: nothing is stored or checked. */
export const relay = (): Promise<Subject> => other("relay", "baseline/relay.ts", []);

/** `folder`: where the peer was installed. */
export const peer = (name: string, folder: string): Promise<Subject> =>
  other(name, join(folder, `${name}.js`), []);

interface Load {
  clients: number[];
  seconds: number;
  rounds: number;
}

/** Medians of the rounds, keyed `<name>_<clients>`; in each, every server has its turn. */
export async function inTurn(
  subjects: Subject[], { clients: counts, seconds, rounds }: Load,
): Promise<Record<string, Figures>> {
  const seen: Record<string, Figures[]> = {};
  for (let round = 0; round <= rounds; round += 1) {
    for (const clients of counts) {
      for (const subject of subjects) {
        const figures = await load(subject, clients, seconds);
        // The first round warms up.
        if (round > 0) (seen[`${subject.name}_${clients}`] ??= []).push(figures);
      }
    }
  }
  const medians: Record<string, Figures> = {};
  for (const [name, values] of Object.entries(seen)) {
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
  return medians;
}

/** Stops them all; resolves with the verification of Parley's ledger. */
export async function stopAll(subjects: Subject[]): Promise<unknown> {
  for (const { started } of subjects.toReversed()) await stop(started);
  const { ok } = cli(["ledger", "verify"]);
  rmSync(dataDir, { recursive: true });
  return ok;
}

export const ratio = (a: number, b: number): number => Number((a / b).toFixed(2));
