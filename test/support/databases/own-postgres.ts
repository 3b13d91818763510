// A PostgreSQL of a single test, which may stop it, start it again and misconfigure it.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { askUntil } from "#support/asking.ts";
import { dataRoot } from "./data-folder.ts";
import { BIN } from "#support/engines.ts";
import { freePorts } from "#support/free-ports.ts";
import { asPostgres, giveToPostgres } from "./postgres-user.ts";

export interface OwnPostgres {
  /** Leads to the one database that is always there. */
  url: string;
  port: number;
  query<Row extends object>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Stops it at once, as when its machine restarts; what was committed is kept. */
  stop(): Promise<void>;
  /** Starts it again, on the same port. */
  start(): Promise<void>;
  /** The same, as a standby that only reads until it is promoted (`SELECT pg_promote()`). */
  startAsStandby(): Promise<void>;
  /** Changes a setting while it runs; resolves when new sessions have it. */
  set(name: string, value: string): Promise<void>;
  close(): Promise<void>;
}

/** `standbyOf`: it copies and follows that one, and may take its place. */
export async function startOwnPostgres(
  { standbyOf }: { standbyOf?: OwnPostgres } = {},
): Promise<OwnPostgres> {
  const folder = mkdtempSync(join(dataRoot(), "parley-own-pg-"));
  giveToPostgres(folder);
  const data = join(folder, "data");
  const [program, args] = standbyOf
    ? ["pg_basebackup", [
        "--write-recovery-conf", "--checkpoint", "fast",
        "--dbname", `host=127.0.0.1 port=${standbyOf.port} user=parley application_name=standby`,
      ]] as const
    : ["initdb", [
        "--username", "parley", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8",
      ]] as const;
  execFileSync(
    ...asPostgres(join(BIN ?? "", program), [...args, "--pgdata", data, "--no-sync"]),
    { cwd: folder, stdio: "ignore" });
  const port = await freePorts();
  const url = `postgres://parley@127.0.0.1:${port}/postgres`;
  let child: ChildProcess | null = null;
  const query: OwnPostgres["query"] = async <Row extends object>(
    text: string, values: unknown[] = [],
  ) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Row>(text, values)).rows;
    } finally {
      await client.end();
    }
  };
  const stop = async (): Promise<void> => {
    const dying = child;
    child = null;
    if (!dying || dying.exitCode !== null) return;
    const gone = once(dying, "exit");
    dying.kill("SIGQUIT");
    await gone;
  };
  const start = async (): Promise<void> => {
    const all = {
      listen_addresses: "127.0.0.1", port: String(port), unix_socket_directories: folder,
      shared_buffers: "32MB", log_min_messages: "fatal",
    };
    child = spawn(...asPostgres(join(BIN ?? "", "postgres"), [
      "-D", data, ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ]), { cwd: folder, stdio: "ignore" });
    for (;;) {
      try {
        await query("SELECT 1");
        return;
      } catch (error) {
        if (child.exitCode !== null) throw error;
        await sleep(50);
      }
    }
  };
  const set = async (name: string, value: string): Promise<void> => {
    await query(`ALTER SYSTEM SET ${name} = '${value}'`);
    await query("SELECT pg_reload_conf()");
    await askUntil(() => query(`SHOW ${name}`), ([row]) => Object.values(row!)[0] === value);
  };
  await start();
  return {
    url, port, query, stop, start, set,
    startAsStandby: async () => {
      const signal = join(data, "standby.signal");
      writeFileSync(signal, "");
      giveToPostgres(signal);
      await start();
    },
    close: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
