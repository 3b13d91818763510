// Brings all voices, whatever engine they are from, to one loudness: -23 LUFS. A voice's gain is
// learned from what it said before, in any call; a piece of audio counts before it is played,
// so that nothing waits. Peaks above -1 dBFS are turned down in the milliseconds around them.
// Wraps each engine and each model that speaks (opening.ts).
import { createBlocks, integrated } from "#audio/loudness.ts";
import type { Pcm, SpeechToSpeech, SynthesisOptions, Synthesizer } from "./port.ts";

export const TARGET_LUFS = -23;
/** The most that anything is amplified or attenuated: what is fainter is no voice. */
const GAIN_DB_MAX = 15;
/** Within an utterance the gain moves no faster, except for a voice nobody knows yet. */
const SLEW_DB_PER_SECOND = 3;
/** Blocks (100 ms) by which a voice is measured, and how many make it known. */
const BLOCKS_MAX = 300;
const BLOCKS_KNOWN = 5;
const VOICES_MAX = 200;
/** -1 dBFS. */
const PEAK_MAX = 29_204;
const LIMITER_MS = 5;
/** The time in which the limiter goes from silence back to full level. */
const RELEASE_MS = 100;

/** What is known of one voice at one rate. */
interface Voice {
  blocks: number[];
  gainDb: number;
}

export type Level = (key: string, rate: number) => (pcm: Pcm) => Pcm;

const factorOf = (decibels: number): number => 10 ** (decibels / 20);

/** Holds the levels of all voices; one instance serves all engines. */
export function createLevel(): Level {
  /** In the order of last use: the first is the least recently used voice. */
  const voices = new Map<string, Voice>();
  const voiceOf = (key: string): Voice => {
    const voice = voices.get(key) ?? { blocks: [], gainDb: 0 };
    voices.delete(key);
    voices.set(key, voice);
    const [oldest] = voices.keys();
    if (voices.size > VOICES_MAX && oldest !== undefined) voices.delete(oldest);
    return voice;
  };
  return (key, rate) => {
    const voice = voiceOf(`${rate} ${key}`);
    const blocks = createBlocks(rate, (energy) => {
      voice.blocks.push(energy);
      if (voice.blocks.length > BLOCKS_MAX) voice.blocks.shift();
    });
    const limit = createLimiter(rate);
    let gainDb: number | null = voice.blocks.length >= BLOCKS_KNOWN ? voice.gainDb : null;
    return (pcm) => {
      blocks.push(pcm);
      voice.gainDb = gainFor(voice);
      const isKnown = voice.blocks.length >= BLOCKS_KNOWN;
      const stepDb = (SLEW_DB_PER_SECOND * pcm.length) / rate;
      const from: number = gainDb ?? voice.gainDb;
      const to = Math.max(from - stepDb, Math.min(from + stepDb, voice.gainDb));
      gainDb = isKnown ? to : null;
      return limit(pcm, factorOf(from), factorOf(to));
    };
  };
}

function gainFor({ blocks, gainDb }: Voice): number {
  const heard = integrated(blocks);
  if (heard === null) return gainDb;
  return Math.max(-GAIN_DB_MAX, Math.min(GAIN_DB_MAX, TARGET_LUFS - heard));
}

/** Applies a gain that goes from one to the other, and keeps every sample under the peak. */
function createLimiter(rate: number): (pcm: Pcm, from: number, to: number) => Pcm {
  const block = (rate * LIMITER_MS) / 1000;
  const release = LIMITER_MS / RELEASE_MS;
  let reached = 1;
  return (pcm, from, to) => {
    const gainAt = (at: number): number => from + ((to - from) * at) / pcm.length;
    const out = new Int16Array(pcm.length);
    const mayBe = Array.from({ length: Math.ceil(pcm.length / block) }, (_, index) => {
      let peak = 0;
      const end = Math.min((index + 1) * block, pcm.length);
      for (let at = index * block; at < end; at += 1) {
        peak = Math.max(peak, Math.abs(pcm[at] ?? 0) * gainAt(at));
      }
      return peak > PEAK_MAX ? PEAK_MAX / peak : 1;
    });
    for (const [index, most] of mayBe.entries()) {
      const begin = Math.min(reached, most);
      reached = Math.min(begin + release, most, mayBe[index + 1] ?? 1);
      const first = index * block;
      const last = Math.min(first + block, pcm.length);
      for (let at = first; at < last; at += 1) {
        const share = begin + ((reached - begin) * (at - first)) / block;
        out[at] = Math.round((pcm[at] ?? 0) * gainAt(at) * share);
      }
    }
    return out;
  };
}

const keyOf = (code: string, { voice, gender, language }: SynthesisOptions): string =>
  `${code} ${voice ?? gender} ${language}`;

export function levelled(code: string, synthesizer: Synthesizer, level: Level): Synthesizer {
  return {
    name: synthesizer.name,
    open: (options, publish) => {
      const set = level(keyOf(code, options), options.rate);
      return synthesizer.open(options, (event) =>
        publish(event.kind === "audio" ? { ...event, pcm: set(event.pcm) } : event));
    },
  };
}

export function levelledModel(model: SpeechToSpeech, level: Level): SpeechToSpeech {
  return {
    name: model.name,
    open: (options, publish) => {
      const set = level(`${model.name} ${options.voice}`, options.rate);
      return model.open(options, (event) =>
        publish(event.kind === "audio" ? { ...event, pcm: set(event.pcm) } : event));
    },
  };
}
