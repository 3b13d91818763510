// Recognition on this machine by sherpa-onnx with a streaming model the operator has put into a
// folder (PARLEY_SHERPA_DIR). The native code ends the process over files that are no such model,
// so the folder is checked when the server starts.
import { createRequire } from "node:module";
import { createResampler } from "#audio/resampler.ts";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import {
  createThreadRecogniser, RECOGNISER_RATE, type ThreadRecogniser,
} from "./recogniser-thread.ts";
import type { SherpaModel } from "#config/sherpa-model.ts";

export interface SherpaConfig {
  model: SherpaModel;
  /** `iso_2` codes of the languages the model understands. */
  languages: string[];
}

/** Streams that the thread decodes together: about as many as a core manages with a small model. */
export const SHERPA_SPEAKERS_MAX = 16;

/** What is missing, in one sentence; null: the package is installed. */
export function sherpaMissing(): string | null {
  try {
    createRequire(import.meta.url).resolve("sherpa-onnx-node");
    return null;
  } catch {
    return "The optional package sherpa-onnx-node is not installed.";
  }
}

export function createSherpa({ model }: SherpaConfig, log: Logger): ThreadRecogniser {
  return createThreadRecogniser({
    name: "sherpa-onnx",
    workerFile: workerFile("transcribe-sherpa"),
    workerData: model,
    streamsMax: SHERPA_SPEAKERS_MAX,
    converter: (rate) => {
      const resampler = createResampler(rate, RECOGNISER_RATE);
      return (pcm) => resampler.process(pcm);
    },
    log,
  });
}
