// Runs one PostgreSQL for a test run, as a process of its own: makes a cluster in the folder, says
// in `ready.json` where it is, and ends it when the run is over. Started by engines.ts:
// node postgres-host.ts FOLDER RUN_PID BIN forgets|durable
import { execFileSync, spawn } from "node:child_process";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "./free-ports.ts";
import { asPostgres, giveToPostgres } from "./databases/postgres-user.ts";

const [folder = "", runPid = "", bin = "", kind = ""] = process.argv.slice(2);
const data = join(folder, "data");

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const say = (name: string, what: object): void => {
  writeFileSync(join(folder, `${name}.new`), JSON.stringify(what));
  renameSync(join(folder, `${name}.new`), join(folder, name));
};

async function run(): Promise<void> {
  giveToPostgres(folder);
  execFileSync(...asPostgres(join(bin, "initdb"), [
    "--pgdata", data, "--username", "parley", "--auth", "trust", "--encoding", "UTF8",
    "--locale", "C.UTF-8", "--no-sync",
  ]), { cwd: folder, stdio: "ignore" });
  const port = await freePorts();
  const settings = {
    listen_addresses: "127.0.0.1", port, unix_socket_directories: folder, max_connections: 400,
    shared_buffers: "64MB", log_min_messages: "fatal", max_wal_size: "256MB",
    ...(kind === "durable" ? {} : { fsync: "off", full_page_writes: "off", synchronous_commit: "off" }),
  };
  const server = spawn(...asPostgres(join(bin, "postgres"), [
    "-D", data, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ]), { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const psql = (sql: string): void => void execFileSync(join(bin, "psql"), [
    "-q", "-h", folder, "-p", String(port), "-U", "parley", "-d", "postgres", "-c", sql,
  ], { stdio: "ignore" });
  for (let tries = 0; ; tries += 1) {
    try {
      psql("SELECT 1");
      break;
    } catch (error) {
      if (tries > 100) throw error;
      await sleep(100);
    }
  }
  say("ready.json", { port, socketFolder: folder, pid: server.pid, hostPid: process.pid });
  while (isRunning(Number(runPid)) && server.exitCode === null) await sleep(300);
  server.kill("SIGQUIT");
  await ended;
}

try {
  await run();
} catch (error) {
  say("failed.json", { message: (error as Error).message });
  await sleep(5000);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
