// The listening half of a call: noise filter, voice activity and recognition over what the customer
// says. Opened by voice-session.ts once the call is answered, by person.ts and by second-leg.ts.
import type {
  NoiseFilter, Pcm, Transcriber, TranscriberStream, TranscriptEvent, TurnEndModel, Vad,
} from "#providers/speech/port.ts";
import { createSoundEnd } from "#audio/audible.ts";
import { periodicity } from "#audio/periodicity.ts";
import { createResampler } from "#audio/resampler.ts";
import type { TurnEvent } from "./turns/turn-events.ts";

type VoiceFrame = Omit<Extract<TurnEvent, { kind: "voice" }>, "kind">;

/** Below this nobody is taken to speak, and the periodicity of a frame does not matter. */
const MAYBE_VOICE = 0.4;

/** How far back an end-of-turn model listens. */
const MEMORY_MS = 8000;
/** How long before its confirmation a voice may have begun. */
const LEAD_MS = 300;

interface SpeechInputOptions {
  rate: number;
  language: string;
  languages: string[];
  hints: string[];
  transcriber: Transcriber;
  vad: Vad;
  /** Null: what is heard is recognised as it is. */
  noiseFilter: NoiseFilter | null;
  turnEnds: TurnEndModel | null;
  onTranscript(event: TranscriptEvent): void;
  onVoice(frame: VoiceFrame): void;
}

export interface SpeechInput {
  write(pcm: Pcm): void;
  finalize(): void;
  /** Asks the end-of-turn model about the pause that began after `spokenMs` of the turn. */
  judgeEnd(spokenMs: number, publish: (probability: number) => void): void;
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
  /** The frames whose probability is still to come. */
  const frames: Pcm[] = [];
  const activity = vad.open(vadRate, (probability) => {
    const pcm = frames.shift() ?? frame;
    stream.voiced?.(probability, frameMs);
    onVoice({
      probability, frameMs, quietMs: sound.quietMs(pcm),
      periodicity: probability < MAYBE_VOICE ? 0 : periodicity(pcm, vadRate),
    });
  });
  const judge = (pcm: Pcm): void => {
    frames.push(pcm.slice());
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
  const { turnEnds } = options;
  const memory = turnEnds === null ? null : createSoundMemory((MEMORY_MS * rate) / 1000);
  const forward = (pcm: Pcm): void => {
    stream.write(pcm);
    memory?.write(pcm);
    watch(resampler ? resampler.process(pcm) : pcm);
  };
  const filter = options.noiseFilter?.open(rate, forward) ?? null;
  return {
    write: (pcm) => (filter ? filter.write(pcm) : forward(pcm)),
    finalize: () => stream.finalize(),
    judgeEnd: (spokenMs, publish) => {
      if (memory === null) return;
      const heardMs = Math.min(MEMORY_MS, spokenMs + LEAD_MS);
      turnEnds?.judge(memory.last(Math.round((heardMs * rate) / 1000)), rate, publish);
    },
    close: () => {
      filter?.close();
      stream.close();
      activity.close();
    },
  };
}

/** A ring buffer of the newest samples. */
function createSoundMemory(size: number): { write(pcm: Pcm): void; last(samples: number): Pcm } {
  const kept = new Int16Array(size);
  let at = 0;
  return {
    write: (pcm) => {
      const room = Math.min(pcm.length, size - at);
      kept.set(pcm.subarray(0, room), at);
      kept.set(pcm.subarray(room), 0);
      at = (at + pcm.length) % size;
    },
    last: (samples) => {
      const from = (at - samples + size) % size;
      const pcm = new Int16Array(samples);
      const tail = kept.subarray(from, Math.min(size, from + samples));
      pcm.set(tail);
      pcm.set(kept.subarray(0, samples - tail.length), tail.length);
      return pcm;
    },
  };
}
