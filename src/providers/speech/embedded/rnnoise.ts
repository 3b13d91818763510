// Takes noise out of what the recogniser hears (RNNoise, compiled to WebAssembly). Works at 48 kHz
// in frames of 10 ms; the recording keeps the noise. Runs in workers/filter-noise.ts.
import { createResampler } from "#audio/resampler.ts";
import type { Pcm } from "#providers/speech/port.ts";

/** What this program needs of the package, which brings no types. */
interface RnnoiseModule {
  HEAPF32: Float32Array;
  _rnnoise_create(model: number): number;
  _rnnoise_destroy(state: number): void;
  _rnnoise_process_frame(state: number, out: number, into: number): number;
  _malloc(bytes: number): number;
  _free(address: number): void;
}

const RATE = 48_000;
const FRAME = 480;

interface Rnnoise {
  open(rate: number): { process(pcm: Pcm): Pcm; close(): void };
}

export async function createRnnoise(): Promise<Rnnoise> {
  const { default: load } = (await import("@echogarden/rnnoise-wasm" as string)) as {
    default(): Promise<RnnoiseModule>;
  };
  const wasm = await load();
  return {
    open: (rate) => {
      const state = wasm._rnnoise_create(0);
      const address = wasm._malloc(4 * FRAME);
      const up = createResampler(rate, RATE);
      const down = createResampler(RATE, rate);
      let rest = new Int16Array(0);
      let isOpen = true;
      return {
        process: (pcm) => {
          if (!isOpen) return pcm;
          const wide = up.process(pcm);
          const all = new Int16Array(rest.length + wide.length);
          all.set(rest);
          all.set(wide, rest.length);
          const whole = all.length - (all.length % FRAME);
          for (let at = 0; at < whole; at += FRAME) {
            wasm.HEAPF32.set(all.subarray(at, at + FRAME), address >> 2);
            wasm._rnnoise_process_frame(state, address, address);
            for (let index = 0; index < FRAME; index += 1) {
              const value = Math.round(wasm.HEAPF32[(address >> 2) + index] ?? 0);
              all[at + index] = Math.max(-32_768, Math.min(32_767, value));
            }
          }
          rest = all.slice(whole);
          return down.process(all.subarray(0, whole));
        },
        close: () => {
          if (!isOpen) return;
          isOpen = false;
          wasm._free(address);
          wasm._rnnoise_destroy(state);
        },
      };
    },
  };
}
