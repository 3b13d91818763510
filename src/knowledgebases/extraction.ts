// Runs the extractor process (workers/extractor.ts), which reads documents no one vouches for. It
// is capped by the system, started when first needed, and replaced when it dies: a bomb costs one
// document, never the server.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { LIMITS } from "../core/limits.ts";
import type { Logger } from "../core/logger.ts";
import type { System, Timer } from "../core/system.ts";

export interface Chunk {
  /** Outermost first. */
  headings: string[];
  text: string;
  page: number | null;
  url: string | null;
}

export type ExtractionSource =
  | { type: "pdf" | "txt" | "docx"; path: string }
  | { type: "website"; urls: string[]; follow: number };

export type ExtractionResult =
  | { kind: "extracted"; chunks: Chunk[]; pages: number; truncated: boolean }
  /** `reason`: a sentence for the document's owner. */
  | { kind: "failed"; reason: string };

export interface Extractor {
  /** Never rejects, but for an aborted signal; every document ends with a result. */
  extract(source: ExtractionSource, signal?: AbortSignal): Promise<ExtractionResult>;
  /** The process's id while there is one, for tests. */
  pid(): number | null;
  /** Ends the process; what is being read fails. Idempotent. */
  close(): Promise<void>;
}

export interface ExtractorOptions {
  log: Logger;
  system: System;
  allowPrivateNetworks: readonly string[];
}

interface Job {
  id: number;
  source: ExtractionSource;
  limitMs: number;
  chunks: Chunk[];
  /** It was beside another document when the process died: now it is read alone, once. */
  isAlone: boolean;
  deadline: Timer | null;
  /** The process was killed because this document held it up. */
  isLate: boolean;
  resolve(result: ExtractionResult): void;
}

type Message =
  | { id: number; chunks: Chunk[] }
  | { id: number; done: { kind: "extracted"; pages: number; truncated: boolean } }
  | { id: number; done: { kind: "failed"; reason: string } };

const EXTRACTOR_FILE = new URL("../../workers/extractor.ts", import.meta.url).pathname;
const PRLIMIT = ["/usr/bin/prlimit", "/bin/prlimit"];
const NICE = ["/usr/bin/nice", "/bin/nice"];
const TOO_MUCH = "The document needed too much memory to read.";
const TOO_LONG = "The document took too long to read.";
const STOPPING = "The server is stopping.";

export function createExtractor(options: ExtractorOptions): Extractor {
  return new Supervisor(options);
}

/** Two documents at a time; the one that kills the process is found out by reading alone. */
class Supervisor implements Extractor {
  readonly #options: ExtractorOptions;
  readonly #waiting: Job[] = [];
  readonly #running = new Map<number, Job>();
  #child: ChildProcess | null = null;
  #jobsDone = 0;
  #nextId = 1;
  #isClosed = false;

  constructor(options: ExtractorOptions) {
    this.#options = options;
  }

