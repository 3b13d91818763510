// A connection in a thread of its own, started when it is first needed: reads that scan much of an
// account's data would otherwise block the main thread. Opened by reader.ts.
import { Worker } from "node:worker_threads";
import { StorageFailure } from "#core/faults.ts";
import { workerFile } from "#core/program.ts";
import type { Sql, Statement } from "#storage/sql.ts";
import type { Moments } from "./reader.ts";
import { DIALECT, NAMES, valuesOf } from "./sql.ts";

export interface ToReading { text: string; how: "get" | "all" | "run"; values: unknown[] }
export type FromReading = { value: unknown } | { error: unknown };

const READING_FILE = workerFile("read");

/** A transaction ends with its thread, so only the BEGIN of the next one starts a new thread. */
const BEGIN = "BEGIN";

type Ask = (message: ToReading) => Promise<unknown>;

const neverWrites = (): never => {
  throw new Error("a reading connection was asked to write");
};

const sqlOver = (ask: Ask): Sql => ({
  engine: "sqlite",
  prepare: <P extends object, Row>(named: string): Statement<P, Row> => {
    const values = valuesOf(named);
    const text = named.replaceAll(NAMES, "?");
    const answer = (how: "get" | "all", parameters: P): Promise<unknown> =>
      ask({ text, how, values: values(parameters) });
    return {
      get: (parameters) => answer("get", parameters) as Promise<Row | undefined>,
      one: async (parameters) => {
        const row = await answer("get", parameters);
        if (row === undefined) throw new Error(`a statement returned no row: ${named}`);
        return row as Row;
      },
      all: (parameters) => answer("all", parameters) as Promise<Row[]>,
      run: neverWrites,
      insert: neverWrites,
    };
  },
  dialect: DIALECT,
});

const ended = (cause?: unknown): StorageFailure =>
  new StorageFailure("the reading thread ended", cause);

interface Waiting { resolve(value: unknown): void; reject(error: unknown): void }

export function createThreadReading(dataDir: string): Moments {
  let worker: Worker | null = null;
  let waiting: Waiting[] = [];
  let isClosed = false;
  const start = (): Worker => {
    const started = new Worker(READING_FILE, { workerData: { dataDir } });
    const failAll = (cause?: unknown): void => {
      if (worker !== started) return;
      worker = null;
      const left = waiting;
      waiting = [];
      for (const { reject } of left) reject(ended(cause));
    };
    started.on("message", (message: FromReading) => {
      const asked = waiting.shift();
      if ("error" in message) asked?.reject(message.error);
      else asked?.resolve(message.value);
    });
    started.on("error", failAll);
    started.on("exit", () => failAll());
    return started;
  };
  const ask: Ask = (message) => new Promise((resolve, reject) => {
    if (isClosed) return reject(new StorageFailure("the database was closed"));
    if (!worker && message.text !== BEGIN) return reject(ended());
    worker ??= start();
    waiting.push({ resolve, reject });
    worker.postMessage(message);
  });
  return {
    sql: sqlOver(ask),
    exec: async (text) => void await ask({ text, how: "run", values: [] }),
    close: async () => {
      isClosed = true;
      if (!worker) return;
      const gone = new Promise((resolve) => worker?.once("exit", resolve));
      worker.postMessage("close");
      await gone;
    },
  };
}
