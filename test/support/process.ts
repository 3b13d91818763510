// The real server as a process of its own, for tests that kill it.
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { entryOf } from "#scripts/entry.js";
import { watchAnswers } from "./answers.ts";
import { databaseAt, isOverPostgres, urlOfMade } from "./engines.ts";

const scripts = join(import.meta.dirname, "../../scripts");
/** What `npm start` and `npm run parley` run: the built program, if it is up to date. */
export const MAIN = join(scripts, "start.js");
export const CLI = join(scripts, "parley.js");

/** Node's compile cache for programs, one per run: tests start them hundreds of times. */
const { PREPARED_DATABASE } = process.env;
const COMPILED = PREPARED_DATABASE === undefined
  ? {}
  : { NODE_COMPILE_CACHE: join(dirname(PREPARED_DATABASE), "compiled") };

/** What `npm start` and `npm run parley` choose at each start; determined once here. */
let main: string | null = null;
const mainFile = (): string => (main ??= entryOf("main"));
let command: string | null = null;
const commandFile = (): string => (command ??= entryOf("cli"));

export interface Running {
  process: ChildProcess;
  url: string;
  /** The demo account's key; null except at the first start on a folder. */
  key: string | null;
  assistant: string | null;
  /** What it had logged by the time it listened. */
  said: string;
}

/** Processes that tests kill use a PostgreSQL that syncs to disk. */
export async function engineEnv(dataDir: string): Promise<Record<string, string>> {
  if (!isOverPostgres) return {};
  return { PARLEY_DATABASE_URL: (await databaseAt(dataDir, "durable")).url };
}

/** The server exited before it listened; `code` is its exit code. */
export class NotStarted extends Error {
  readonly code: number | null;
  constructor(code: number | null) {
    super(`the server did not start: it exited with ${code}`);
    this.code = code;
  }
}

export async function startProcess(
  dataDir: string,
  env: Record<string, string> = {},
  /** A program and its arguments, which runs the server. */
  under: string[] = [],
): Promise<Running> {
  const [program = process.execPath, ...told] = [...under, process.execPath, mainFile()];
  const child = spawn(program, told, {
    env: {
      ...COMPILED, PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_RATE_LIMITS: "off",
      ...await engineEnv(dataDir), ...env,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(child, "exit") as Promise<[number | null]>;
  let key: string | null = null;
  let assistant: string | null = null;
  let said = "";
  for await (const line of createInterface({ input: child.stdout })) {
    said += `${line}\n`;
    key ??= /API key +(\S+)/.exec(line)?.[1] ?? null;
    assistant ??= /assistant +(\S+)/.exec(line)?.[1] ?? null;
    if (line.includes('"msg":"listening"')) {
      const { url } = JSON.parse(line) as { url: string };
      child.stdout.resume();
      const unwatch = await watchAnswers(
        url, async () => await (await fetch(`${url}/openapi.json`)).json() as object);
      child.once("exit", unwatch);
      return { process: child, url, key, assistant, said };
    }
  }
  const [code] = await gone;
  throw new NotStarted(code);
}

/** Over PostgreSQL, after a server of the folder has been started. */
export function runCli(
  dataDir: string, args: string[], env: Record<string, string> = {},
): string {
  return execFileSync(process.execPath, [commandFile(), ...args], {
    env: {
      ...COMPILED, PARLEY_DATA_DIR: dataDir,
      ...(isOverPostgres ? { PARLEY_DATABASE_URL: urlOfMade(dataDir) } : {}), ...env,
    },
    encoding: "utf8",
  });
}

export interface Ran {
  /** Null: a signal ended it. */
  code: number | null;
  out: string;
  err: string;
}

/** The `parley` command as a person runs it. */
export async function parley(
  dataDir: string, args: string[], env: Record<string, string> = {}, flags: string[] = [],
): Promise<Ran> {
  const engine = await engineEnv(dataDir);
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...flags, commandFile(), ...args],
      { env: { ...COMPILED, PATH: process.env.PATH ?? "", PARLEY_DATA_DIR: dataDir, ...engine, ...env } },
      (_error, out, err) => resolve({ code: child.exitCode, out, err }),
    );
  });
}

/** What a command printed with `--json`. */
export const json = (ran: Ran) => JSON.parse(ran.out) as Record<string, unknown>;
