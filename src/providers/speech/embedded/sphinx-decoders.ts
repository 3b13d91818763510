// PocketSphinx compiled to WebAssembly, with its model: third-party/pocketsphinx has both and says
// how they were made. It imports nothing but a clock and an exit, and reads no file by itself.
// Used by workers/transcribe-pocketsphinx.ts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { programFile } from "#core/program.ts";

const FOLDER = programFile("third-party/pocketsphinx");
/** The names that its decoder.c and PocketSphinx use. */
const MODEL_FILES = [
  "mdef", "means", "variances", "transition_matrices", "sendump", "feat.params", "noisedict",
  "dictionary", "language.bin",
];
/** Samples it takes at a time. */
const BLOCK_SAMPLES = 3200;
const UNKNOWN_SYSTEM_CALL = 52;

/** Addresses in its memory are numbers. */
interface Sphinx {
  memory: WebAssembly.Memory;
  _initialize(): void;
  malloc(bytes: number): number;
  give_file(name: number, data: number, bytes: number): number;
  make_decoder(): number;
  ps_free(decoder: number): number;
  ps_start_utt(decoder: number): number;
  ps_end_utt(decoder: number): number;
  ps_process_raw(
    decoder: number, samples: number, count: number, noSearch: number, isWhole: number): number;
  ps_get_hyp(decoder: number, score: number): number;
}

/** Adapts to the line it hears. Its utterances come one after the other. */
export interface SphinxDecoder {
  begin(): void;
  /** At 16 kHz. */
  hear(pcm: Int16Array): void;
  /** The words so far, or of the utterance that has ended. */
  words(): string;
  end(): void;
  free(): void;
}

/** Loads engine and model; what is returned makes a decoder, which takes a fifth of a second. */
export function loadSphinx(): () => SphinxDecoder {
  const module = new WebAssembly.Module(readFileSync(join(FOLDER, "pocketsphinx.wasm")));
  const imports: Record<string, Record<string, () => number>> = {};
  for (const { module: room, name } of WebAssembly.Module.imports(module)) {
    // It asks the time to measure itself, and would exit only for want of memory or a broken model.
    (imports[room] ??= {})[name] = () => {
      if (name === "clock_time_get" || name === "emscripten_notify_memory_growth") return 0;
      if (name === "proc_exit") throw new Error("PocketSphinx has failed");
      return UNKNOWN_SYSTEM_CALL;
    };
  }
  const { exports } = new WebAssembly.Instance(module, imports);
  const sphinx = exports as unknown as Sphinx;
  sphinx._initialize();
  // When the memory grows, its buffer is replaced.
  const bytes = (): Uint8Array => new Uint8Array(sphinx.memory.buffer);
  const place = (data: Uint8Array): number => {
    const address = sphinx.malloc(data.length);
    bytes().set(data, address);
    return address;
  };
  for (const name of MODEL_FILES) {
    const data = readFileSync(join(FOLDER, "model", name));
    sphinx.give_file(place(Buffer.from(`model/${name}\0`)), place(data), data.length);
  }
  const samples = sphinx.malloc(BLOCK_SAMPLES * Int16Array.BYTES_PER_ELEMENT);
  const text = (address: number): string => {
    if (address === 0) return "";
    const memory = bytes();
    return Buffer.from(memory.subarray(address, memory.indexOf(0, address))).toString();
  };
  return () => {
    const decoder = sphinx.make_decoder();
    if (decoder === 0) throw new Error("could not create a PocketSphinx decoder");
    return {
      begin: () => void sphinx.ps_start_utt(decoder),
      hear: (pcm) => {
        for (let at = 0; at < pcm.length; at += BLOCK_SAMPLES) {
          const block = pcm.subarray(at, at + BLOCK_SAMPLES);
          new Int16Array(sphinx.memory.buffer, samples, block.length).set(block);
          sphinx.ps_process_raw(decoder, samples, block.length, 0, 0);
        }
      },
      words: () => text(sphinx.ps_get_hyp(decoder, 0)),
      end: () => void sphinx.ps_end_utt(decoder),
      free: () => void sphinx.ps_free(decoder),
    };
  };
}
