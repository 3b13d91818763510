// Compares voice activity detectors: speech of all embedded voices, clean, at several levels and
// under noise, and sounds that are no speech, all as a telephone line brings them (8 kHz, mu-law).
// For WebRTC's detector, Silero, and Silero gated by WebRTC's: the share of speech that is found,
// the share of everything else that is taken for it, how late a beginning is found (as a turn
// confirms it: `CONFIRM_MS` in a row), and what a second of sound costs.
import { goRound, makeLoop } from "#audio/ambience.ts";
import { mixInto } from "#audio/mix.ts";
import { createLogger } from "#core/logger.ts";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { createEmbeddedVoices, espeakMissing } from "#providers/speech/embedded/embedded-voices.ts";
import { createFvad } from "#providers/speech/embedded/fvad.ts";
import { createSilero } from "#providers/speech/embedded/silero.ts";
import { speakWhole } from "#providers/speech/opening.ts";
import type { Pcm, Vad } from "#providers/speech/port.ts";
import { percentile, print, printResult } from "./report.ts";

const RATE = 8000;
/** Labels and detectors' answers are compared at this resolution. */
const GRAIN_MS = 10;
const GRAIN = (RATE * GRAIN_MS) / 1000;
const GAP_MS = 1200;
/** Where the clean voice is at most this far below its own level, it is speech. */
const SPEECH_DB = -30;
/** A pause this short within speech is speech. */
const PAUSE_MS = 150;
/** How long a detector may go on saying speech after its end before it is wrong. */
const HANG_MS = 200;
const CONFIRM_MS = 96;
/** How long Silero's answer counts after WebRTC's last yes. */
const GATE_MS = 200;
const PROBABILITY = 0.5;
const NOISE_S = 6;

const SENTENCES = [
  "I would like to book a table for two at seven tomorrow.", "What time do you open on Saturday?",
  "Stop.", "Yes, please do.", "Can you tell me how much it costs?", "No, wait a moment.",
];
const FLITE = ["rms", "slt", "kal16", "awb"];

interface Sound {
  kind: string;
  pcm: Pcm;
  /** Whether each grain is speech; null: it does not count. */
  labels: (boolean | null)[];
}

const rmsOf = (pcm: Pcm): number =>
  Math.sqrt(pcm.reduce((sum, sample) => sum + sample ** 2, 0) / Math.max(1, pcm.length));

/** Scales the sound to a level in dB relative to full scale. */
function atLevel(pcm: Pcm, decibels: number): Pcm {
  const gain = (32_768 * 10 ** (decibels / 20)) / Math.max(1, rmsOf(pcm));
  return pcm.map((sample) => Math.max(-32_768, Math.min(32_767, sample * gain)));
}

/** Pseudo-random numbers, the same in every run. */
function createRandom(): () => number {
  let state = 1;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0) / 2 ** 31;
}

const lasting = (seconds: number, sampleAt: (second: number) => number): Pcm =>
  Int16Array.from({ length: seconds * RATE }, (_, at) => 8000 * sampleAt(at / RATE));
const sine = (hertz: number, second: number): number => Math.sin(2 * Math.PI * hertz * second);

const random = createRandom();
let pink = 0;
const NOISES: Record<string, Pcm> = {
  white: lasting(NOISE_S, () => random()),
  pink: lasting(NOISE_S, () => (pink = 0.95 * pink + 0.2 * random())),
  hum: lasting(NOISE_S, (at) => sine(50, at) + 0.5 * sine(150, at) + 0.3 * sine(250, at)),
  cafe: goRound(makeLoop("cafe", RATE)).next(NOISE_S * RATE),
  crowded_room: goRound(makeLoop("crowded_room", RATE)).next(NOISE_S * RATE),
  city: goRound(makeLoop("city", RATE)).next(NOISE_S * RATE),
};
const CHORDS = [[262, 330, 392], [220, 277, 330], [294, 349, 440], [196, 247, 294]];
const OTHERS: Record<string, Pcm> = {
  ...NOISES,
  dial_tone: lasting(NOISE_S, (at) => sine(425, at)),
  keys: lasting(NOISE_S, (at) => (at % 0.4 < 0.15 ? sine(770, at) + sine(1336, at) : 0)),
  music: lasting(NOISE_S, (at) => (CHORDS[Math.floor(at * 2) % 4] ?? [])
    .reduce((sum, hertz) => sum + sine(hertz, at) + 0.4 * sine(2 * hertz, at), 0)
    * Math.exp(-3 * (at % 0.5))),
  typing: lasting(NOISE_S, (at) => (at % 0.17 < 0.008 ? random() : 0)),
  coughs: lasting(NOISE_S, (at) => (at % 1.5 < 0.3 ? random() * Math.exp(-9 * (at % 1.5)) : 0)),
};

