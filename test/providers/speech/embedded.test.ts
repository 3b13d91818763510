// The embedded voices and the demo recogniser as they are installed: Flite, eSpeak NG and
// PocketSphinx, each in its own thread.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { ProviderError } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import {
  createEmbeddedVoices, espeakMissing, type SpokenText, type TextToSpeak,
} from "#providers/speech/embedded/embedded-voices.ts";
import { createPocketSphinx } from "#providers/speech/embedded/pocketsphinx.ts";
import type {
  SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer, TranscriptEvent,
} from "#providers/speech/port.ts";
import { wordErrors, wordsOf } from "#support/calls/heard-words.ts";
import { createReceived, type Received } from "#support/received.ts";

const log = createLogger("silent");
const voices = createEmbeddedVoices(log);
// The threads of the engines keep no process alive by themselves.
const alive = setInterval(() => undefined, 1000);
after(async () => {
  clearInterval(alive);
  await voices.close();
});

const OPTIONS: SynthesisOptions = {
  rate: 16_000, voice: null, gender: "female", language: "en", speed: 1, stability: 1, similarity: 1, hasEmotion: false,
};
const LINE = "I would like to book a table for two at seven tomorrow. ";

interface Speaking {
  received: Received<SynthesisEvent>;
  stream: SynthesisStream;
}

function open(engine: Synthesizer, options: Partial<SynthesisOptions> = {}): Speaking {
  const received = createReceived<SynthesisEvent>();
  return { received, stream: engine.open({ ...OPTIONS, ...options }, received.receive) };
}

/** An utterance to its end. */
async function speak(
  engine: Synthesizer, texts: string[], options: Partial<SynthesisOptions> = {},
): Promise<SynthesisEvent[]> {
  const { received, stream } = open(engine, options);
  for (const text of texts) stream.write(text);
  stream.end();
  await Promise.race([
    received.event("done"), received.event("failed").then(({ error }) => Promise.reject(error)),
  ]);
  return received.events;
}

const pcmOf = (events: SynthesisEvent[]): Int16Array => Int16Array.from(
  events.flatMap((event) => (event.kind === "audio" ? [...event.pcm] : [])));
const charsOf = (events: SynthesisEvent[]): number[] =>
  events.flatMap((event) => (event.kind === "spoken" ? [event.chars] : []));

test("[SP1] the embedded voice sounds the same at every rate and starts at once", async () => {
  const seconds: number[] = [];
  for (const rate of [8000, 16_000, 24_000]) {
    const pcm = pcmOf(await speak(voices.flite, [LINE], { rate }));
    seconds.push(pcm.length / rate);
    const loud = pcm.findIndex((sample) => Math.abs(sample) > 500);
    assert.ok(loud / rate < 0.04, `${rate}: silent for ${loud / rate} s`);
    const last = pcm.findLastIndex((sample) => Math.abs(sample) > 500);
    assert.ok(pcm.length - last < 0.25 * rate, `${rate}: silent for ${pcm.length - last} samples`);
  }
  assert.ok(Math.max(...seconds) / Math.min(...seconds) < 1.01, `${seconds}`);
  assert.ok(seconds[0]! > 2 && seconds[0]! < 5, `${seconds}`);
});

test("[SP2] spoken marks follow the audio of each text, reach the end of all, and done comes once, last", async () => {
  const texts = ["One. ", "", "Two, three. ", "...", "Four."];
  const events = await speak(voices.flite, texts);
  assert.deepEqual(charsOf(events), [5, 5, 17, 20, 25]);
  const kinds = events.map(({ kind }) => kind);
  assert.deepEqual(kinds.slice(0, 2), ["audio", "spoken"]);
  assert.deepEqual(kinds.slice(-2), ["spoken", "done"]);
  assert.equal(kinds.indexOf("done"), kinds.length - 1);
  // Texts that come later are of the same utterance.
  const { received, stream } = open(voices.flite);
  stream.write("One. ");
  await received.event("spoken");
  stream.write("Two.");
  await received.event("spoken", 1);
  assert.ok(!received.kinds().includes("done"));
  stream.end();
  await received.event("done");
  assert.deepEqual(charsOf(received.events), [5, 9]);
  // Nothing to say is said at once.
  assert.deepEqual((await speak(voices.flite, [])).map(({ kind }) => kind), ["done"]);
});

