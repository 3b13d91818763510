// The thread of the endpointing model: from the audio of a turn it computes the probability that
// the turn is over. Started by turn-ends.ts.
import { parentPort, workerData } from "node:worker_threads";
import { createResampler } from "#audio/resampler.ts";
import { levelThisThread } from "#core/thread-priority.ts";
import {
  logMel, LOG_MEL_BANDS, LOG_MEL_RATE, LOG_MEL_STEPS,
} from "#providers/speech/embedded/log-mel.ts";
import { openNetwork } from "#providers/speech/embedded/onnx-runtime.ts";
import type { FromTurnEnds, ToTurnEnds } from "#providers/speech/embedded/turn-ends.ts";

const port = parentPort;
if (!port) throw new Error("workers/judge-turn-ends.ts runs as a worker thread");
levelThisThread();

const post = (message: FromTurnEnds): void => port.postMessage(message);
const { modelFile } = workerData as { modelFile: string };

function openModel(): ((features: Float32Array) => number) {
  const network = openNetwork(modelFile);
  if (network === null) throw new Error("no ONNX Runtime is available for this machine");
  const input = network.memory("float", LOG_MEL_BANDS * LOG_MEL_STEPS);
  const output = network.memory("float", 1);
  const run = network.prepare({
    input_features: { kind: "float", memory: input, shape: [1, LOG_MEL_BANDS, LOG_MEL_STEPS] },
  }, {
    // The network ends in a sigmoid, although its output is named logits.
    logits: { kind: "float", memory: output, shape: [1, 1] },
  });
  return (features) => {
    new Float32Array(input.buffer).set(features);
    run();
    return new Float32Array(output.buffer)[0] ?? 0;
  };
}

try {
  const judge = openModel();
  // A model with other inputs fails here, on its first run, and not while a call waits.
  judge(logMel(new Int16Array(0)));
  port.on("message", ({ id, pcm, rate }: ToTurnEnds) => {
    const probability = judge(logMel(createResampler(rate, LOG_MEL_RATE).process(pcm)));
    post({ kind: "judged", id, probability });
  });
} catch (error) {
  post({ kind: "failed", message: (error as Error).message });
}
