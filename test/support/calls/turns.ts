// Loaded into the server before its own program (NODE_OPTIONS): in the media thread it writes, one
// number a line, the milliseconds of CPU that each longer turn of its loop took. CPU, not duration:
// a busy machine makes turns late, but adds no work.
import { appendFileSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { isMainThread } from "node:worker_threads";

const LOOK_MS = 2;
const WRITTEN_FROM_MS = 10;
const file = process.env.TURNS_FILE;

/** The thread's CPU time, as Linux counts it. */
const workedMs = (): number =>
  Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e6;

const isMedia = !isMainThread && basename(process.argv[1] ?? "").startsWith("media.");
if (file !== undefined && isMedia) {
  let beforeMs = workedMs();
  setInterval(() => {
    const nowMs = workedMs();
    const ms = nowMs - beforeMs;
    if (ms >= WRITTEN_FROM_MS) appendFileSync(file, `${ms.toFixed(1)}\n`);
    beforeMs = workedMs();
  }, LOOK_MS).unref();
}