test("[SP3] a cancelled utterance sends no more events, at whatever point; the others continue", async () => {
  const [begun, queued, other] = [open(voices.flite), open(voices.flite), open(voices.flite)];
  begun.stream.write("One.");
  begun.stream.write(LINE);
  queued.stream.write(LINE);
  other.stream.write("Two.");
  await begun.received.event("spoken");
  const before = begun.received.events.length;
  begun.stream.cancel();
  begun.stream.cancel();
  queued.stream.cancel();
  other.stream.end();
  // Behind what was cancelled in the queue of the one thread.
  await other.received.event("done");
  await speak(voices.flite, ["Three."]);
  assert.equal(begun.received.events.length, before);
  assert.deepEqual(queued.received.events, []);
  assert.deepEqual(charsOf(other.received.events), [4]);
});

const ENGINES: [Synthesizer, string | false][] = [
  [voices.flite, false], [voices.espeakNg, espeakMissing() ?? false],
];

for (const [engine, skip] of ENGINES) {
  test(`[SP4] ${engine.name} follows the speed setting`, { skip }, async () => {
    const lengths: number[] = [];
    for (const speed of [0.7, 1, 1.2]) {
      lengths.push(pcmOf(await speak(engine, [LINE], { speed })).length);
    }
    const [slow, plain, fast] = lengths as [number, number, number];
    // Engines stretch the sounds, less the pauses.
    assert.ok(Math.abs(slow / plain - 1 / 0.7) < 0.08, `${slow / plain}`);
    assert.ok(Math.abs(fast / plain - 1 / 1.2) < 0.04, `${fast / plain}`);
  });
}

