// The real server for tests: the whole app of a process, on port 0 and over a real database.
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createApp, type App } from "#app/app.ts";
import { loadModels } from "#app/models.ts";
import { readConfig, type Config } from "#config/config.ts";
import { createLogger } from "#core/logger.ts";
import { microsFromDecimal } from "#core/money.ts";
import { createSystem, type System } from "#core/system.ts";
import { openConfigured } from "#storage/engines/open.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { watchAnswers } from "./answers.ts";
import { callApi, type CallOptions, type CallResult } from "./api.ts";
import { dataRoot } from "./databases/data-folder.ts";
import { openDoor } from "./nodes/door.ts";
import { databaseAt, isOverPostgres, NODES_BEHIND } from "./engines.ts";
import { startNats } from "./nodes/nats.ts";
import { afterAll } from "./runner/one-process.ts";

export interface TestServer {
  app: App;
  /** `http://127.0.0.1:port` */
  url: string;
  port: number;
  /** UDP and TCP; null without PARLEY_SIP_PORT. */
  sipPort: number | null;
  dataDir: string;
  /** Bearer of an account with 5.00 USD. */
  key: string;
  accountId: number;
  newAccount(options?: { balance?: string }): Promise<{ accountId: number; key: string }>;
  /** `path` is below /api. `key` null sends none; absent sends the server's own for /user. */
  call(method: string, path: string, options?: CallOptions): Promise<CallResult>;
  close(): Promise<void>;
}

export interface TestServerOptions {
  env?: Record<string, string>;
  dataDir?: string;
  system?: System;
  /** Holds its data folder as a process does. */
  holdsFolder?: boolean;
  /** Passwords are hashed at the shipped cost: a quarter of a second each. */
  hashesAsShipped?: boolean;
}

export function testDataDir(): string {
  return mkdtempSync(join(dataRoot(), "parley-test-"));
}

/** A folder with the database that every new server makes, if run.ts has made one for all. */
function serverDataDir(): string {
  const folder = testDataDir();
  const { PREPARED_DATABASE } = process.env;
  if (PREPARED_DATABASE !== undefined) {
    copyFileSync(PREPARED_DATABASE, databasePath(folder));
  }
  return folder;
}

/**
 * `ENGINE=postgres` runs the same tests over PostgreSQL: a database for each data folder, on a
 * server that syncs to disk, as the command line requires.
 */
async function openUnderTest(config: Config, hasClock: boolean): Promise<Storage> {
  if (!isOverPostgres || config.PARLEY_DATABASE_URL !== null) {
    return openConfigured(config, "thread");
  }
  const { url } = await databaseAt(config.PARLEY_DATA_DIR, "durable");
  const storage = await openPostgres({ url, writesMax: config.PARLEY_WRITES_MAX });
  // No heartbeat keeps up with a clock that a test moves by minutes: such a node is alone.
  return hasClock ? { ...storage, nodes: { ...storage.nodes, isAlone: true } } : storage;
}

/**
 * Opens the storage of this folder's server, as another process would; `forgets` is quicker, if
 * there is no such server.
 */
export async function openBeside(
  dataDir: string, kind: "durable" | "forgets" = "durable",
): Promise<Storage> {
  if (!isOverPostgres) return openStorage(dataDir, "inline");
  const { url } = await databaseAt(dataDir, kind);
  return openPostgres({ url, writesMax: 1000, isSmall: true, mayForget: kind === "forgets" });
}

/** A hundredth of what is shipped; everything else is the same. */
const PASSWORD_COST = { N: 2 ** 10, r: 8, p: 1 };

async function createTestApp(dataDir: string, options: TestServerOptions): Promise<App> {
  const outcome = readConfig({
    PARLEY_PORT: "0",
    PARLEY_DATA_DIR: dataDir,
    PARLEY_LOG_LEVEL: "silent",
    PARLEY_RATE_LIMITS: "off",
    PARLEY_DEMO: "off",
    ...options.env,
  });
  if (outcome.kind === "invalid") throw new Error(outcome.problems.join("; "));
  const { config } = outcome;
  const models = loadModels(config);
  if (models.kind === "invalid") throw new Error(models.problems.join("; "));
  return createApp({
    config,
    models: models.entries,
    log: createLogger(config.PARLEY_LOG_LEVEL),
    system: options.system ?? createSystem(),
    holdsFolder: options.holdsFolder ?? false,
    ...options.hashesAsShipped ? {} : { passwordCost: PASSWORD_COST },
  }, openUnderTest(config, options.system !== undefined));
}

/** With these settings, as with a test's own clock, a server is a single node. */
const ONE_NODES = /^PARLEY_(SIP|TWILIO|TELNYX|PLIVO|VONAGE|ASTERISK|DATABASE|NATS|FILES)/;

const mayBeMany = ({ env = {}, system }: TestServerOptions): boolean =>
  NODES_BEHIND > 1 && !system && !Object.keys(env).some((name) => ONE_NODES.test(name));