  extract(source: ExtractionSource, signal?: AbortSignal): Promise<ExtractionResult> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return resolve({ kind: "failed", reason: STOPPING });
      if (signal?.aborted) return reject(signal.reason as Error);
      const limitMs = source.type === "website" ? LIMITS.websiteReadMs : LIMITS.documentReadMs;
      const id = this.#nextId;
      this.#nextId += 1;
      const giveUp = (): void => {
        this.#giveUp(id);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", giveUp, { once: true });
      this.#waiting.push({
        id, source, limitMs, chunks: [], isAlone: false, deadline: null, isLate: false,
        resolve: (result) => {
          signal?.removeEventListener("abort", giveUp);
          resolve(result);
        },
      });
      this.#next();
    });
  }

  pid(): number | null {
    return this.#child?.pid ?? null;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const job of this.#waiting.splice(0)) job.resolve({ kind: "failed", reason: STOPPING });
    const last = this.#child;
    if (!last) return;
    const gone = new Promise<void>((resolve) => last.once("exit", () => resolve()));
    last.kill("SIGKILL");
    await gone;
  }

  /** A document being read keeps its place until the process says that it has stopped. */
  #giveUp(id: number): void {
    const index = this.#waiting.findIndex((job) => job.id === id);
    if (index >= 0) this.#waiting.splice(index, 1);
    else if (this.#running.has(id)) this.#child?.send({ stop: id });
    this.#next();
  }

  #next(): void {
    const [job] = this.#waiting;
    if (this.#isClosed || !job) return;
    const others = [...this.#running.values()];
    const mayRun = job.isAlone
      ? others.length === 0
      : others.length < LIMITS.documentsAtOnceMax && !others.some(({ isAlone }) => isAlone);
    // A process at its end takes nothing more, or under steady load it would never be replaced.
    const isSpent = this.#jobsDone >= LIMITS.extractorJobsMax && others.length > 0;
    if (!mayRun || isSpent) return;
    this.#waiting.shift();
    this.#running.set(job.id, job);
    const process = this.#started();
    // The thread is stopped first; a process that does not even answer then is killed.
    job.deadline = this.#options.system.after(job.limitMs + LIMITS.extractorGraceMs, () => {
      this.#options.log.warn({ id: job.id }, "the extractor process does not answer");
      job.isLate = true;
      process.kill("SIGKILL");
    });
    process.send({ id: job.id, source: job.source, limitMs: job.limitMs });
    this.#next();
  }

  #started(): ChildProcess {
    if (this.#child) return this.#child;
    const born = startProcess(this.#options.allowPrivateNetworks);
    born.on("message", (message: Message) => this.#take(born, message));
    born.on("exit", (code, signal) => this.#died(born, signal ?? `code ${code}`));
    born.on("error", (error) => this.#died(born, error.message));
    return (this.#child = born);
  }

  #take(from: ChildProcess, message: Message): void {
    // What a dead process still said would be added to what the next one reads of the document.
    if (from !== this.#child) return;
    const job = this.#running.get(message.id);
    if (!job) return;
    if ("chunks" in message) job.chunks.push(...message.chunks);
    else if (message.done.kind === "failed") this.#settle(job, message.done);
    else this.#settle(job, { ...message.done, chunks: job.chunks });
  }

  #settle(job: Job, result: ExtractionResult): void {
    job.deadline?.cancel();
    this.#running.delete(job.id);
    this.#jobsDone += 1;
    // Libraries never give back all they took: a new process now and then.
    if (this.#jobsDone >= LIMITS.extractorJobsMax && this.#running.size === 0) this.#retire();
    job.resolve(result);
    this.#next();
  }

  #retire(): void {
    const old = this.#child;
    this.#child = null;
    this.#jobsDone = 0;
    old?.disconnect();
  }

  #died(which: ChildProcess, how: string): void {
    if (which !== this.#child) return;
    this.#child = null;
    this.#jobsDone = 0;
    const victims = [...this.#running.values()];
    const { log } = this.#options;
    if (!this.#isClosed) log.warn({ how, documents: victims.length }, "the extractor process died");
    for (const job of victims) {
      job.deadline?.cancel();
      this.#running.delete(job.id);
      if (this.#isClosed) job.resolve({ kind: "failed", reason: STOPPING });
      else if (job.isLate) job.resolve({ kind: "failed", reason: TOO_LONG });
      else if (victims.length === 1) job.resolve({ kind: "failed", reason: TOO_MUCH });
      else this.#waiting.unshift({ ...job, isAlone: true, chunks: [], deadline: null });
    }
    this.#next();
  }
}

function startProcess(allowPrivateNetworks: readonly string[]): ChildProcess {
  const program = [
    process.execPath, "--disallow-code-generation-from-strings", "--no-warnings", EXTRACTOR_FILE,
    allowPrivateNetworks.join(","),
  ];
  // Thread limits do not contain buffers; the system's limit on the process does.
  const prlimit = PRLIMIT.find((path) => existsSync(path));
  const capped = prlimit === undefined
    ? program
    : [prlimit, `--data=${LIMITS.extractorBytesMax}`, "--core=0", "--", ...program];
  // Before anything is started in it, so that every thread of it stands back behind the server's.
  const nice = NICE.find((path) => existsSync(path));
  const [command = "", ...args] = nice === undefined ? capped : [nice, "-n", "10", ...capped];
  return spawn(command, args, {
    // Nothing of the server's environment: it holds secrets.
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}