test("[OP293] the embedded voice speaks without a folder for temporary files", async () => {
  const { TMPDIR } = process.env;
  process.env.TMPDIR = "/nowhere";
  try {
    const without = createEmbeddedVoices(log);
    assert.ok(pcmOf(await speak(without.flite, [LINE])).length > OPTIONS.rate);
    await without.close();
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
});

test("[SP4] Flite has different voices of both genders; an unknown one becomes its default", async () => {
  const sounds = new Map<string, Int16Array>();
  const spoken = async (voice: string | null, gender: "male" | "female"): Promise<Int16Array> =>
    pcmOf(await speak(voices.flite, ["Hello."], { voice, gender }));
  for (const voice of ["slt", "rms", "kal", "kal16", "awb"]) {
    const pcm = await spoken(voice, "male");
    for (const [name, other] of sounds) assert.notDeepEqual(pcm, other, `${voice} and ${name}`);
    sounds.set(voice, pcm);
  }
  assert.deepEqual(await spoken(null, "female"), sounds.get("slt"));
  assert.deepEqual(await spoken("a vendor's", "male"), sounds.get("rms"));
});

test("[SP5] eSpeak NG speaks other languages and marks every word", { skip: espeakMissing() ?? false }, async () => {
  const texts: [string, string, string[]][] = [
    ["de", "Guten Tag, was darf es Schönes sein? ", ["Tag", "was", "darf", "Schönes", "sein"]],
    ["fr", "Bonjour, où est la gare? ", ["où", "est", "la", "gare"]],
    ["zh", "你好,我能帮你什么吗?", ["我", "帮", "什么"]],
  ];
  for (const [language, text, beginnings] of texts) {
    // The second time everything counts from the end of the first.
    const events = await speak(voices.espeakNg, [text, text], { language });
    const chars = charsOf(events);
    assert.ok(chars.every((count, at) => at === 0 || count >= chars[at - 1]!), `${chars}`);
    assert.equal(chars.at(-1), 2 * text.length);
    // Each mark is told after the audio before it, where a word begins.
    for (const word of beginnings) {
      const at = text.indexOf(word);
      assert.ok(chars.includes(at), `${language}, ${word}: ${chars}`);
      assert.ok(chars.includes(text.length + at), `${language}, ${word}: ${chars}`);
    }
    assert.ok(new Set(chars).size >= 2 * beginnings.length, `${chars}`);
    const kinds = events.map(({ kind }) => kind);
    assert.ok(kinds.slice(0, -1).every((kind, at) => kind === (at % 2 === 0 ? "audio" : "spoken")));
    const pcm = pcmOf(events);
    assert.ok(pcm.length / OPTIONS.rate > 2 && pcm.length / OPTIONS.rate < 12);
    assert.ok(Math.max(...pcm) > 3000);
  }
});

test("[SP5] a language eSpeak NG lacks fails its utterance once, and no other", { skip: espeakMissing() ?? false }, async () => {
  const { received, stream } = open(voices.espeakNg, { language: "xx" });
  stream.write("Hello. ");
  stream.write("Hello.");
  stream.end();
  const { error } = await received.event("failed");
  assert.ok(error instanceof ProviderError);
  assert.match(error.message, /no voice for xx/);
  assert.deepEqual(charsOf(await speak(voices.espeakNg, ["Hello."])), [6]);
  assert.deepEqual(received.kinds(), ["failed"]);
});

/** The first load of the package fails, as with too many open files. */
const FAILING_ONCE = `data:text/javascript,
  import { registerHooks } from "node:module";
  let tries = 0;
  registerHooks({ resolve: (name, context, next) => {
    if (name.includes("espeak-ng") && (tries += 1) === 1) throw new Error("EMFILE");
    return next(name, context);
  } });`;

test("[SP374] eSpeak NG that could not be loaded once is loaded for the next text", { skip: espeakMissing() ?? false }, async () => {
  const worker = new Worker(workerFile("synthesize"), { execArgv: ["--import", FAILING_ONCE] });
  const errors = [];
  for (let stream = 1; stream <= 2; stream += 1) {
    worker.postMessage({
      stream, number: 0, engine: "espeak-ng", voice: "de", speed: 1, text: "Guten Tag.", rate: 8000,
    } satisfies TextToSpeak);
    const [spoken] = (await once(worker, "message")) as [SpokenText];
    errors.push(spoken.error);
  }
  assert.deepEqual(errors, ["EMFILE", null]);
  await worker.terminate();
});

const SENTENCES = [
  "I would like to book a table for two at seven tomorrow.", "What time do you open on Saturday?",
  "Can you tell me how much it costs?", "Please send me the address of your office.",
  "I want to speak with a human being.", "Thank you very much for your help.",
];

const recogniser = createPocketSphinx(log);
after(() => recogniser.close());
const ENGLISH = { language: "en", languages: [], hints: [] };

/** The share of words it may get wrong at each rate; 6 % and 8 % were seen. */
for (const [rate, bound] of [[16_000, 0.14], [8000, 0.18]] as const) {
  test(`[SP6] the demo recogniser understands the voice at ${rate}, piece by piece`, async () => {
    const received = createReceived<TranscriptEvent>();
    const stream = recogniser.open({ rate, ...ENGLISH }, received.receive);
    let [wrong, said] = [0, 0];
    const heard: string[] = [];
    for (const [number, sentence] of SENTENCES.entries()) {
      const pcm = pcmOf(await speak(voices.flite, [sentence], { rate, voice: "rms" }));
      const before = received.events.length;
      // As a call writes: 20 ms at a time.
      const frame = rate / 50;
      for (let at = 0; at < pcm.length; at += frame) stream.write(pcm.subarray(at, at + frame));
      stream.finalize();
      const { text } = await received.event("final", number);
      const kinds = received.kinds().slice(before);
      assert.ok(kinds.length > 3 && kinds.indexOf("final") === kinds.length - 1, `${kinds}`);
      wrong += wordErrors(wordsOf(sentence), wordsOf(text));
      said += wordsOf(sentence).length;
      heard.push(text);
    }
    assert.ok(wrong / said <= bound, `${wrong} of ${said}: ${heard.join(" | ")}`);
    // Silence is no words, and nothing at all is no reason to wait.
    stream.write(new Int16Array(rate));
    stream.finalize();
    assert.equal((await received.event("final", SENTENCES.length)).text, "");
    stream.finalize();
    assert.equal((await received.event("final", SENTENCES.length + 1)).text, "");
    stream.close();
    stream.close();
  });
}

test("[SP6] of seven simultaneous speakers the seventh is refused until one of the six has gone", async () => {
  const rate = 16_000;
  const listen = () => {
    const received = createReceived<TranscriptEvent>();
    return { received, stream: recogniser.open({ rate, ...ENGLISH }, received.receive) };
  };
  const six = Array.from({ length: 6 }, listen);
  const seventh = listen();
  assert.deepEqual(seventh.received.events, []);
  const { error } = await seventh.received.event("failed");
  assert.ok(error instanceof ProviderError && error.retryable);
  assert.match(error.message, /busy/);
  const pcm = pcmOf(await speak(voices.flite, [SENTENCES[3]!], { voice: "rms" }));
  seventh.stream.write(pcm);
  seventh.stream.finalize();
  seventh.stream.close();
  const [first, second, ...others] = six;
  // Each hears its own; one that has closed hears no more.
  first!.stream.write(pcm);
  first!.stream.finalize();
  second!.stream.write(pcm);
  second!.stream.finalize();
  second!.stream.close();
  for (const { stream } of others) stream.finalize();
  assert.match((await first!.received.event("final")).text, /address of your office/);
  for (const { received } of others) assert.equal((await received.event("final")).text, "");
  const eighth = listen();
  eighth.stream.finalize();
  assert.equal((await eighth.received.event("final")).text, "");
  assert.deepEqual(second!.received.events, []);
  assert.deepEqual(seventh.received.kinds(), ["failed"]);
  for (const { stream } of [...six, eighth]) stream.close();
});

test("[SP9] when the thread of the voices ends, open streams fail once and the next one works", async () => {
  const [begun, waiting] = [open(voices.flite), open(voices.flite)];
  // More than can be spoken before the thread has ended.
  for (let count = 0; count < 100; count += 1) begun.stream.write(LINE);
  begun.stream.end();
  waiting.stream.write("One.");
  await begun.received.event("spoken");
  await voices.close();
  const { error } = await begun.received.event("failed");
  assert.ok(error instanceof ProviderError);
  assert.match(error.message, /has stopped/);
  await waiting.received.event("failed");
  assert.deepEqual(charsOf(await speak(voices.flite, ["Two."])), [4]);
  assert.deepEqual(begun.received.kinds().slice(-2), ["spoken", "failed"]);
  assert.deepEqual(waiting.received.kinds(), ["failed"]);
});

test("[SP9] when the thread of the recogniser ends, open streams fail once and the next one works", async () => {
  const listen = () => {
    const received = createReceived<TranscriptEvent>();
    return { received, stream: recogniser.open({ rate: 16_000, ...ENGLISH }, received.receive) };
  };
  const cut = listen();
  cut.stream.finalize();
  await cut.received.event("final");
  await recogniser.close();
  const { error } = await cut.received.event("failed");
  assert.ok(error instanceof ProviderError);
  assert.match(error.message, /has stopped/);
  const next = listen();
  next.stream.finalize();
  assert.equal((await next.received.event("final")).text, "");
  assert.deepEqual(cut.received.kinds(), ["final", "failed"]);
  next.stream.close();
});
