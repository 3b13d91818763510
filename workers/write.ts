// The writer thread: the one connection that writes. Takes everything the main thread has posted,
// commits it as one transaction, answers. Started by storage/engines/sqlite/writer.ts.
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from "node:worker_threads";
import { LIMITS } from "#core/limits.ts";
import { createBatchRunner, type Outcome, type Request } from "#storage/engines/sqlite/batch.ts";
import { isDiskFull, openWriter } from "#storage/engines/sqlite/database.ts";
import { commandsOver } from "#storage/engines/sqlite/sql.ts";
import type { Answer, FromWriter, ToWriter } from "#storage/engines/sqlite/writer.ts";
import { PATIENT, type AllCommands } from "#storage/commands.ts";

const port = parentPort;
if (!port) throw new Error("workers/write.ts runs as a worker thread");
const { dataDir } = workerData as { dataDir: string };
const answer = (message: FromWriter): void => port.postMessage(message);
const db = openWriter(dataDir, {
  migrate: true, onMigration: (migration) => answer({ migration }),
});
const runBatch = createBatchRunner(db, () => commandsOver(db));

let broken: Outcome | null = null;
/**
 * Ends of what has begun that the full disk refused: retried in order until there is room, with
 * later ends queued behind them. They are held here, where all commands arrive in order: otherwise
 * an end in flight could come before what it ends.
 */
const held: Request[] = [];
let trying: NodeJS.Timeout | undefined;
let isClosing = false;

const isPatient = ({ command }: Request): boolean => PATIENT.has(command as keyof AllCommands);

async function runAll(requests: Request[]): Promise<Outcome[]> {
  const outcomes = broken ? requests.map(() => broken as Outcome) : await runBatch(requests);
  broken ??= outcomes.find((outcome) => outcome.kind === "failure") ?? null;
  return outcomes;
}

function tryIn(ms: number): void {
  trying = setTimeout(() => void tryHeld(), ms);
}

function hold(request: Request): Answer {
  if (held.push(request) === 1) tryIn(LIMITS.diskRetryMs);
  return { kind: "held" };
}

async function tryHeld(): Promise<void> {
  const tried = held.slice(0, LIMITS.writeBatchMax);
  const outcomes = await runAll(tried);
  const isRefused = !isClosing && outcomes.some(({ kind }) => kind === "full");
  if (!isRefused) {
    held.splice(0, tried.length);
    answer({ held: outcomes });
  }
  if (held.length > 0 && !isClosing) tryIn(isRefused ? LIMITS.diskRetryMs : 0);
}

async function answersOf(requests: Request[]): Promise<Answer[]> {
  const isBehind = held.length > 0 ? isPatient : () => false;
  const outcomes = (await runAll(requests.filter((one) => !isBehind(one)))).values();
  return requests.map((request) => {
    if (isBehind(request)) return hold(request);
    const outcome = outcomes.next().value as Outcome;
    return outcome.kind === "full" && isPatient(request) ? hold(request) : outcome;
  });
}

async function commitTogether(batches: Request[][]): Promise<void> {
  const answers = await answersOf(batches.flat());
  let offset = 0;
  for (const batch of batches) {
    answer({ answers: answers.slice(offset, offset + batch.length) });
    offset += batch.length;
  }
}

/** Pages that the disk has no room for stay in the WAL, and are read from there. */
function copyLog(mode: "TRUNCATE" | "PASSIVE"): void {
  if (broken) return;
  try {
    db.pragma(`wal_checkpoint(${mode})`);
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

async function close(): Promise<void> {
  isClosing = true;
  clearInterval(checkpoint);
  clearTimeout(trying);
  while (held.length > 0) await tryHeld();
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
  if (next && "close" in next) await close();
}

// A batch ends before the next message is received, because commands await nothing but statements.
port.on("message", (message: ToWriter) => void receive(port, message));

answer({ ready: true });
