// An extractor process: receives one document at a time over IPC and reads it in a thread, which
// can be stopped. A document may kill it at any moment; features/knowledgebases/extraction.ts
// starts the next one.
import { writeFileSync } from "node:fs";
import { Piscina } from "piscina";
import { LIMITS } from "#core/limits.ts";
import { workerFile } from "#core/program.ts";
import { deferThisProcess } from "#core/thread-priority.ts";
import type {
  ExtractorJob, ExtractorMessage, ExtractorResult, Failed,
} from "#features/knowledgebases/extraction.ts";
import { failureOf } from "./documents/failure.ts";

const HEAP_MIB_MAX = 256;
const CHUNKS_PER_MESSAGE = 50;
const LOOK_MS = 200;

// Where memory is short the kernel ends this process, which costs a document, and not the server.
if (process.platform === "linux") writeFileSync("/proc/self/oom_score_adj", "1000");
// A document can wait, a call cannot.
deferThisProcess();
// Service managers signal every process of a service to stop, and Ctrl-C reaches every process of a
// terminal: the server alone decides when this one ends, as it may still need what is being read.
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => undefined);

const [allowPrivateNetworks = ""] = process.argv.slice(2);
const pool = new Piscina({
  filename: workerFile("extract"),
  workerData: { allowPrivateNetworks: allowPrivateNetworks.split(",").filter((text) => text !== "") },
  minThreads: 1,
  maxThreads: 1,
  resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
  // An idle thread must run its event loop, to notice that websites close kept-alive connections.
  atomics: "disabled",
});
// A thread that dies at its start also reports here; its document is rejected separately.
pool.on("error", () => undefined);

const send = (message: ExtractorMessage): void => void process.send?.(message);

function failed(error: unknown): Failed {
  const { name, code } = error as { name?: string; code?: string };
  if (name === "AbortError" || name === "TimeoutError") {
    return { kind: "failed", reason: "The document took too long to read." };
  }
  return code === "ERR_WORKER_OUT_OF_MEMORY"
    ? { kind: "failed", reason: "The document needed too much memory to read." }
    : failureOf(error);
}

/** Aborts once this process has used this much CPU time, all of it for its one document. */
function cpuLimit(limitMs: number): { signal: AbortSignal; stop(): void } {
  const limit = new AbortController();
  const began = process.cpuUsage();
  const looks = setInterval(() => {
    const { user, system } = process.cpuUsage(began);
    if ((user + system) / 1000 > limitMs) limit.abort(new DOMException("too long", "TimeoutError"));
  }, LOOK_MS);
  return { signal: limit.signal, stop: () => clearInterval(looks) };
}

async function work({ id, source, limitMs }: ExtractorJob): Promise<void> {
  const cpu = cpuLimit(LIMITS.documentCpuMs);
  try {
    const signal = AbortSignal.any([AbortSignal.timeout(limitMs), cpu.signal]);
    const result = (await pool.run(source, { signal })) as ExtractorResult;
    if (result.kind !== "extracted") return send({ id, done: result });
    const { chunks, ...done } = result;
    for (let at = 0; at < chunks.length; at += CHUNKS_PER_MESSAGE) {
      send({ id, chunks: chunks.slice(at, at + CHUNKS_PER_MESSAGE) });
    }
    send({ id, done });
  } catch (error) {
    send({ id, done: failed(error) });
  } finally {
    cpu.stop();
  }
}

process.on("message", (job: ExtractorJob) => void work(job));
// The server is gone.
process.on("disconnect", () => process.exit(0));
