// The listening half of a call: noise filter, voice activity and recognition over what the customer
// says. Opened by session.ts once the call is answered.
import type {
  NoiseFilter, Pcm, Transcriber, TranscriberStream, TranscriptEvent, Vad,
} from "#providers/speech/port.ts";
import { createResampler } from "#audio/resampler.ts";

interface EarsOptions {
  rate: number;
  language: string;
  languages: string[];
  hints: string[];
  transcriber: Transcriber;
  vad: Vad;
  /** Null: what is heard is recognised as it is. */
  noiseFilter: NoiseFilter | null;
  tell(event: TranscriptEvent): void;
  tellVoice(probability: number, frameMs: number): void;
}

export interface Ears {
  hear(pcm: Pcm): void;
  finalize(): void;
  close(): void;
}

export function createEars(options: EarsOptions): Ears {
  const { rate, language, languages, hints, vad, tellVoice } = options;
  const stream: TranscriberStream = options.transcriber.open(
    { rate, language, languages, hints }, options.tell);
  const vadRate = rate === 8000 ? 8000 : 16_000;
  const resampler = rate === vadRate ? null : createResampler(rate, vadRate);
  const frame = new Int16Array(vad.frameSamples(vadRate));
  const frameMs = (frame.length * 1000) / vadRate;
  const activity = vad.open(vadRate, (probability) => tellVoice(probability, frameMs));
  let filled = 0;
  const watch = (pcm: Pcm): void => {
    if (filled === 0 && pcm.length === frame.length) return activity.push(pcm);
    for (let at = 0; at < pcm.length;) {
      const take = Math.min(frame.length - filled, pcm.length - at);
      frame.set(pcm.subarray(at, at + take), filled);
      filled += take;
      at += take;
      if (filled < frame.length) return;
      filled = 0;
      activity.push(frame);
    }
  };
  const take = (pcm: Pcm): void => {
    stream.write(pcm);
    watch(resampler ? resampler.process(pcm) : pcm);
  };
  const filter = options.noiseFilter?.open(rate, take) ?? null;
  return {
    hear: (pcm) => (filter ? filter.write(pcm) : take(pcm)),
    finalize: () => stream.finalize(),
    close: () => {
      filter?.close();
      stream.close();
      activity.close();
    },
  };
}