const voices = createEmbeddedVoices(createLogger("silent"));

function speak(engine: "flite" | "espeakNg", voice: string, text: string): Promise<Pcm> {
  return new Promise((resolve, reject) => {
    speakWhole(voices[engine], {
      rate: RATE, voice: engine === "flite" ? voice : null, gender: "male", language: "en",
      speed: 1, stability: 1, similarity: 1, hasEmotion: false,
    }, text, (pcm) => (pcm ? resolve(pcm) : reject(new Error(`${voice} is mute`))));
  });
}

/** Where speech is in a clean sound, pauses between words included. */
function speechIn(pcm: Pcm): boolean[] {
  const floor = rmsOf(pcm) * 10 ** (SPEECH_DB / 20);
  const loud = Array.from({ length: Math.floor(pcm.length / GRAIN) }, (_, at) =>
    rmsOf(pcm.subarray(at * GRAIN, (at + 1) * GRAIN)) > floor);
  return loud.map((is, at) => is
    || (loud.slice(Math.max(0, at - PAUSE_MS / GRAIN_MS), at).some(Boolean)
      && loud.slice(at, at + PAUSE_MS / GRAIN_MS).some(Boolean)));
}

/** All of a voice's sentences with silence between them. */
async function talk(engine: "flite" | "espeakNg", voice: string): Promise<Sound> {
  const gap = new Int16Array((RATE * GAP_MS) / 1000);
  const samples: number[] = [...gap];
  for (const text of SENTENCES) {
    const pcm = await speak(engine, voice, text);
    samples.push(...pcm, ...new Int16Array(GRAIN - (pcm.length % GRAIN)), ...gap);
  }
  const pcm = Int16Array.from(samples);
  const speech = speechIn(pcm);
  const labels = speech.map((is, at) =>
    is || (speech.slice(Math.max(0, at - HANG_MS / GRAIN_MS), at).some(Boolean) ? null : false));
  return { kind: voice, pcm, labels };
}

function under(sound: Sound, kind: string, levelDb: number, noise: Pcm | null, snrDb = 0): Sound {
  const pcm = atLevel(sound.pcm, levelDb);
  if (noise) {
    const quiet = atLevel(noise, levelDb - snrDb);
    const all = pcm.map((_, at) => quiet[at % quiet.length] ?? 0);
    mixInto(pcm, all, 1);
  }
  return { ...sound, kind, pcm };
}

/** The sound after a telephone line. */
function overLine(pcm: Pcm): Pcm {
  return Int16Array.from(encodeG711(LAWS.PCMU, pcm), (code) => LAWS.PCMU.samples[code] ?? 0);
}

async function detect(vad: Vad, pcm: Pcm): Promise<boolean[]> {
  const samples = vad.frameSamples(RATE);
  const heard: boolean[] = [];
  let told = 0;
  const stream = vad.open(RATE, (probability) => {
    told += samples;
    while (heard.length < Math.floor(told / GRAIN)) heard.push(probability >= PROBABILITY);
  });
  for (let at = 0; at + samples <= pcm.length; at += samples) {
    stream.push(pcm.subarray(at, at + samples));
    await Promise.resolve();
  }
  stream.close();
  return heard;
}

/** The second detector's answers where the first has heard something lately. */
const gated = (first: boolean[], second: boolean[]): boolean[] => second.map((is, at) =>
  is && first.slice(Math.max(0, at - GATE_MS / GRAIN_MS), at + 1).some(Boolean));

