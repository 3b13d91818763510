// The writer thread: the one connection that writes. Drains everything the main thread has posted,
// commits it as one transaction, answers. Started by storage/engines/sqlite/writer.ts.
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from "node:worker_threads";
import { LIMITS } from "#core/limits.ts";
import { createBatchRunner, type Outcome, type Request } from "#storage/engines/sqlite/batch.ts";
import { isDiskFull, openWriter } from "#storage/engines/sqlite/database.ts";
import { commandsOver } from "#storage/engines/sqlite/sql.ts";
import type { FromWriter, ToWriter } from "#storage/engines/sqlite/writer.ts";

const port = parentPort;
if (!port) throw new Error("workers/write.ts runs as a worker thread");
const { dataDir } = workerData as { dataDir: string };
const db = openWriter(dataDir, { migrate: true });
const runBatch = createBatchRunner(db, () => commandsOver(db));
const answer = (message: FromWriter): void => port.postMessage(message);

let broken: Outcome | null = null;

async function commitTogether(batches: Request[][]): Promise<void> {
  const requests = batches.flat();
  const outcomes = broken ? requests.map(() => broken as Outcome) : await runBatch(requests);
  broken ??= outcomes.find((outcome) => outcome.kind === "failure") ?? null;
  let offset = 0;
  for (const batch of batches) {
    answer({ outcomes: outcomes.slice(offset, offset + batch.length) });
    offset += batch.length;
  }
}

/** What the disk has no room for stays in the log beside the database, and is read there. */
function copyLog(mode: "TRUNCATE" | "PASSIVE"): void {
  if (broken) return;
  try {
    db.pragma(`wal_checkpoint(${mode})`);
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

function close(): void {
  clearInterval(checkpoint);
  copyLog("TRUNCATE");
  db.close();
  answer({ closed: true });
}

const checkpoint = setInterval(() => copyLog("PASSIVE"), LIMITS.checkpointMs);

async function receive(port: MessagePort, first: ToWriter): Promise<void> {
  const batches: Request[][] = [];
  let count = 0;
  let next: ToWriter | undefined = first;
  while (next && "batch" in next) {
    batches.push(next.batch);
    count += next.batch.length;
    next = count < LIMITS.writeBatchMax
      ? (receiveMessageOnPort(port)?.message as ToWriter | undefined)
      : undefined;
  }
  if (batches.length > 0) await commitTogether(batches);
  if (next && "close" in next) close();
}

// A batch is over before the next message is received: commands await statements alone.
port.on("message", (message: ToWriter) => void receive(port, message));

answer({ ready: true });
