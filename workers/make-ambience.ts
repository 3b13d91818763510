// Generates the loop of one background sound. Started by base/audio/ambience-thread.ts.
import { parentPort, workerData } from "node:worker_threads";
import { makeLoop } from "#audio/ambience.ts";
import type { AmbienceTask } from "#audio/ambience-thread.ts";
import { levelThisThread } from "#core/thread-priority.ts";

levelThisThread();
const { kind, rate } = workerData as AmbienceTask;
const loop = makeLoop(kind, rate);
parentPort?.postMessage(loop, [loop.buffer as ArrayBuffer]);
