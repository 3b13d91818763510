// A PostgreSQL for the tests: one of its own for each run, in a temporary folder, and a database
// for each place that needs one. Tests that need it skip by `withoutPostgres` without it.
import { spawn } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { dataRoot } from "./databases/data-folder.ts";

/** Where its programs are; null: there is none. */
export const [BIN = null] = globSync("/usr/lib/postgresql/*/bin/initdb").map((file) => dirname(file))
  .filter((bin) => Number(/postgresql\/(\d+)/.exec(bin)?.[1]) >= 15).toSorted().reverse();

/** The `skip` of tests over PostgreSQL: false, or the sentence that says why. */
export const withoutPostgres: string | false = BIN === null
  ? "no PostgreSQL 15 is installed (apt-get install postgresql-15)"
  : false;

/** Servers of tests store in PostgreSQL (`npm run prove -- postgres`). */
export const isOverPostgres = process.env.ENGINE === "postgres";

/** The `skip` of tests about SQLite's database file and what belongs to it. */
export const aboutTheFile: string | false =
  isOverPostgres ? "it is about the file that only SQLite has" : false;

/** How many nodes stand behind the door of a test's server (`npm run prove -- nodes`). */
export const NODES_BEHIND = Number(process.env.NODES ?? "1");

interface Cluster {
  port: number;
  socketFolder: string;
  /** The postmaster. */
  pid: number;
}

/** `forgets`: it does not sync to disk, which is quick, and enough without power cuts. */
type Kind = "forgets" | "durable";

const clusters = new Map<Kind, Promise<Cluster>>();

/** All files of a run are children of one process, and share its server; so do runs within it. */
export const RUN_PID = Number(process.env.RUN_PID
  ?? (process.env.NODE_TEST_CONTEXT === undefined ? process.pid : process.ppid));

const isThere = (pid: number): boolean => existsSync(`/proc/${pid}`);

/** Removes the folder of a run whose server was killed: a later run may have its number. */
function clearStale(folder: string): void {
  const ready = join(folder, "ready.json");
  if (!existsSync(ready)) return;
  const { pid } = JSON.parse(readFileSync(ready, "utf8")) as Cluster;
  if (!isThere(pid)) rmSync(folder, { recursive: true, force: true });
}

/** The server that syncs has its folder in memory, if there is room for it. */
const ROOTS = { durable: dataRoot(), forgets: tmpdir() };
const folderOf = (kind: Kind): string => join(ROOTS[kind], `parley-pg-${RUN_PID}-${kind}`);

async function startCluster(kind: Kind): Promise<Cluster> {
  if (BIN === null) throw new Error(String(withoutPostgres));
  const folder = folderOf(kind);
  clearStale(folder);
  try {
    mkdirSync(folder, { mode: 0o755 });
    spawn(process.execPath, [
      join(import.meta.dirname, "postgres-host.ts"), folder, String(RUN_PID), BIN, kind,
    ], { detached: true, stdio: "ignore" }).unref();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  for (let tries = 0; tries < 600; tries += 1) {
    if (existsSync(join(folder, "failed.json"))) {
      throw new Error(readFileSync(join(folder, "failed.json"), "utf8"));
    }
    if (existsSync(join(folder, "ready.json"))) {
      return JSON.parse(readFileSync(join(folder, "ready.json"), "utf8")) as Cluster;
    }
    await sleep(100);
  }
  throw new Error("PostgreSQL did not start");
}

function clusterOf(kind: Kind): Promise<Cluster> {
  const known = clusters.get(kind) ?? startCluster(kind);
  clusters.set(kind, known);
  return known;
}

export interface TestDatabase {
  url: string;
  name: string;
  port: number;
  /** The server's process. */
  serverPid: number;
  query<Row extends object>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Ends every connection and removes the database. */
  drop(): Promise<void>;
}

const urlOf = ({ port, socketFolder }: Cluster, name: string): string =>
  `postgres://parley@/${name}?host=${socketFolder}&port=${port}`;

const nameOf = (place: string): string => `at_${hash("sha256", place, "hex").slice(0, 16)}`;

/** The database of a place, on the server that syncs to disk; it was made before. */
export function urlOfMade(place: string): string {
  const ready = join(folderOf("durable"), "ready.json");
  return urlOf(JSON.parse(readFileSync(ready, "utf8")) as Cluster, nameOf(place));
}

async function ask<Row extends object>(
  url: string, text: string, values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

/**
 * The database of a place, such as a data folder's path: a new one, copied from a template that has
 * the schema, or the one that was made for the place before.
 */
export async function databaseAt(place: string, kind: Kind = "forgets"): Promise<TestDatabase> {
  const cluster = await clusterOf(kind);
  const name = nameOf(place);
  const admin = urlOf(cluster, "postgres");
  const exists = async (database: string): Promise<boolean> =>
    (await ask(admin, "SELECT 1 FROM pg_database WHERE datname = $1", [database])).length > 0;
  if (!await exists(name)) {
    // The first caller makes the template; others wait.
    await withLock(admin, async () => {
      if (await exists("template")) return;
      await ask(admin, "CREATE DATABASE building");
      const storage = await openPostgres({
        url: urlOf(cluster, "building"), writesMax: 1, isSmall: true, mayForget: true,
      });
      await storage.close();
      await ask(admin, "ALTER DATABASE building RENAME TO template");
    });
    await withLock(admin, async () =>
      void await ask(admin, `CREATE DATABASE ${name} TEMPLATE template`));
  }
  const url = urlOf(cluster, name);
  return {
    url, name, port: cluster.port, serverPid: cluster.pid,
    query: (text, values) => ask(url, text, values),
    drop: async () => void await ask(admin, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function withLock(url: string, work: () => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("SELECT pg_advisory_lock(1)");
    await work();
  } finally {
    await client.end();
  }
}
