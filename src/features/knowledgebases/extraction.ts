// Runs the extractor processes (workers/extractor.ts), which read untrusted documents, and
// workbooks of an import (features/leads/import-file.ts). Their memory is capped by the operating
// system; they start on demand, stop when idle, and are replaced when they die: a zip bomb costs
// one document, never the server or another document.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { outboundEnvironment } from "#config/proxy.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import type { System, Timer } from "#core/system.ts";
import type { FileType, WebsiteSource, Written } from "./knowledgebases.ts";

/** A piece of a document, of a size that suits search and quotation. */
export interface Chunk {
  /** The headings above it, outermost first. */
  headings: string[];
  text: string;
  /** From 1; PDF only. */
  page: number | null;
  /** Web pages only. */
  url: string | null;
}

/** The state of a website's page as last read, so that only changed pages are read again. */
export interface KnownPage {
  /** Its URL after redirects. */
  url: string;
  /** The validators that the site sent; null: it sent none. */
  etag: string | null;
  lastModified: string | null;
  /** Fingerprint of the content, for sites that send no validators. */
  hash: string;
  characters: number;
  /** Links to pages of the same site, where links are followed. */
  links: string[];
}

/** `isKept`: unchanged; its chunks are those of the last reading and are not returned again. */
export interface SitePage extends KnownPage {
  isKept: boolean;
}

/** A workbook whose first sheet is written to a file instead of being cut into chunks. */
export interface SheetSource {
  type: "sheet";
  path: string;
  /** The file to create; a failure may leave part of it. */
  to: string;
  /** Further rows are not needed. */
  rowsMax?: number;
}

/** Each row that is not empty is one line, `{"row", "cells"}`; rows count from 1. */
export interface WrittenSheet {
  /** The sheet's name in the workbook. */
  name: string;
  rows: number;
}

export type ExtractionSource =
  | { type: FileType; path: string }
  | Written
  | WebsiteSource & { type: "website"; known?: KnownPage[] };

export interface Failed {
  kind: "failed";
  /** A sentence for the document's owner. */
  reason: string;
  /** Where it was thrown, for the log: nothing of the document is in it. */
  trace?: string;
}

export type ExtractionResult =
  /** `site`: the pages of a website in the order of their chunks. */
  | { kind: "extracted"; chunks: Chunk[]; pages: number; truncated: boolean; site?: SitePage[] }
  | Failed;

type SheetResult = WrittenSheet & { kind: "sheet" } | Failed;
export type ExtractorResult = ExtractionResult | SheetResult;

export interface Extractor {
  /** Resolves to a result for every document; rejects on abort, or when no process can start. */
  extract(source: ExtractionSource, signal?: AbortSignal): Promise<ExtractionResult>;
  /** Rejects only when no process can be started. */
  writeSheet(source: SheetSource): Promise<SheetResult>;
  /** The id of a process while there is one, for tests. */
  pid(): number | null;
  /** Kills the processes; documents being read fail. Idempotent. */
  close(): Promise<void>;
}

interface ExtractorOptions {
  /** Documents read at a time. */
  documentsMax?: number;
  log: Logger;
  system: System;
  allowPrivateNetworks: readonly string[];
}

/** A process's job. `limitMs`: after this long, the document's thread is stopped. */
export interface ExtractorJob {
  id: number;
  source: ExtractionSource | SheetSource;
  limitMs: number;
}

/** Results are sent in pieces, so that the server never parses a long message at once. */
export type ExtractorMessage =
  | { id: number; chunks: Chunk[] }
  | { id: number; done: Omit<Extract<ExtractionResult, { kind: "extracted" }>, "chunks"> }
  | { id: number; done: SheetResult };

interface Job extends ExtractorJob {
  chunks: Chunk[];
  resolve(result: ExtractorResult): void;
  /** Called when it could not be started, which is not the document's fault. */
  reject(error: Fault): void;
}

/** How long a website's pages may be fetched. */
const siteReadMs = ({ sitemap }: WebsiteSource): number =>
  (sitemap === undefined ? LIMITS.websiteReadMs : LIMITS.sitemapReadMs);

const EXTRACTOR_FILE = workerFile("extractor");
const PRLIMIT = ["/usr/bin/prlimit", "/bin/prlimit"];
const NICE = ["/usr/bin/nice", "/bin/nice"];
const TOO_MUCH = "The document needed too much memory to read.";
const TOO_LONG = "The document took too long to read.";
const STOPPING = "The server is stopping.";

export function createExtractor(options: ExtractorOptions): Extractor {
  return new Supervisor(options);
}

/** One process per concurrent document: a document that kills its process affects no other. */
class Supervisor implements Extractor {
  readonly #waiting: Job[] = [];
  readonly #readers: Reader[];
  #nextId = 1;
  #isClosed = false;

