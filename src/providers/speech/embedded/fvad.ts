// Voice activity by WebRTC's detector, compiled to WebAssembly: three microseconds a frame, no
// weights. It decides between speech and none, without probabilities.
import type { Vad } from "#providers/speech/port.ts";

/** What this program needs of the package, which brings no types. */
interface FvadModule {
  HEAP16: Int16Array;
  _fvad_new(): number;
  _fvad_free(detector: number): void;
  _fvad_set_mode(detector: number, mode: number): number;
  _fvad_set_sample_rate(detector: number, rate: number): number;
  _fvad_process(detector: number, frame: number, samples: number): number;
  _malloc(bytes: number): number;
  _free(address: number): void;
}

const FRAMES_PER_SECOND = 50;
/** Modes go from 0 to 3; this one takes least noise for speech. */
const STRICTEST = 3;

export async function createFvad(): Promise<Vad> {
  const { default: load } = (await import("@echogarden/fvad-wasm" as string)) as {
    default(): Promise<FvadModule>;
  };
  const wasm = await load();
  return {
    name: "WebRTC",
    frameSamples: (rate) => rate / FRAMES_PER_SECOND,
    open: (rate, publish) => {
      const detector = wasm._fvad_new();
      wasm._fvad_set_mode(detector, STRICTEST);
      wasm._fvad_set_sample_rate(detector, rate);
      const samples = rate / FRAMES_PER_SECOND;
      const frame = wasm._malloc(2 * samples);
      let isOpen = true;
      return {
        push: (pcm) => {
          if (!isOpen) return;
          wasm.HEAP16.set(pcm, frame >> 1);
          publish(wasm._fvad_process(detector, frame, samples) === 1 ? 1 : 0);
        },
        close: () => {
          if (!isOpen) return;
          isOpen = false;
          wasm._free(frame);
          wasm._fvad_free(detector);
        },
      };
    },
  };
}
