// How well and how fast the demo recogniser hears: word errors over 20 sentences in each of the
// embedded English voices, at 16 kHz as in web calls and at 8 kHz through µ-law as on a telephone;
// what a second of speech costs of a core; and, with as many talkers at once as it serves, how soon
// after their last sound they have their words.
import { setTimeout as delay } from "node:timers/promises";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { createPocketSphinx } from "#providers/speech/embedded/pocketsphinx.ts";
import { openSynthesizers, speakWhole } from "#providers/speech/opening.ts";
import type { TranscriptEvent } from "#providers/speech/port.ts";
import { wordErrors, wordsOf } from "#support/calls/heard-words.ts";
import { createReceived } from "#support/received.ts";
import { NOTHING_SET_UP } from "#support/vendors/nothing-set-up.ts";
import { percentile, print, printResult } from "./report.ts";

const SENTENCES = [
  "I would like to book a table for two at seven tomorrow.",
  "What time do you open on Saturday?",
  "Can you tell me how much it costs?",
  "Please send me the address of your office.",
  "I want to speak with a human being.",
  "Thank you very much for your help.",
  "I need to change my appointment to next Monday morning.",
  "Do you have any rooms left for the weekend?",
  "My order has not arrived and I am not happy about it.",
  "How long does the delivery usually take?",
  "I would like to cancel my subscription at the end of the month.",
  "Could you please repeat that a little more slowly?",
  "The number on the invoice is one two three four.",
  "Is there a discount for students?",
  "My name is Peter and I am calling about the car.",
  "No, that is not what I meant.",
  "Where can I park when I come to see you?",
  "I have lost my password and cannot log in.",
  "Please call me back this afternoon after three.",
  "Yes, that sounds good to me.",
];
const VOICES = ["rms", "kal16", "slt", "awb"];
const RATES = [16_000, 8000];
const FRAMES_PER_SECOND = 50;
/** As many as one thread serves. */
const TALKERS = 6;
const TALKER_SENTENCES = 5;

const log = createLogger("silent");
const recogniser = createPocketSphinx(log);
const openVoice = await openSynthesizers(NOTHING_SET_UP, { system: createSystem(), log });
const flite = openVoice("flite");
// The threads of the engines do not keep the process alive.
const alive = setInterval(() => undefined, 1000);

const spoken = (text: string, voice: string, rate: number): Promise<Int16Array> =>
  new Promise((resolve, reject) => speakWhole(flite, {
    rate, voice, gender: "male", language: "en", speed: 1, stability: 1, similarity: 1,
    hasEmotion: false,
  }, text, (pcm) => (pcm ? resolve(pcm) : reject(new Error(`${voice} does not speak`)))));

/** The sound after a telephone line at 8 kHz. */
function throughMulaw(pcm: Int16Array): Int16Array {
  return Int16Array.from(encodeG711(LAWS.PCMU, pcm), (code) => LAWS.PCMU.samples[code] ?? 0);
}

function listen(rate: number) {
  const received = createReceived<TranscriptEvent>();
  const stream = recogniser.open({ rate, language: "en", languages: [], hints: [] }, received.receive);
  let finals = 0;
  return {
    stream,
    final: async (): Promise<string> => {
      stream.finalize();
      return (await received.event("final", finals++)).text;
    },
  };
}

interface Heard {
  voice: string;
  rate: number;
  errorPercent: number;
  cpuPerSecond: number;
}

/** Recognises sentence by sentence as fast as possible, with one decoder, as in one call. */
async function hear(voice: string, rate: number): Promise<Heard> {
  const caller = listen(rate);
  let [wrong, said, seconds, cpuMicros] = [0, 0, 0, 0];
  for (const sentence of SENTENCES) {
    const pcm = await spoken(sentence, voice, rate);
    const audio = rate === 8000 ? throughMulaw(pcm) : pcm;
    const before = process.cpuUsage();
    const frame = rate / FRAMES_PER_SECOND;
    for (let at = 0; at < audio.length; at += frame) {
      caller.stream.write(audio.subarray(at, at + frame));
    }
    const words = wordsOf(await caller.final());
    const { user, system } = process.cpuUsage(before);
    cpuMicros += user + system;
    seconds += audio.length / rate;
    said += wordsOf(sentence).length;
    wrong += wordErrors(wordsOf(sentence), words);
    if (process.env.BENCH_TEXT) print(`${voice} ${rate}: ${words.join(" ")}`);
  }
  caller.stream.close();
  return {
    voice, rate, errorPercent: rounded((100 * wrong) / said),
    cpuPerSecond: rounded(cpuMicros / 1e6 / seconds),
  };
}

/** Talks in real time; returns how long after each sentence its words were there. */
async function talk(lines: Int16Array[], rate: number, afterMs: number): Promise<number[]> {
  await delay(afterMs);
  const caller = listen(rate);
  const waits: number[] = [];
  const frame = rate / FRAMES_PER_SECOND;
  for (const pcm of lines) {
    const startedMs = performance.now();
    for (let at = 0; at < pcm.length; at += frame) {
      const dueMs = startedMs + ((at + frame) / rate) * 1000;
      await delay(Math.max(0, dueMs - performance.now()));
      caller.stream.write(pcm.subarray(at, at + frame));
    }
    const endedMs = performance.now();
    await caller.final();
    waits.push(performance.now() - endedMs);
  }
  caller.stream.close();
  return waits;
}

const rounded = (value: number): number => Number(value.toFixed(2));

const openedMs = performance.now();
const first = listen(RATES[0]!);
await first.final();
const loadMs = Math.round(performance.now() - openedMs);
first.stream.close();
const heard: Heard[] = [];
for (const rate of RATES) {
  for (const voice of VOICES) {
    heard.push(await hear(voice, rate));
    print(JSON.stringify(heard.at(-1)));
  }
}
const wide = RATES[0]!;
const lines = await Promise.all(SENTENCES.slice(0, TALKER_SENTENCES)
  .map((sentence) => spoken(sentence, VOICES[0]!, wide)));
const waits = (await Promise.all(
  Array.from({ length: TALKERS }, (_, number) => talk(lines, wide, number * 300)))).flat();
clearInterval(alive);
const mean = (rate: number, figure: "errorPercent" | "cpuPerSecond"): number => {
  const values = heard.filter((one) => one.rate === rate).map((one) => one[figure]);
  return rounded(values.reduce((sum, value) => sum + value, 0) / values.length);
};
printResult("hearing", {
  recogniser: recogniser.name, sentences: SENTENCES.length, load_ms: loadMs,
  embedded_16k: mean(16_000, "errorPercent"), embedded_8k: mean(8000, "errorPercent"),
  word_errors_percent: Object.fromEntries(heard.map(({ voice, rate, errorPercent }) =>
    [`${voice}_${rate / 1000}k`, errorPercent])),
  cpu_per_second: mean(16_000, "cpuPerSecond"),
  talkers: TALKERS, final_p50_ms: Math.round(percentile(waits, 50)),
  final_max_ms: Math.round(Math.max(...waits)),
  resident_mib: Math.round(process.memoryUsage().rss / 2 ** 20),
});
process.exit(0);
