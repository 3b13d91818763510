// A thread of the noise filter: RNNoise for some of the calls. Started by noise-filter.ts.
import { parentPort } from "node:worker_threads";
import { levelThisThread } from "#core/thread-priority.ts";
import type { FilteredSound, ToNoiseFilter } from "#providers/speech/embedded/noise-filter.ts";
import { createRnnoise } from "#providers/speech/embedded/rnnoise.ts";

const port = parentPort;
if (!port) throw new Error("workers/filter-noise.ts runs as a worker thread");
levelThisThread();
const rnnoise = await createRnnoise();
const streams = new Map<number, ReturnType<typeof rnnoise.open>>();

port.on("message", (message: ToNoiseFilter) => {
  switch (message.kind) {
    case "open":
      return void streams.set(message.stream, rnnoise.open(message.rate));
    case "write": {
      const { stream, pcm } = message;
      const filtered = streams.get(stream)?.process(pcm) ?? pcm;
      return port.postMessage({ stream, pcm: filtered } satisfies FilteredSound);
    }
    case "close":
      streams.get(message.stream)?.close();
      return void streams.delete(message.stream);
  }
});