  constructor(options: ExtractorOptions) {
    const onFree = (): void => this.#next();
    this.#readers = Array.from({ length: options.documentsMax ?? LIMITS.documentsAtOnceMax }, () =>
      new Reader(options, onFree));
  }

  extract(source: ExtractionSource, signal?: AbortSignal): Promise<ExtractionResult> {
    return this.#run(source, signal) as Promise<ExtractionResult>;
  }

  writeSheet(source: SheetSource): Promise<SheetResult> {
    return this.#run(source) as Promise<SheetResult>;
  }

  async #run(source: ExtractorJob["source"], signal?: AbortSignal): Promise<ExtractorResult> {
    if (this.#isClosed) return { kind: "failed", reason: STOPPING };
    signal?.throwIfAborted();
    const fetchMs = source.type === "website" ? siteReadMs(source) : 0;
    const limitMs = fetchMs + LIMITS.documentReadMs;
    const id = this.#nextId;
    this.#nextId += 1;
    const { promise, resolve, reject } = Promise.withResolvers<ExtractorResult>();
    const giveUp = (): void => {
      reject(signal?.reason as Error);
      this.#giveUp(id);
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    this.#waiting.push({ id, source, limitMs, chunks: [], resolve, reject });
    this.#next();
    return promise.finally(() => signal?.removeEventListener("abort", giveUp));
  }

  pid(): number | null {
    return this.#readers.find((reader) => reader.pid !== null)?.pid ?? null;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#waiting.splice(0)) job.resolve({ kind: "failed", reason: STOPPING });
    await Promise.all(this.#readers.map((reader) => reader.close()));
  }

  #giveUp(id: number): void {
    const index = this.#waiting.findIndex((job) => job.id === id);
    if (index >= 0) this.#waiting.splice(index, 1);
    else this.#readers.find((reader) => reader.jobId === id)?.kill();
  }

  #next(): void {
    // Readers whose process is already running are quicker.
    const free = this.#readers.filter((reader) => reader.jobId === null)
      .sort((one, other) => Number(one.pid === null) - Number(other.pid === null));
    for (const reader of free) {
      const job = this.#isClosed ? undefined : this.#waiting.shift();
      if (!job) return;
      reader.read(job);
    }
  }
}

/** One process at a time, one document at a time in it. */
class Reader {
  readonly #options: ExtractorOptions;
  readonly #onFree: () => void;
  #child: ChildProcess | null = null;
  #job: Job | null = null;
  #deadline: Timer | null = null;
  #idle: Timer | null = null;
  #jobsDone = 0;
  #isLate = false;
  #isClosed = false;

  constructor(options: ExtractorOptions, onFree: () => void) {
    this.#options = options;
    this.#onFree = onFree;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  get jobId(): number | null {
    return this.#job?.id ?? null;
  }

  read(job: Job): void {
    const { system, log } = this.#options;
    this.#idle?.cancel();
    this.#job = job;
    this.#isLate = false;
    const child = this.#started();
    if (!child) {
      this.#job = null;
      job.reject(
        new Fault(503, "The server cannot start a process to read documents at the moment."));
      // Those that wait would otherwise wait for the next document that is handed in.
      return this.#onFree();
    }
    // The process stops its thread first; it is killed if even that does not answer.
    this.#deadline = system.after(job.limitMs + LIMITS.extractorGraceMs, () => {
      log.warn({ id: job.id }, "the process that reads documents does not respond");
      this.#isLate = true;
      child.kill("SIGKILL");
    });
    child.send({ id: job.id, source: job.source, limitMs: job.limitMs } satisfies ExtractorJob);
  }

  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#idle?.cancel();
    const child = this.#child;
    if (!child) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    await gone;
  }

  /** Null: none can start, as when memory is short or too many files or processes are open. */
  #started(): ChildProcess | null {
    if (this.#child) return this.#child;
    const refused = (err: unknown): void =>
      this.#options.log.warn({ err }, "could not start a process to read documents");
    try {
      const born = startProcess(this.#options.allowPrivateNetworks);
      born.on("message", (message: ExtractorMessage) => this.#take(born, message));
      born.on("exit", (code, signal) => this.#died(born, signal ?? `code ${code}`));
      born.on("error", (error) =>
        (born.pid === undefined ? refused(error) : this.#died(born, error.message)));
      this.#child = born.pid === undefined ? null : born;
    } catch (error) {
      // Node throws when it has no memory to fork.
      refused(error);
    }
    return this.#child;
  }

  #take(from: ChildProcess, message: ExtractorMessage): void {
    const job = this.#job;
    if (from !== this.#child || job?.id !== message.id) return;
    if ("chunks" in message) {
      job.chunks.push(...message.chunks);
      return;
    }
    const { done } = message;
    this.#jobsDone += 1;
    // Libraries leak memory, so a process is replaced after a number of jobs.
    if (this.#jobsDone >= LIMITS.extractorJobsMax) this.#retire();
    else this.#keepIdle(from);
    if (done.kind === "failed" && done.trace !== undefined) {
      const { trace } = done;
      this.#options.log.warn({ type: job.source.type, trace }, "a reader of documents failed");
    }
    this.#settle(done.kind === "extracted" ? { ...done, chunks: job.chunks } : done);
  }

  #settle(result: ExtractorResult): void {
    const job = this.#job;
    this.#job = null;
    this.#deadline?.cancel();
    job?.resolve(result);
    this.#onFree();
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
    this.#idle?.cancel();
    if (!this.#isClosed) this.#options.log.warn({ how }, "a process that reads documents died");
    if (!this.#job) return;
    const reason = this.#isClosed ? STOPPING : this.#isLate ? TOO_LONG : TOO_MUCH;
    // The replacement starts now, so that the next document need not wait for it.
    const next = this.#isClosed ? null : this.#started();
    if (next) this.#keepIdle(next);
    this.#settle({ kind: "failed", reason });
  }

  #keepIdle(child: ChildProcess): void {
    this.#idle = this.#options.system.after(LIMITS.extractorIdleMs, () => {
      if (child === this.#child && !this.#job) this.#retire();
    });
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
  // Set before the process starts, so that all its threads have a lower priority than the server's.
  const nice = NICE.find((path) => existsSync(path));
  const [command = "", ...args] = nice === undefined ? capped : [nice, "-n", "10", ...capped];
  return spawn(command, args, {
    // Nothing else of the server's environment: it holds secrets.
    env: { PATH: "/usr/bin:/bin", ...outboundEnvironment() },
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}
