// Sounds that a caller's line brings while the assistant speaks, each labelled by whether it should
// silence the assistant: stop words and questions in every embedded voice, backchannels in the same
// voices, hums, coughs, laughter, music, televisions and noise, alone and mixed, at several levels.
// All are made here, as after a telephone line (8 kHz, mu-law), and the same in every run.
import { goRound, makeLoop } from "#audio/ambience.ts";
import { mixInto } from "#audio/mix.ts";
import { createLogger } from "#core/logger.ts";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { createEmbeddedVoices, espeakMissing } from "#providers/speech/embedded/embedded-voices.ts";
import { speakWhole } from "#providers/speech/opening.ts";
import type { Pcm } from "#providers/speech/port.ts";

export const SOUND_RATE = 8000;

export interface BargeInSound {
  name: string;
  /** `stop`: it asks for the floor; `other`: the assistant goes on. */
  label: "stop" | "other";
  pcm: Pcm;
}

const FLITE = ["rms", "slt", "kal16", "awb"];
const STOPS = [
  "Stop.", "No, wait.", "Wait a moment please.", "What about Sunday?",
  "Can you tell me the price?",
];
const BACKCHANNELS = ["Uh huh.", "Aha.", "Yeah.", "I see.", "Okay.", "Right."];
const TELEVISION = [
  "The weather tomorrow will be cloudy with some rain in the north and the east of the country.",
  "Our team has won the match in the last minute and everybody went home happy that night.",
  "She said that the new bridge will be open to the public before the end of the summer.",
  "Try it today and you will never want to go back to any other soap for your kitchen.",
  "The market fell again this morning after the bank had raised its rates for the third time.",
];

const rmsOf = (pcm: Pcm): number =>
  Math.sqrt(pcm.reduce((sum, sample) => sum + sample ** 2, 0) / Math.max(1, pcm.length));

/** Scales the sound to a level in dB relative to full scale. */
function atLevel(pcm: Pcm, decibels: number): Pcm {
  const gain = (32_768 * 10 ** (decibels / 20)) / Math.max(1, rmsOf(pcm));
  return pcm.map((sample) => Math.max(-32_768, Math.min(32_767, sample * gain)));
}

/** One on top of the other, for as long as the longer one lasts. */
function mixed(...sounds: Pcm[]): Pcm {
  const all = new Int16Array(Math.max(...sounds.map(({ length }) => length)));
  for (const sound of sounds) mixInto(all.subarray(0, sound.length), sound, 1);
  return all;
}

function createRandom(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0) / 2 ** 31;
}

const lasting = (seconds: number, sampleAt: (second: number) => number): Pcm =>
  Int16Array.from({ length: Math.round(seconds * SOUND_RATE) }, (_, at) =>
    8000 * sampleAt(at / SOUND_RATE));
const sine = (hertz: number, second: number): number => Math.sin(2 * Math.PI * hertz * second);

/** A resonance at `hertz`, as throats and noses have several. */
function resonator(hertz: number, width: number): (sample: number) => number {
  const radius = Math.exp((-Math.PI * width) / SOUND_RATE);
  const turn = 2 * radius * Math.cos((2 * Math.PI * hertz) / SOUND_RATE);
  let [one, two] = [0, 0];
  return (sample) => {
    const next = sample + turn * one - radius ** 2 * two;
    [one, two] = [next, one];
    return next * (1 - radius);
  };
}

/** A throat: pulses of the pitch and breath through these resonances, both over time. */
function throat(seconds: number, args: {
  resonances: number[]; seed: number;
  pitch(second: number): number; voice(second: number): number; breath(second: number): number;
}): Pcm {
  const random = createRandom(args.seed);
  const filters = args.resonances.map((hertz) => resonator(hertz, 90));
  let phase = 0;
  return atLevel(lasting(seconds, (second) => {
    phase += args.pitch(second) / SOUND_RATE;
    const pulse = phase >= 1 ? 20 : 0;
    phase %= 1;
    const source = pulse * args.voice(second) + random() * args.breath(second);
    return filters.reduce((sum, filter, at) => sum + filter(source) / (at + 1), 0);
  }), -20);
}

