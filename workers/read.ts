// The reading thread: a connection for reads that may scan much, so that they do not block the main
// thread. Started by storage/engines/sqlite/reading.ts.
import { parentPort, workerData } from "node:worker_threads";
import { openReader } from "#storage/engines/sqlite/database.ts";
import type { FromReading, ToReading } from "#storage/engines/sqlite/reading.ts";

const port = parentPort;
if (!port) throw new Error("workers/read.ts runs as a worker thread");
const db = openReader((workerData as { dataDir: string }).dataDir);

const prepare = (text: string) => db.prepare<unknown[]>(text);
const prepared = new Map<string, ReturnType<typeof prepare>>();

function answerTo({ text, how, values }: ToReading): FromReading {
  try {
    let statement = prepared.get(text);
    if (!statement) prepared.set(text, statement = prepare(text));
    return { value: statement[how](values) };
  } catch (error) {
    return { error };
  }
}

port.on("message", (message: ToReading | "close") => {
  if (message !== "close") return port.postMessage(answerTo(message));
  db.close();
  port.close();
});
