// What cluster.ts puts under load: a PostgreSQL that waits for its disk, a NATS server, and real
// server processes over them, or over a file; one account for each client.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAccounts } from "#features/accounts/accounts.ts";
import { createSystem } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { databaseAt } from "#support/engines.ts";
import { startNats } from "#support/nodes/nats.ts";
import { Connection, cpuSeconds, startServer, stop, type Started } from "./load.ts";
import { percentile } from "./report.ts";

export interface Figures {
  perSecond: number;
  firstP50Ms: number;
  firstP99Ms: number;
  nodeCpuMs: number;
  databaseCpuMs: number;
}

export interface Side {
  name: string;
  nodes: Started[];
  /** The uuids of assistants, one of each account. */
  assistants: string[];
  /** CPU seconds of the database's processes; 0 over a file, where the nodes do its work. */
  databaseCpu(): number;
  close(): Promise<void>;
}

const BALANCE_MICROS = 1_000_000_000_000;
const MESSAGE = JSON.stringify({ message: "When are you open?" });
/** As many as in a widget's conversation; the history grows with each. */
const MESSAGES_PER_CONVERSATION = 20;

export async function post(
  { port }: Started, path: string, body: object, key = "",
): Promise<Record<string, unknown>> {
  const response = await fetch(`http://127.0.0.1:${port}/api${path}`, {
    method: "POST", body: JSON.stringify(body),
    // An idle node may close a kept connection in the very moment it is used again.
    headers: {
      "content-type": "application/json", authorization: `Bearer ${key}`, connection: "close",
    },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

async function makeKeys(storage: Storage, count: number): Promise<string[]> {
  const system = createSystem();
  const accounts = createAccounts({ store: storage.accounts, system, bus: createMemoryBus() });
  const keys: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const { id } = await accounts.create(`Bench ${number}`, "");
    await accounts.credit(id, BALANCE_MICROS);
    keys.push((await accounts.createKey(id, "bench")).token);
  }
  await storage.close();
  return keys;
}

const assistantsOf = (node: Started, keys: string[]): Promise<string[]> =>
  Promise.all(keys.map(async (key) => {
    const { data } = await post(node, "/user/assistant", {
      name: "Bench", type: "inbound", mode: "pipeline", voice_id: 1, language_id: 1,
      llm_model_id: 1, timezone: "UTC", initial_message: "Hello", system_prompt: "Be helpful.",
    }, key);
    return (data as { uuid: string }).uuid;
  }));

const settingsFor = (modelPort: number, folder: string) => ({
  PARLEY_PORT: "0", PARLEY_DEMO: "off", PARLEY_RATE_LIMITS: "off", PARLEY_LOG_LEVEL: "info",
  PARLEY_MODEL_URL: `http://127.0.0.1:${modelPort}/v1`, PARLEY_MODEL_NAME: "scripted",
  PARLEY_DATA_DIR: folder, PARLEY_WEBRTC: "off",
});

export async function overFile(modelPort: number, accounts: number): Promise<Side> {
  const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const keys = await makeKeys(await openStorage(folder, "inline"), accounts);
  const node = await startServer(settingsFor(modelPort, folder));
  return {
    name: "file", nodes: [node], assistants: await assistantsOf(node, keys), databaseCpu: () => 0,
    close: async () => {
      await stop(node);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** CPU of a process, its children and those it has waited for: PostgreSQL forks per session. */
function familyCpu(pid: number): number {
  const ticksOf = (one: string): number => {
    try {
      const stat = readFileSync(`/proc/${one}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const sum = (from: number, to: number): number =>
        fields.slice(from, to).reduce((ticks, field) => ticks + Number(field), 0);
      if (Number(one) === pid) return sum(11, 15);
      return fields[1] === String(pid) ? sum(11, 13) : 0;
    } catch {
      // The process ended in between; the postmaster's own figure includes it from now on.
      return 0;
    }
  };
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name))
    .reduce((sum, name) => sum + ticksOf(name), 0) / 100;
}

interface Grown extends Side {
  /** Starts one more node, with these settings. */
  grow(env?: Record<string, string>): Promise<Started>;
  query<Row extends object>(text: string): Promise<Row[]>;
}

/** Has no node to begin with: `grow` starts them one by one. */
export async function overPostgres(
  modelPort: number, accounts: number, hasNats = true,
): Promise<Grown> {
  const root = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const files = join(root, "files");
  mkdirSync(files);
  const [database, nats] = await Promise.all([databaseAt(root, "durable"), startNats()]);
  const keys = await makeKeys(
    await openPostgres({ url: database.url, writesMax: 1000, isSmall: true }), accounts);
  const nodes: Started[] = [];
  const grow = async (): Promise<Started> => {
    const folder = join(root, `node${nodes.length}`);
    mkdirSync(folder);
    const node = await startServer({
      ...settingsFor(modelPort, folder), PARLEY_DATABASE_URL: database.url,
      PARLEY_SECRET: "the same at every node, and long enough",
      PARLEY_FILES_URL: `file://${files}`, ...(hasNats ? { PARLEY_NATS_URL: nats.url } : {}),
    });
    nodes.push(node);
    return node;
  };
  const assistants = await assistantsOf(await grow(), keys);
  return {
    name: "postgres", nodes, assistants, grow,
    databaseCpu: () => familyCpu(database.serverPid),
    query: (text) => database.query(text),
    close: async () => {
      for (const node of nodes) if (!node.child.killed) await stop(node);
      await Promise.all([nats.kill(), database.drop()]);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** `clients` at once, each with an account and a node, one reply after the other. */
export async function load(side: Side, clients: number, seconds: number): Promise<Figures> {
  const first: number[] = [];
  const cpu = (): number => side.nodes.reduce((sum, { child }) => sum + cpuSeconds(child.pid), 0);
  const conversation = async (node: Started, number: number): Promise<string> => {
    const assistant = side.assistants[number % side.assistants.length];
    const made = await post(node, "/conversations", { assistant_id: assistant });
    return String(made.conversation_id);
  };
  const [before, databaseBefore, startedMs] = [cpu(), side.databaseCpu(), performance.now()];
  await Promise.all(Array.from({ length: clients }, async (_, number) => {
    const node = side.nodes[number % side.nodes.length] as Started;
    const connection = new Connection(node.port, "reply_delta");
    let uuid = "";
    for (let sent = 0; performance.now() < startedMs + seconds * 1000; sent += 1) {
      if (sent % MESSAGES_PER_CONVERSATION === 0) uuid = await conversation(node, number);
      const { firstMs } = await connection.send(`/api/conversations/${uuid}/messages`, MESSAGE);
      first.push(firstMs);
    }
    connection.close();
  }));
  const took = (performance.now() - startedMs) / 1000;
  const perReply = (cpuS: number): number => Number(((cpuS * 1000) / first.length).toFixed(3));
  return {
    perSecond: Math.round(first.length / took),
    firstP50Ms: Number(percentile(first, 50).toFixed(1)),
    firstP99Ms: Number(percentile(first, 99).toFixed(1)),
    nodeCpuMs: perReply(cpu() - before),
    databaseCpuMs: perReply(side.databaseCpu() - databaseBefore),
  };
}
