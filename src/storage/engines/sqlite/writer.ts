// The path of every write: `write(command, args)` resolves once the command's transaction is on
// disk. Two implementations of one port: a thread of its own (the server) and inline (CLI, tests).
//
// Why the server writes in a thread: a slow commit inline stalls every stream, and even with one
// client it gains nothing (docs/benchmarks.md, Messages). Measured alternately, 7 rounds of 3 s on
// 2 cores: p99 of the first token, thread against inline, 15 ms to 18 with 32 clients, 82 to 102
// with 256; replies a second 3,500 to 3,100 and 3,900 to 3,300. Inline costs a tenth less CPU.
import { Worker } from "node:worker_threads";
import { Fault, StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { workerFile } from "#core/program.ts";
import { createBatchRunner, type Outcome, type Request } from "./batch.ts";
import { PATIENT, type AllCommands } from "#storage/commands.ts";
import { createBacklog } from "#storage/backlog.ts";
import { lockOf } from "#storage/locks.ts";
import type { OnMigration } from "#storage/migrations.ts";
import type { Writer } from "#storage/writer.ts";
import { assertNotNewer, openWriter } from "./database.ts";
import { commandsOver } from "./sql.ts";

interface Waiting extends Request {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The state of the disk, as the writers' last batches found it. */
type Disk = { failure: StorageFailure | null; isFull: boolean };

/** `held`: the thread retries it once there is room. */
export type Answer = Outcome | { kind: "held" };

function settle(waiting: Waiting[], answers: Answer[], disk: Disk, held: Waiting[] = []): void {
  let refusal: StorageFailure | null = null;
  waiting.forEach((request, index) => {
    const answer = answers[index];
    if (!answer) request.reject(new Error("the writer gave no outcome"));
    else if (answer.kind === "done") request.resolve(answer.value);
    else if (answer.kind === "threw") request.reject(answer.error);
    else if (answer.kind === "held") held.push(request);
    else {
      // Made anew, because an error that crossed threads has lost its class.
      refusal ??= new StorageFailure(answer.error.message, answer.error.cause);
      if (answer.kind === "failure") disk.failure = refusal;
      request.reject(refusal);
    }
  });
  disk.isFull = answers.some(({ kind }) => kind === "full");
}

/** Writes on the calling thread, all commands of one event-loop turn in one transaction. */
export function createInlineWriter(
  dataDir: string, onMigration?: OnMigration,
): Writer<AllCommands> {
  const db = openWriter(dataDir, { migrate: "unserved", ...onMigration && { onMigration } });
  const run = createBatchRunner(db, () => commandsOver(db));
  let queue: Waiting[] = [];
  const disk: Disk = { failure: null, isFull: false };
  let flushed = Promise.resolve();
  // One batch after another: closing waits for the one whose transaction is open.
  const flush = (): Promise<void> => (flushed = flushed.then(async () => {
    const batch = queue;
    queue = [];
    if (batch.length > 0) settle(batch, await run(batch), disk);
  }));
  return {
    write: (command, args) =>
      new Promise((resolve, reject) => {
        if (disk.failure) return reject(disk.failure);
        const waiting: Waiting = {
          command, args, reject, resolve: (value) => resolve(value as never),
        };
        if (queue.push(waiting) === 1) setImmediate(() => void flush());
      }),
    failure: () => disk.failure,
    isRefusing: () => disk.failure !== null || disk.isFull,
    close: async () => {
      await flush();
      if (!db.open) return;
      if (!disk.failure) db.pragma("wal_checkpoint(TRUNCATE)");
      db.close();
    },
  };
}

/** Calls `run` before the answer is passed on, whichever way it comes. */
function after(
  run: () => void, resolve: Waiting["resolve"], reject: Waiting["reject"],
): Pick<Waiting, "resolve" | "reject"> {
  return {
    resolve: (value) => {
      run();
      resolve(value);
    },
    reject: (error) => {
      run();
      reject(error);
    },
  };
}

export type ToWriter = { batch: Request[] } | { close: true };
export type FromWriter =
  | { migration: string }
  | { ready: true }
  | { answers: Answer[] }
  /** Outcomes of the oldest held commands. */
  | { held: Outcome[] }
  | { closed: true };

const WRITER_FILE = workerFile("write");
/** Everything a batch allocates is garbage once it is answered, so more room would only fill up. */
const WRITER_YOUNG_MB = 4;

/** The requests to the writer's thread, queued, sent and held. */
function createLine(post: (batch: Request[]) => void, disk: Disk) {
  const sent: Waiting[][] = [];
  const queue: Waiting[] = [];
  /** Requests the thread holds, in the thread's order. */
  const held: Waiting[] = [];
  let isFlushing = false;
  const flush = (): void => {
    isFlushing = false;
    if (queue.length === 0) return;
    const batch = queue.splice(0, LIMITS.writeBatchMax);
    sent.push(batch);
    post(batch.map(({ command, args }) => ({ command, args })));
    if (queue.length > 0) scheduleFlush();
  };
  const scheduleFlush = (): void => {
    if (isFlushing) return;
    isFlushing = true;
    setImmediate(flush);
  };
  return {
    isHeld: () => held.length > 0,
    ask: (request: Waiting): void => {
      queue.push(request);
      // When the writer is idle, waiting to batch gains nothing.
      if (sent.length === 0 && queue.length === 1) flush();
      else scheduleFlush();
    },
    /** Settles the oldest batch sent, which has been answered. */
    receive: (answers: Answer[]): void => settle(sent.shift() ?? [], answers, disk, held),
    receiveHeld: (outcomes: Outcome[]): void =>
      settle(held.splice(0, outcomes.length), outcomes, disk),
    fail: (error: StorageFailure): void => {
      for (const waiting of [...held.splice(0), ...sent.splice(0).flat(), ...queue.splice(0)]) {
        waiting.reject(error);
      }
    },
    /** Sends everything that waits, for the last time. */
    close: (): void => {
      while (queue.length > 0) flush();
    },
  };
}

/**
 * Writes in a thread of its own, so that the main thread never waits for a disk. The first command
 * leaves at once; commands asked for while the writer is busy are sent once per event-loop turn,
 * and batched further in the thread.
 */
export async function startThreadWriter(
  dataDir: string, writesMax: number = LIMITS.writeQueueMax, onMigration?: OnMigration,
): Promise<Writer<AllCommands>> {
  // An error thrown in the thread loses its class, which tells that an operator can fix it.
  assertNotNewer(dataDir);
  const worker = new Worker(WRITER_FILE, {
    workerData: { dataDir }, resourceLimits: { maxYoungGenerationSizeMb: WRITER_YOUNG_MB },
  });
  const backlog = createBacklog(writesMax);
  const disk: Disk = { failure: null, isFull: false };
  const line = createLine((batch) => worker.postMessage({ batch } satisfies ToWriter), disk);
  let closing: Promise<void> | null = null;
  let onClosed = (): void => undefined;
  const failAll = (error: StorageFailure): void => {
    disk.failure ??= error;
    line.fail(error);
  };

  await new Promise<void>((resolve, reject) => {
    worker.once("error", reject);
    worker.on("message", (message: FromWriter) => {
      if ("ready" in message) resolve();
      else if ("migration" in message) onMigration?.(message.migration);
      else if ("closed" in message) onClosed();
      else if ("held" in message) line.receiveHeld(message.held);
      else line.receive(message.answers);
    });
  });
  worker.on("error", (error) => failAll(new StorageFailure("the writer thread died", error)));
  worker.on("exit", () => {
    failAll(new StorageFailure("the writer thread ended"));
    onClosed();
  });

  return {
    write: (command, args) =>
      new Promise((resolve, reject) => {
        if (disk.failure) return reject(disk.failure);
        const lock = lockOf(command, args);
        if (!backlog.enter(lock, PATIENT.has(command))) {
          return reject(new Fault(503, "The server is overloaded.", { retryAfterS: 1 }));
        }
        const answered = (): void => backlog.leave(lock);
        line.ask({ command, args, ...after(answered, resolve as Waiting["resolve"], reject) });
      }),
    failure: () => disk.failure,
    isRefusing: () => disk.failure !== null || disk.isFull || line.isHeld(),
    close: () =>
      (closing ??= new Promise<void>((resolve) => {
        onClosed = resolve;
        line.close();
        worker.postMessage({ close: true } satisfies ToWriter);
      }).then(async () => {
        await worker.terminate();
      })),
  };
}