/** The time from each beginning of speech until it is confirmed; null: it never is. */
function onsetsOf(labels: Sound["labels"], heard: boolean[]): (number | null)[] {
  const confirm = CONFIRM_MS / GRAIN_MS;
  return labels.flatMap((is, at) => {
    if (!is || labels[at - 1] !== false) return [];
    const over = labels.findIndex((later, index) => index > at && later === false);
    const end = over < 0 ? labels.length : over;
    for (let last = at; last < end; last += 1) {
      const run = heard.slice(Math.max(0, last - confirm + 1), last + 1);
      if (run.length >= confirm && run.every(Boolean)) return [(last + 1 - at) * GRAIN_MS];
    }
    return [null];
  });
}

const share = (sounds: { labels: Sound["labels"]; heard: boolean[] }[], label: boolean): number => {
  const said = sounds.flatMap(({ labels, heard }) =>
    heard.filter((_, at) => labels[at] === label));
  return Number((100 * said.filter(Boolean).length / Math.max(1, said.length)).toFixed(1));
};

// The thread of the voices does not keep the process alive.
const alive = setInterval(() => undefined, 1000);
const talks = await Promise.all([
  ...FLITE.map((voice) => talk("flite", voice)),
  ...(espeakMissing() === null ? [talk("espeakNg", "espeak-ng")] : []),
]);
await voices.close();
clearInterval(alive);
const sounds: Sound[] = [
  ...talks.flatMap((one) => [-20, -30, -40].map((level) => under(one, `clean ${level}`, level, null))),
  ...talks.flatMap((one) => [20, 10, 5].flatMap((snr) => Object.values(NOISES).map((noise) =>
    under(one, `noise ${snr} dB`, -24, noise, snr)))),
  ...Object.entries(OTHERS).flatMap(([kind, pcm]) => [-24, -36, -48].map((level): Sound => ({
    kind, pcm: atLevel(pcm, level),
    labels: Array.from({ length: Math.floor(pcm.length / GRAIN) }, () => false),
  }))),
].map((sound) => ({ ...sound, pcm: overLine(sound.pcm) }));

const fvad = await createFvad();
const silero = createSilero();
const seconds = sounds.reduce((sum, { pcm }) => sum + pcm.length / RATE, 0);
async function hearAll(vad: Vad): Promise<{ heard: boolean[][]; microsPerSecond: number }> {
  const startedMs = performance.now();
  const heard: boolean[][] = [];
  for (const { pcm } of sounds) heard.push(await detect(vad, pcm));
  return { heard, microsPerSecond: Math.round((performance.now() - startedMs) * 1000 / seconds) };
}
const first = await hearAll(fvad);
const second = silero && await hearAll(silero);
const detectors = {
  webrtc: first,
  ...(second ? {
    silero: second,
    silero_where_webrtc: {
      heard: second.heard.map((one, at) => gated(first.heard[at] ?? [], one)),
      microsPerSecond: null,
    },
  } : {}),
};
const kinds = [...new Set(sounds.map(({ kind }) => kind))];
const figures = Object.entries(detectors).map(([name, { heard, microsPerSecond }]) => {
  const all = sounds.map((sound, at) => ({ ...sound, heard: heard[at] ?? [] }));
  const of = (kind: string) => all.filter((one) => one.kind === kind);
  for (const kind of kinds) {
    const onsets = of(kind).flatMap(({ labels, heard: one }) => onsetsOf(labels, one));
    const found = onsets.filter((ms) => ms !== null);
    print(`${name}, ${kind}: false ${share(of(kind), false)} %` + (onsets.length === 0 ? ""
      : `, found ${share(of(kind), true)} %, onset p50 ${percentile(found, 50)} p95 `
        + `${percentile(found, 95)} ms, ${onsets.length - found.length} missed`));
  }
  const isOther = ({ kind }: Sound): boolean => kind in OTHERS;
  const spoken = all.filter((one) => !isOther(one));
  const onsets = spoken.flatMap(({ labels, heard: one }) => onsetsOf(labels, one));
  const found = onsets.filter((ms) => ms !== null);
  return [name, {
    found_percent: share(spoken, true),
    false_in_pauses_percent: share(spoken, false),
    false_in_other_sounds_percent: share(all.filter(isOther), false),
    onset_p50_ms: percentile(found, 50), onset_p95_ms: percentile(found, 95),
    missed: onsets.length - found.length, beginnings: onsets.length,
    micros_per_second: microsPerSecond,
  }];
});
printResult("voice-activity", { seconds: Math.round(seconds), ...Object.fromEntries(figures) });
