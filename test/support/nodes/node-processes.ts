// Real nodes, each a process with a data folder of its own, over one PostgreSQL and one NATS
// server, behind a door that leads to any of them: for proofs that kill some of these.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { askUntil } from "#support/asking.ts";
import { startCuttingProxy } from "#support/databases/cutting-proxy.ts";
import { databaseAt, type TestDatabase } from "#support/engines.ts";
import { startNats, type NatsServer } from "./nats.ts";
import { NotStarted, parley, startProcess, type Running } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

export interface NodeProcesses {
  database: NodesDatabase;
  nats: NatsServer;
  /** The demo account's, which has money. */
  key: string;
  assistant: string;
  /** The address of some node that is not being killed. */
  door(): string;
  /** Retries, at any node, until one has answered with success. */
  ask<Answer>(method: string, path: string, asked?: {
    body?: object; key?: string; idempotencyKey?: string;
  }): Promise<Answer>;
  /** SIGKILLs the node of that place among those that live. */
  kill(number: number): Promise<void>;
  /** SIGKILLs a node and starts another one. */
  replace(): Promise<void>;
  /** Ends a session of a node with the database. */
  endSession(): Promise<void>;
  cli(args: string[]): Promise<string>;
  /** Resolves once no reply is open any more and no money is reserved. */
  settled(): Promise<void>;
  /** Stops all nodes as an operator would; throws unless each exits in order. */
  close(): Promise<void>;
}

type NodesDatabase = Pick<TestDatabase, "name" | "port" | "query" | "drop">;

interface NodesOptions {
  count: number;
  /** A database of its own, which is dropped in the end. */
  database?: NodesDatabase;
  /** How many of a hundred COMMITs lose their connection. */
  cuts?: number;
  /** Settings of the node with that number, from 0. */
  env?: (number: number) => Record<string, string>;
}

/** Answers that say: try again, here or elsewhere. */
const AGAIN = new Set([409, 429, 502, 503]);
const PAUSE_MS = 20;
/** After this, no node answers any more. */
const PATIENCE_MS = 300_000;
/** The exit code that says: start again, the database is out of reach. */
const EX_UNAVAILABLE = 69;
const STARTS_MAX = 5;
const any = <T>(items: T[]): T => {
  const item = items[Math.floor(Math.random() * items.length)];
  assert.ok(item !== undefined, "no node is left");
  return item;
};

export async function startNodeProcesses(
  { count, database: own, cuts = 0, env = () => ({}) }: NodesOptions,
): Promise<NodeProcesses> {
  const root = testDataDir();
  const files = join(root, "files");
  mkdirSync(files);
  const [database, nats] = await Promise.all([
    own ?? databaseAt(root, "durable"), startNats(),
  ]);
  const proxy = await startCuttingProxy(database.port, cuts);
  const urlAt = (port: number): string =>
    `postgres://parley@127.0.0.1:${port}/${database.name}?sslmode=disable`;
  let started = 0;
  const start = (): Promise<Running> => {
    const number = started;
    started += 1;
    const folder = join(root, `node${number}`);
    mkdirSync(folder);
    return startProcess(folder, {
      PARLEY_DATABASE_URL: urlAt(proxy.port), PARLEY_NATS_URL: nats.url,
      PARLEY_FILES_URL: `file://${files}`, PARLEY_LOG_LEVEL: "info",
      PARLEY_SECRET: "the same at every node, and long enough", ...env(number),
    });
  };
  /** Starts it as a supervisor does: its session with the database may be ended meanwhile. */
  const startAgain = async (startsLeft = STARTS_MAX): Promise<Running> => {
    try {
      return await start();
    } catch (error) {
      const isToBeTried = error instanceof NotStarted && error.code === EX_UNAVAILABLE;
      if (!isToBeTried || startsLeft === 1) throw error;
      return startAgain(startsLeft - 1);
    }
  };
  const first = await start();
  const { key, assistant } = first;
  assert.ok(key !== null && assistant !== null, "the first node made the demo account");
  const living = [first, ...await Promise.all(Array.from({ length: count - 1 }, start))];
  const cli = async (args: string[]): Promise<string> => {
    const ran = await parley(root, args, { PARLEY_DATABASE_URL: urlAt(database.port) });
    assert.equal(ran.code, 0, ran.err);
    return ran.out;
  };
  await cli(["balance", "add", "--account", "1", "--amount", "10000"]);
  const door = (): string => any(living).url;
  const kill = async (dying: Running): Promise<void> => {
    living.splice(living.indexOf(dying), 1);
    const gone = once(dying.process, "exit");
    dying.process.kill("SIGKILL");
    await gone;
  };
  return {
    database, nats, key, assistant, door, cli,
    ask: (method, path, asked = {}) => askAnywhere(door, method, path, asked),
    kill: (number) => {
      const dying = living[number];
      assert.ok(dying, `there is no node ${number}`);
      return kill(dying);
    },
    replace: async () => {
      await kill(any(living));
      living.push(await startAgain());
    },
    endSession: async () => void await database.query(`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = $1 AND application_name LIKE 'parley %' ORDER BY random() LIMIT 1`,
    [database.name]),
    settled: async () => void await askUntil(
      () => database.query<{ open: string }>(`
        SELECT (SELECT count(*) FROM turns WHERE state IN ('open', 'stored'))
          + (SELECT count(*) FROM reservations) AS open`),
      ([row]) => row?.open === "0"),
    close: async () => {
      const ends = await Promise.all(living.map(async ({ process: child }) => {
        if (child.exitCode === null && child.signalCode === null) {
          const gone = once(child, "exit");
          child.kill("SIGTERM");
          await gone;
        }
        return [child.exitCode, child.signalCode];
      }));
      await Promise.all([nats.kill(), proxy.close(), database.drop()]);
      rmSync(root, { recursive: true, force: true });
      assert.deepEqual(ends, living.map(() => [0, null]));
    },
  };
}

async function askAnywhere<Answer>(
  door: () => string, method: string, path: string,
  { body, key, idempotencyKey }: { body?: object; key?: string; idempotencyKey?: string },
): Promise<Answer> {
  for (const begun = performance.now(); performance.now() - begun < PATIENCE_MS;) {
    try {
      const response = await fetch(`${door()}/api${path}`, {
        method,
        headers: {
          "Content-Type": "application/json",
          ...(key ? { Authorization: `Bearer ${key}` } : {}),
          ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}),
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const answer: unknown = await response.json();
      if (response.ok) return answer as Answer;
      assert.ok(AGAIN.has(response.status), `${response.status} ${JSON.stringify(answer)}`);
    } catch (error) {
      // The node died during the request: another one is asked, under the same key.
      if (error instanceof assert.AssertionError) throw error;
    }
    await pause(PAUSE_MS);
  }
  throw new Error(`no node has answered ${method} ${path} for ${PATIENCE_MS / 1000} s`);
}
