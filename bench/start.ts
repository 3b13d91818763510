// How long the server takes from nothing to listening and to its first reply, and what it rests at:
// the package (dist/, built first) beside the sources of a checkout. A start on an empty folder
// migrates and seeds; the figures are of starts on a folder that is there, as restarts are.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSeconds, file } from "./load.ts";
import { median, print, printResult } from "./report.ts";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** Until what a start left behind is collected, and timers have had their turn. */
const IDLE_MS = 3000;

interface Figures {
  listeningMs: number;
  firstReplyMs: number;
  cpuMs: number;
  idleMb: number;
}

async function firstReply(url: string, assistant: string): Promise<void> {
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const answer = await fetch(`${url}/api/${path}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return await answer.json() as Record<string, string>;
  };
  const { conversation_id: id } = await post("conversations", { assistant_id: assistant, type: "test" });
  await post(`conversations/${id}/messages`, { message: "When are you open?" });
}

/** `assistant` is known from the first start of a folder, which alone prints it. */
async function startOnce(
  entry: string, dataDir: string, assistant: string | null,
): Promise<{ figures: Figures; assistant: string }> {
  const began = performance.now();
  const child = spawn(process.execPath, ["--single-threaded-gc", entry], {
    env: { PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir }, stdio: ["ignore", "pipe", "inherit"],
  });
  let url = "";
  let known = assistant;
  for await (const line of createInterface({ input: child.stdout })) {
    known ??= /assistant +(\S+)/.exec(line)?.[1] ?? null;
    if (!line.includes('"msg":"listening"')) continue;
    ({ url } = JSON.parse(line) as { url: string });
    break;
  }
  const listeningMs = performance.now() - began;
  const cpuMs = cpuSeconds(child.pid) * 1000;
  child.stdout.resume();
  if (known === null) throw new Error("no assistant was seeded");
  await sleep(IDLE_MS);
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  const idleMb = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
  const asked = performance.now();
  await firstReply(url, known);
  const firstReplyMs = performance.now() - asked;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
  return { figures: { listeningMs, firstReplyMs, cpuMs, idleMb }, assistant: known };
}

async function measure(name: string, entry: string): Promise<Record<keyof Figures, number>> {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-start-"));
  const { assistant } = await startOnce(entry, dataDir, null);
  const rounds: Figures[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push((await startOnce(entry, dataDir, assistant)).figures);
  }
  rmSync(dataDir, { recursive: true, force: true });
  const of = (key: keyof Figures): number => Math.round(median(rounds.map((one) => one[key])));
  const figures = {
    listeningMs: of("listeningMs"), firstReplyMs: of("firstReplyMs"),
    cpuMs: of("cpuMs"), idleMb: of("idleMb"),
  };
  print(`${name.padEnd(10)}${JSON.stringify(figures)}`);
  return figures;
}

execFileSync(process.execPath, [file("../scripts/build.ts")], { stdio: "inherit" });
const built = await measure("package", file("../dist/main.js"));
const sources = await measure("sources", file("../src/main.ts"));
printResult("start", {
  rounds: ROUNDS, listening_ms: built.listeningMs, idle_mb: built.idleMb,
  first_reply_ms: built.firstReplyMs, cpu_ms: built.cpuMs, sources,
});