const burst = (second: number, from: number, lengthS: number): number =>
  second < from || second > from + lengthS ? 0 : Math.sin((Math.PI * (second - from)) / lengthS);

/** Lips closed: the nose alone resonates. */
const hum = (seconds: number, seed: number, pitch: (second: number) => number, gapS = 0): Pcm =>
  throat(seconds, {
    resonances: [250, 1000], seed, pitch, breath: () => 0.05,
    voice: (second) => (gapS === 0 ? burst(second, 0, seconds)
      : burst(second, 0, (seconds - gapS) / 2)
        + burst(second, (seconds + gapS) / 2, (seconds - gapS) / 2)),
  });

const cough = (times: number, seed: number): Pcm => throat(0.45 * times, {
  resonances: [650, 1400, 2600], seed, pitch: () => 130,
  voice: (second) => 0.15 * burst(second % 0.45, 0.12, 0.12),
  breath: (second) => Math.exp(-14 * (second % 0.45)) * (second % 0.45 < 0.32 ? 3 : 0),
});

const laughter = (times: number, seed: number, hertz: number): Pcm => throat(0.22 * times, {
  resonances: [750, 1250, 2500], seed, pitch: (second) => hertz * (1 - 0.15 * second),
  voice: (second) => burst(second % 0.22, 0.05, 0.11),
  breath: (second) => 0.8 * burst(second % 0.22, 0, 0.2),
});

const CHORDS = [[262, 330, 392], [220, 277, 330], [294, 349, 440], [196, 247, 294]];
const MELODY = [392, 440, 494, 523, 587, 523, 494, 440];
const pad = (second: number): number => (CHORDS[Math.floor(second) % 4] ?? [])
  .reduce((sum, hertz) => sum + sine(hertz, second) + 0.5 * sine(2 * hertz, second)
    + 0.3 * sine(3 * hertz, second), 0);

function otherSounds(): Record<string, Pcm> {
  const random = createRandom(7);
  let pink = 0;
  return {
    "hum rising": hum(0.5, 1, (second) => 110 + 60 * second),
    "hum falling": hum(0.6, 2, (second) => 180 - 80 * second),
    "hum twice": hum(0.7, 3, (second) => (second < 0.35 ? 120 : 150), 0.08),
    "hum high": hum(0.7, 4, (second) => 210 + 30 * sine(2, second), 0.1),
    "hum long": hum(1.6, 5, (second) => 140 + 8 * sine(5, second)),
    "cough": cough(1, 11),
    "cough twice": cough(2, 12),
    "cough thrice": cough(3, 13),
    "laughter low": laughter(5, 21, 140),
    "laughter high": laughter(6, 22, 240),
    "chuckle": laughter(3, 23, 170),
    "music struck": lasting(4, (at) => (CHORDS[Math.floor(at * 2) % 4] ?? [])
      .reduce((sum, hertz) => sum + sine(hertz, at) + 0.4 * sine(2 * hertz, at), 0)
      * Math.exp(-3 * (at % 0.5))),
    "music held": lasting(4, pad),
    "music melody": lasting(4, (at) => {
      const hertz = MELODY[Math.floor(at * 3) % MELODY.length] ?? 440;
      return Math.exp(-2 * (at % (1 / 3))) * (sine(hertz, at) + 0.6 * sine(2 * hertz, at)
        + 0.4 * sine(3 * hertz, at) + 0.2 * sine(4 * hertz, at)) + 0.3 * pad(at);
    }),
    "music drums": lasting(4, (at) => 0.5 * pad(at)
      + (at % 0.5 < 0.08 ? 2 * random() * Math.exp(-40 * (at % 0.5)) : 0)),
    "white noise": lasting(4, () => random()),
    "pink noise": lasting(4, () => (pink = 0.95 * pink + 0.2 * random())),
    "mains": lasting(4, (at) => sine(50, at) + 0.5 * sine(150, at) + 0.3 * sine(250, at)),
    "cafe": goRound(makeLoop("cafe", SOUND_RATE)).next(4 * SOUND_RATE),
    "crowded room": goRound(makeLoop("crowded_room", SOUND_RATE)).next(4 * SOUND_RATE),
    "dial tone": lasting(2, (at) => sine(425, at)),
    "keys": lasting(2, (at) => (at % 0.4 < 0.15 ? sine(770, at) + sine(1336, at) : 0)),
    "typing": lasting(3, (at) => (at % 0.17 < 0.008 ? random() : 0)),
    "dog": throat(0.9, {
      resonances: [500, 1100, 1900], seed: 31, pitch: (second) => 420 - 300 * (second % 0.45),
      voice: (second) => burst(second % 0.45, 0, 0.18),
      breath: (second) => 0.6 * burst(second % 0.45, 0, 0.2),
    }),
  };
}