/** More nodes beside the first one of a folder, and a door before all of them. */
async function joinNodes(dataDir: string) {
  const nats = await startNats();
  const database = await databaseAt(dataDir, "durable");
  const env = {
    PARLEY_DATABASE_URL: `postgres://parley@127.0.0.1:${database.port}/${database.name}`,
    PARLEY_NATS_URL: nats.url, PARLEY_FILES_URL: `file://${dataDir}`,
    PARLEY_SECRET: "the same at every node, and long enough",
  };
  return {
    env,
    others: async (firstPort: number, options: TestServerOptions) => {
      const apps: App[] = [];
      const folders: string[] = [];
      const ports = [firstPort];
      while (ports.length < NODES_BEHIND) {
        const folder = testDataDir();
        folders.push(folder);
        const app = await createTestApp(folder, { ...options, env: { ...options.env, ...env } });
        apps.push(app);
        ports.push((await app.listen()).port);
      }
      const door = await openDoor(ports);
      return {
        port: door.port,
        close: async () => {
          await Promise.all(apps.map((app) => app.close()));
          await door.close();
          for (const folder of folders) rmSync(folder, { recursive: true, force: true });
        },
      };
    },
    end: () => nats.kill(),
  };
}

/** What a failed test left open would keep its file from ending; it is closed in the end. */
const open = new Set<() => Promise<void>>();
const LEFT_OPEN_MS = 5000;
if (process.env.NODE_TEST_CONTEXT !== undefined) {
  afterAll(() => void setTimeout(() => {
    for (const close of open) void close();
  }, LEFT_OPEN_MS).unref());
}

/** Calls `end` once, however often it is called, at the latest some time after the last test. */
export function closing(end: () => Promise<void>): () => Promise<void> {
  let ending: Promise<void> | null = null;
  const close = (): Promise<void> => {
    open.delete(close);
    return (ending ??= end());
  };
  open.add(close);
  return close;
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? serverDataDir();
  const nodes = mayBeMany(options) ? await joinNodes(dataDir) : null;
  const app = await createTestApp(dataDir, { ...options, env: { ...options.env, ...nodes?.env } });
  const own = await app.listen();
  const { sipPort } = own;
  const others = nodes ? await nodes.others(own.port, options) : null;
  const port = others?.port ?? own.port;
  const url = `http://127.0.0.1:${port}`;
  const unwatch = await watchAnswers(url, app.openApi);
  const { accounts } = app.features;
  const newAccount: TestServer["newAccount"] = async ({ balance = "5.00" } = {}) => {
    const account = await accounts.create("Test account", "test@example.org");
    const micros = microsFromDecimal(balance) ?? 0;
    if (micros > 0) await accounts.credit(account.id, micros);
    const { token } = await accounts.createKey(account.id, "test");
    return { accountId: account.id, key: token };
  };
  const first = await newAccount();
  const call: TestServer["call"] = (method, path, options = {}) => {
    const own = /^\/(user|automate|ai)\b/.test(path) ? { key: first.key } : {};
    return callApi(url, method, path, options.key === undefined ? { ...options, ...own } : options);
  };
  const end = async (): Promise<void> => {
    await others?.close();
    await app.close();
    await nodes?.end();
    unwatch();
    if (options.dataDir !== undefined) return;
    rmSync(dataDir, { recursive: true, force: true });
    if (isOverPostgres) await (await databaseAt(dataDir, "durable")).drop();
  };
  const close = closing(end);
  return { app, url, port, sipPort, dataDir, ...first, newAccount, call, close };
}

/** Everything a new assistant needs; pass what matters to the test. */
export function assistantBody(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name: "Front desk",
    type: "inbound",
    mode: "pipeline",
    voice_id: 1,
    language_id: 1,
    llm_model_id: 1,
    timezone: "UTC",
    initial_message: "Hello",
    system_prompt: "You are helpful.",
    ...changes,
  };
}

/** Creates an assistant and returns its ids. */
export async function newAssistant(
  server: TestServer,
  changes: Record<string, unknown> = {},
  key: string = server.key,
): Promise<{ id: number; uuid: string }> {
  const { status, body } = await server.call("POST", "/user/assistant", {
    key, body: assistantBody(changes),
  });
  if (status !== 201) throw new Error(`assistant not created: ${JSON.stringify(body)}`);
  return { id: body.data.id as number, uuid: body.data.uuid as string };
}

export async function newConversation(
  server: TestServer,
  assistantUuid: string,
  members: Record<string, unknown> = {},
): Promise<string> {
  const { status, body } = await server.call("POST", "/conversations", {
    body: { assistant_id: assistantUuid, ...members },
  });
  if (status !== 200) throw new Error(`conversation not created: ${JSON.stringify(body)}`);
  return body.conversation_id as string;
}
