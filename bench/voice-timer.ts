// A bare 20 ms timer in a thread with nothing else to do: how late the machine itself is while
// bench/voice.ts measures the clock of the calls. Posts its lateness when it is asked to stop.
import { parentPort } from "node:worker_threads";
import { FRAME_MS } from "#providers/carriers/port.ts";

const port = parentPort;
if (!port) throw new Error("bench/voice-timer.ts runs as a worker thread");
const latenessMs: number[] = [];
let dueMs = performance.now() + FRAME_MS;

function tick(): void {
  for (; dueMs <= performance.now(); dueMs += FRAME_MS) latenessMs.push(performance.now() - dueMs);
  timer = setTimeout(tick, dueMs - performance.now());
}

let timer = setTimeout(tick, FRAME_MS);
port.once("message", () => {
  clearTimeout(timer);
  port.postMessage(latenessMs);
});
