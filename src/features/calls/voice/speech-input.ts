// The listening half of a call: noise filter, voice activity and recognition over what the customer
// says. Opened by voice-session.ts once the call is answered.
import type {
  NoiseFilter, Pcm, Transcriber, TranscriberStream, TranscriptEvent, Vad,
} from "#providers/speech/port.ts";
import { createSoundEnd } from "#audio/audible.ts";
import { createResampler } from "#audio/resampler.ts";

interface SpeechInputOptions {
  rate: number;
  language: string;
  languages: string[];
  hints: string[];
  transcriber: Transcriber;
  vad: Vad;
  /** Null: what is heard is recognised as it is. */
  noiseFilter: NoiseFilter | null;
  onTranscript(event: TranscriptEvent): void;
  /** `quietMs`: nothing was audible for so long at the end of the frame. */
  onVoice(probability: number, frameMs: number, quietMs: number): void;
}

export interface SpeechInput {
  write(pcm: Pcm): void;
  finalize(): void;
  close(): void;
}

export function openSpeechInput(options: SpeechInputOptions): SpeechInput {
  const { rate, language, languages, hints, vad, onVoice } = options;
  const stream: TranscriberStream = options.transcriber.open(
    { rate, language, languages, hints }, options.onTranscript);
  const vadRate = rate === 8000 ? 8000 : 16_000;
  const resampler = rate === vadRate ? null : createResampler(rate, vadRate);
  const frame = new Int16Array(vad.frameSamples(vadRate));
  const frameMs = (frame.length * 1000) / vadRate;
  const sound = createSoundEnd(vadRate);
  /** One for each frame whose probability is still to come. */
  const quietMs: number[] = [];
  const activity = vad.open(vadRate, (probability) => {
    stream.voiced?.(probability, frameMs);
    onVoice(probability, frameMs, quietMs.shift() ?? 0);
  });
  const judge = (pcm: Pcm): void => {
    quietMs.push(sound.quietMs(pcm));
    activity.push(pcm);
  };
  let filled = 0;
  const watch = (pcm: Pcm): void => {
    if (filled === 0 && pcm.length === frame.length) return judge(pcm);
    for (let at = 0; at < pcm.length;) {
      const take = Math.min(frame.length - filled, pcm.length - at);
      frame.set(pcm.subarray(at, at + take), filled);
      filled += take;
      at += take;
      if (filled < frame.length) return;
      filled = 0;
      judge(frame);
    }
  };
  const forward = (pcm: Pcm): void => {
    stream.write(pcm);
    watch(resampler ? resampler.process(pcm) : pcm);
  };
  const filter = options.noiseFilter?.open(rate, forward) ?? null;
  return {
    write: (pcm) => (filter ? filter.write(pcm) : forward(pcm)),
    finalize: () => stream.finalize(),
    close: () => {
      filter?.close();
      stream.close();
      activity.close();
    },
  };
}
