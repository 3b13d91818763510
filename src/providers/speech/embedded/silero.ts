// Voice activity by Silero's network: it takes hardly any noise for speech, where WebRTC's detector
// takes a third of all noise for it (`npm run bench -- voice-activity` compares them). One
// session serves all speakers of the thread, and a speaker is 2 KiB of state. The frames of one
// tick run together: in batches of 15 at 8 kHz a frame took 0.04 ms, alone 0.11.
import { programFile } from "#core/program.ts";
import type { Pcm, Vad } from "#providers/speech/port.ts";
import { createFvad } from "./fvad.ts";
import { openNetwork, type Network, type Run } from "./onnx-runtime.ts";

const WEIGHTS = programFile("third-party/silero-vad/silero_vad_v6.onnx");
const FRAMES_PER_SECOND = 31.25;
/** The part of the previous frame that the network sees, as a share of a frame. */
const CONTEXT = 1 / 8;
const STATE = 128;
/** The network has two layers of state. */
const STATES = 2 * STATE;
/** Larger batches cost more time than they save. */
const BATCH_MAX = 16;
const FULL_SCALE = 32_768;
const RATES = [8000, 16_000] as const;
type Rate = (typeof RATES)[number];

/** Silero where its runtime can be loaded, else WebRTC's detector. */
export async function createVad(): Promise<Vad> {
  return createSilero() ?? createFvad();
}

/** Null: the runtime is not installed, or not for this machine. */
export function createSilero(): Vad | null {
  const network = openSilero();
  if (network === null) return null;
  const batches = new Map(RATES.map((rate) => [rate, new Batch(network, rate)]));
  return {
    name: "Silero",
    frameSamples: (rate) => rate / FRAMES_PER_SECOND,
    open: (rate, publish) => {
      const batch = batches.get(rate);
      if (!batch) throw new Error(`Silero does not support the sample rate ${rate}`);
      const speaker: Speaker = {
        state: new Float32Array(STATES), input: new Float32Array(batch.width), publish,
      };
      return {
        push: (frame) => batch.push(speaker, frame),
        close: () => batch.leave(speaker),
      };
    },
  };
}

function openSilero(): Network | null {
  try {
    return openNetwork(WEIGHTS);
  } catch {
    // The library is of another kind of system than this one.
    return null;
  }
}

interface Speaker {
  /** Null once closed. */
  publish: ((probability: number) => void) | null;
  state: Float32Array;
  /** The end of the frame before, then the frame. */
  input: Float32Array;
}

/** The speakers of one rate whose frames wait for the run at the end of this turn of the loop. */
class Batch {
  /** Samples of context and frame. */
  readonly width: number;
  readonly #context: number;
  readonly #waiting: Speaker[] = [];
  readonly #runs: Run[] = [];
  readonly #prepare: (rows: number) => Run;
  readonly #input: Float32Array;
  readonly #state: Float32Array;
  readonly #nextState: Float32Array;
  readonly #probability: Float32Array;

  constructor(network: Network, rate: Rate) {
    const samples = rate / FRAMES_PER_SECOND;
    this.#context = samples * CONTEXT;
    this.width = this.#context + samples;
    const rateMemory = network.memory("int64", 1);
    new BigInt64Array(rateMemory.buffer)[0] = BigInt(rate);
    const input = network.memory("float", BATCH_MAX * this.width);
    const state = network.memory("float", BATCH_MAX * STATES);
    const nextState = network.memory("float", BATCH_MAX * STATES);
    const output = network.memory("float", BATCH_MAX);
    this.#input = new Float32Array(input.buffer);
    this.#state = new Float32Array(state.buffer);
    this.#nextState = new Float32Array(nextState.buffer);
    this.#probability = new Float32Array(output.buffer);
    this.#prepare = (rows) => network.prepare({
      input: { kind: "float", memory: input, shape: [rows, this.width] },
      state: { kind: "float", memory: state, shape: [2, rows, STATE] },
      sr: { kind: "int64", memory: rateMemory, shape: [] },
    }, {
      output: { kind: "float", memory: output, shape: [rows, 1] },
      stateN: { kind: "float", memory: nextState, shape: [2, rows, STATE] },
    });
  }

  push(speaker: Speaker, frame: Pcm): void {
    if (speaker.publish === null) return;
    // The speaker's previous frame still waits, or the batch is full.
    if (this.#waiting.includes(speaker) || this.#waiting.length === BATCH_MAX) this.#run();
    const { input } = speaker;
    input.copyWithin(0, this.width - this.#context);
    for (let at = 0; at < frame.length; at += 1) {
      input[this.#context + at] = (frame[at] ?? 0) / FULL_SCALE;
    }
    if (this.#waiting.push(speaker) === 1) queueMicrotask(() => this.#run());
  }

  leave(speaker: Speaker): void {
    speaker.publish = null;
    const at = this.#waiting.indexOf(speaker);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  #run(): void {
    const speakers = this.#waiting.splice(0);
    const rows = speakers.length;
    if (rows === 0) return;
    for (const [row, { input, state }] of speakers.entries()) {
      this.#input.set(input, row * this.width);
      this.#state.set(state.subarray(0, STATE), row * STATE);
      this.#state.set(state.subarray(STATE), (rows + row) * STATE);
    }
    (this.#runs[rows] ??= this.#prepare(rows))();
    const next = this.#nextState;
    const heard = this.#probability.slice(0, rows);
    for (const [row, { state }] of speakers.entries()) {
      state.set(next.subarray(row * STATE, (row + 1) * STATE));
      state.set(next.subarray((rows + row) * STATE, (rows + row + 1) * STATE), STATE);
    }
    // Published last, because a listener may close or push.
    for (const [row, { publish }] of speakers.entries()) publish?.(heard[row] ?? 0);
  }
}