type Speak = (voice: string, text: string) => Promise<Pcm>;

function createSpeak(): { speak: Speak; voices: string[]; close(): Promise<void> } {
  const { flite, espeakNg, close } = createEmbeddedVoices(createLogger("silent"));
  const voices = espeakMissing() === null ? [...FLITE, "espeak"] : FLITE;
  const speak: Speak = (voice, text) => new Promise((resolve, reject) => {
    speakWhole(voice === "espeak" ? espeakNg : flite, {
      rate: SOUND_RATE, voice, gender: "male", language: "en", speed: 1, stability: 1,
      similarity: 1, hasEmotion: false,
    }, text, (pcm) => (pcm ? resolve(pcm) : reject(new Error(`${voice} is mute`))));
  });
  return { speak, voices, close };
}

/** Several voices at a time from across the room, four seconds of them. */
async function television(speak: Speak, voices: string[], first: number): Promise<Pcm> {
  const spoken = await Promise.all(voices.map((voice, at) =>
    speak(voice, TELEVISION[(at + first) % TELEVISION.length] ?? "")));
  return mixed(...spoken.map((pcm) => atLevel(pcm, -24))).subarray(0, 4 * SOUND_RATE);
}

/** The sound after mu-law. */
function overTheLine(pcm: Pcm): Pcm {
  return Int16Array.from(encodeG711(LAWS.PCMU, pcm), (code) => LAWS.PCMU.samples[code] ?? 0);
}

export async function createBargeInSounds(): Promise<BargeInSound[]> {
  const { speak, voices, close } = createSpeak();
  const sounds: BargeInSound[] = [];
  const add = (label: BargeInSound["label"], name: string, pcm: Pcm): void =>
    void sounds.push({ label, name, pcm: overTheLine(pcm) });
  const noise = goRound(makeLoop("crowded_room", SOUND_RATE)).next(4 * SOUND_RATE);
  for (const voice of voices) {
    for (const text of STOPS) add("stop", `${voice}: ${text}`, atLevel(await speak(voice, text), -20));
    for (const text of BACKCHANNELS) {
      add("other", `${voice}: ${text}`, atLevel(await speak(voice, text), -20));
    }
    const quiet = atLevel(await speak(voice, "What about Sunday?"), -26);
    add("stop", `${voice}, quiet: What about Sunday?`, quiet);
    const noisy = atLevel(await speak(voice, "Can you tell me the price?"), -20);
    add("stop", `${voice}, in noise: Can you tell me the price?`,
      mixed(noisy, atLevel(noise.subarray(0, noisy.length), -35)));
  }
  const others = otherSounds();
  for (const [name, pcm] of Object.entries(others)) add("other", name, atLevel(pcm, -20));
  for (const name of ["hum twice", "cough twice", "laughter low", "music melody"]) {
    const pcm = others[name] ?? new Int16Array(0);
    add("other", `${name}, quiet`, atLevel(pcm, -28));
    add("other", `${name}, in noise`,
      mixed(atLevel(pcm, -20), atLevel(noise.subarray(0, pcm.length), -32)));
  }
  for (let first = 0; first < 3; first += 1) {
    const far = await television(speak, voices, first);
    add("other", `television ${first}`, atLevel(far, -21 - 4 * first));
  }
  await close();
  return sounds;
}
