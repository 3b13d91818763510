// How long the server takes to listen and to give its first reply, and its memory at rest, in all
// and by thread: the package (dist/, built first) compared with a clone, which runs the sources. A
// start on an empty folder migrates and seeds; the figures are of starts on an existing folder, as
// restarts are.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSeconds, file } from "./load.ts";
import { median, print, printResult } from "./report.ts";
import type { Heaps } from "./threads.ts";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** How long it takes until a start's garbage is collected, and timers have fired. */
const IDLE_MS = 3000;
/** How long the server is left alone after its start, and then how long it is measured idle. */
const REST_MS = 30_000;

interface Demo {
  assistant: string;
  key: string;
}

interface Server {
  child: ChildProcess;
  url: string;
  /** Printed only by the first start on a folder. */
  demo: Demo | null;
}

const residentMb = ({ pid }: ChildProcess): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

async function post(
  url: string, path: string, body: object, key = "",
): Promise<Record<string, string>> {
  const answer = await fetch(`${url}/api/${path}`, {
    method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return await answer.json() as Record<string, string>;
}

async function firstReply(url: string, { assistant }: Demo): Promise<void> {
  const { conversation_id: id } = await post(url, "conversations", {
    assistant_id: assistant, type: "test",
  });
  await post(url, `conversations/${id}/messages`, { message: "When are you open?" });
}

async function listen(entry: string, dataDir: string, probe: string[]): Promise<Server> {
  const child = spawn(process.execPath, ["--single-threaded-gc", ...probe, entry], {
    env: { PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir },
    stdio: ["ignore", "pipe", "inherit", ...(probe.length > 0 ? ["ipc" as const] : [])],
  });
  let key = "";
  let assistant = "";
  for await (const line of createInterface({ input: child.stdout as Readable })) {
    key ||= /API key +(\S+)/.exec(line)?.[1] ?? "";
    assistant ||= /assistant +(\S+)/.exec(line)?.[1] ?? "";
    if (!line.includes('"msg":"listening"')) continue;
    child.stdout?.resume();
    const { url } = JSON.parse(line) as { url: string };
    return { child, url, demo: key === "" ? null : { assistant, key } };
  }
  throw new Error("the server did not listen");
}

async function stop({ child }: Server): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}

async function startOnce(entry: string, dataDir: string, demo: Demo) {
  const began = performance.now();
  const server = await listen(entry, dataDir, []);
  const listening_ms = performance.now() - began;
  const cpu_ms = cpuSeconds(server.child.pid) * 1000;
  await sleep(IDLE_MS);
  const idle_mb = residentMb(server.child);
  const asked = performance.now();
  await firstReply(server.url, demo);
  const first_reply_ms = performance.now() - asked;
  await stop(server);
  return { listening_ms, cpu_ms, idle_mb, first_reply_ms };
}

/** CPU of a minute in which the server has nothing to do. */
async function restCpuMs({ child: { pid } }: Server): Promise<number> {
  await sleep(REST_MS);
  const before = cpuSeconds(pid);
  await sleep(REST_MS);
  return (cpuSeconds(pid) - before) * 1000 * (60_000 / REST_MS);
}

async function heapsOf({ child }: Server): Promise<Heaps> {
  const answer = once(child, "message");
  child.send("heaps");
  const [heaps] = await answer as [Heaps];
  return heaps;
}

/** The heap of each thread, and the memory that the very first call, with embedded voices, adds. */
async function partsOf(
  entry: string, dataDir: string, demo: Demo,
): Promise<Record<string, number>> {
  const server = await listen(entry, dataDir, ["--import", file("threads.ts")]);
  await sleep(IDLE_MS);
  const idle = residentMb(server.child);
  const { main = 0, write = 0 } = await heapsOf(server);
  const rest = await restCpuMs(server);
  await post(server.url, "user/try_call", {
    assistant_id: demo.assistant, lines: ["When are you open?", "Thank you, goodbye."],
  }, demo.key);
  await sleep(IDLE_MS);
  const { media = 0 } = await heapsOf(server);
  const call = residentMb(server.child) - idle;
  await stop(server);
  return {
    main_heap_mb: main, writer_heap_mb: write, media_heap_mb: media, first_call_mb: call,
    rest_cpu_ms_a_minute: rest,
  };
}

const rounded = (figures: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Math.round(value)]));

async function measure(name: string, entry: string): Promise<Record<string, number>> {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-start-"));
  const first = await listen(entry, dataDir, []);
  await stop(first);
  if (!first.demo) throw new Error("no assistant was seeded");
  const rounds: Awaited<ReturnType<typeof startOnce>>[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push(await startOnce(entry, dataDir, first.demo));
  }
  const of = (key: keyof (typeof rounds)[number]): number => median(rounds.map((one) => one[key]));
  const figures = rounded({
    listening_ms: of("listening_ms"), cpu_ms: of("cpu_ms"), first_reply_ms: of("first_reply_ms"),
    idle_mb: of("idle_mb"), ...await partsOf(entry, dataDir, first.demo),
  });
  rmSync(dataDir, { recursive: true, force: true });
  print(`${name.padEnd(10)}${JSON.stringify(figures)}`);
  return figures;
}

execFileSync(process.execPath, [file("../scripts/build.ts")], { stdio: "inherit" });
const built = await measure("package", file("../dist/main.js"));
const clone = await measure("clone", file("../src/main.ts"));
printResult("start", { rounds: ROUNDS, ...built, clone });
