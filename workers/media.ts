// The media thread: live audio of all calls, so that nothing in the main thread ever delays a
// frame. Started by calls/media.ts.
import { parentPort, workerData } from "node:worker_threads";
import { createBeepDetector } from "../src/audio/tones.ts";
import { createAmbience } from "../src/audio/ambience.ts";
import { createStereoRecorder } from "../src/audio/wav.ts";
import type { Lateness, MediaWorkerData } from "../src/calls/media.ts";
import { createMediaClock } from "../src/calls/voice/clock.ts";
import { createHost } from "../src/calls/voice/host.ts";
import type { ToMedia } from "../src/calls/voice/protocol.ts";
import { createLogger, type LogLevel } from "../src/core/logger.ts";
import { createSystem } from "../src/core/system.ts";
import { openEngines } from "../src/providers/speech/engines.ts";
import { openCarrier } from "../src/providers/carriers/loopback-numbers.ts";

const port = parentPort;
if (!port) throw new Error("workers/media.ts runs as a worker thread");
const { speech, logLevel } = workerData as MediaWorkerData;
const system = createSystem();
const log = createLogger(logLevel as LogLevel);
const engines = await openEngines(speech, { system, log });

const CLOCK_CHECK_MS = 5;
/** Ticks told at a time: one message in two seconds. */
const LATENESS_BATCH = 100;
const lateness: number[] = [];

const host = createHost({
  ...engines,
  ambience: createAmbience,
  beeps: createBeepDetector,
  recorder: (file, rate) => {
    const recorder = createStereoRecorder({ file, rate });
    return {
      write: recorder.write,
      close: async () => (await recorder.close()).durationMs,
    };
  },
  carrier: openCarrier({ engines, system }),
  clock: createMediaClock(system, CLOCK_CHECK_MS, (lateMs) => {
    lateness.push(lateMs);
    if (lateness.length < LATENESS_BATCH) return;
    port.postMessage({ kind: "lateness", ms: lateness.splice(0) } satisfies Lateness);
  }),
  system,
  log,
  post: (message, transfer) => port.postMessage(message, transfer ?? []),
});

port.on("message", (message: ToMedia) => host.take(message));
