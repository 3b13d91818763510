// Which speech engines there are by their codes in the catalogs, which of them this server can use,
// and how they are opened in the media thread.
import { ProviderError } from "../../core/faults.ts";
import type { Logger } from "../../core/logger.ts";
import type { System } from "../../core/system.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "./loopback.ts";
import type { NoiseFilter, Pcm, SpeechToSpeech, Synthesizer, Transcriber, Vad } from "./port.ts";

export interface VendorConfig {
  url: string;
  key: string | null;
  model: string;
}

/** Plain data: it is sent to the media thread. */
export interface SpeechConfig {
  /** `loopback`: speech made of numbers, for tests. */
  mode: "auto" | "loopback";
}

export interface Engines {
  synthesizer(code: string): Synthesizer;
  transcriber(code: string): Transcriber;
  speechToSpeech(): SpeechToSpeech;
  vad: Vad;
  noiseFilter: NoiseFilter | null;
  /** The voice of the loopback carrier's far end. */
  speak(text: string, rate: number, ready: (pcm: Pcm) => void): void;
  close(): Promise<void>;
}

export interface Wanted {
  /** `iso_2`. */
  language: string;
  /** The provider chosen in the assistant's settings; null: whichever can. */
  code: string | null;
}

/** Null: none of this server speaks the language. */
export function chooseSynthesizer(config: SpeechConfig, _wanted: Wanted): string | null {
  return config.mode === "loopback" ? "loopback" : null;
}

export function chooseTranscriber(config: SpeechConfig, _wanted: Wanted): string | null {
  return config.mode === "loopback" ? "loopback" : null;
}

export function openEngines(
  config: SpeechConfig,
  { system }: { system: System; log: Logger },
): Promise<Engines> {
  const unknown = (code: string): ProviderError =>
    new ProviderError(`the speech engine ${code} is not there`, { retryable: false });
  const synthesizer = createLoopbackSynthesizer({ system });
  const transcriber = createLoopbackTranscriber({ system });
  return Promise.resolve({
    synthesizer: (code: string) => {
      if (code === "loopback" && config.mode === "loopback") return synthesizer;
      throw unknown(code);
    },
    transcriber: (code: string) => {
      if (code === "loopback" && config.mode === "loopback") return transcriber;
      throw unknown(code);
    },
    speechToSpeech: () => {
      throw unknown("realtime");
    },
    vad: loopbackVad,
    noiseFilter: null,
    speak: (text: string, rate: number, ready: (pcm: Pcm) => void) =>
      ready(loopbackAudio(text, rate)),
    close: () => Promise.resolve(),
  });
}
