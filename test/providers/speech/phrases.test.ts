// Phrases that are spoken once and kept, between an engine that counts and calls that ask for them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProviderError } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createEmbeddedVoices } from "#providers/speech/embedded/embedded-voices.ts";
import { speakWhole } from "#providers/speech/opening.ts";
import { createPhrases, PHRASE_AGE_MS_MAX } from "#providers/speech/phrases.ts";
import type { SynthesisEvent, SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const OPTIONS: SynthesisOptions = {
  rate: 8000, voice: "slt", gender: "female", language: "en", speed: 1, stability: 1, similarity: 1,
  hasEmotion: false, isFixed: true,
};
const SECOND = 8000;

/** An engine whose audio comes when it is told to, a second a text. */
function countingEngine() {
  const opened: { texts: string[]; publish: (event: SynthesisEvent) => void }[] = [];
  const engine: Synthesizer = {
    name: "counting",
    open: (_options, publish) => {
      const texts: string[] = [];
      opened.push({ texts, publish });
      const nothing = (): void => undefined;
      return { write: (text) => void texts.push(text), end: nothing, cancel: nothing };
    },
  };
  const finish = (index: number): void => {
    const { texts, publish } = opened[index]!;
    let chars = 0;
    for (const text of texts) {
      chars += text.length;
      publish({ kind: "audio", pcm: new Int16Array(SECOND).fill(chars) });
      publish({ kind: "spoken", chars });
    }
    publish({ kind: "done" });
  };
  return { engine, opened, finish };
}

function say(engine: Synthesizer, texts: string[], options: Partial<SynthesisOptions> = {}) {
  const events: SynthesisEvent[] = [];
  const stream = engine.open({ ...OPTIONS, ...options }, (event) => void events.push(event));
  for (const text of texts) stream.write(text);
  stream.end();
  return { events, stream };
}

const kindsOf = ({ events }: { events: SynthesisEvent[] }): string =>
  events.map(({ kind }) => kind).join(" ");
const WHOLE = "audio spoken audio spoken done";

test("[SP170] a fixed phrase is synthesised once: concurrent requests share the stream, later ones get it at once", () => {
  const { engine, opened, finish } = countingEngine();
  const { keep } = createPhrases({ system: createManualSystem() });
  const kept = keep("a", engine);
  const [first, second] = [say(kept, ["Hello. ", "Who is it?"]), say(kept, ["Hello. ", "Who is it?"])];
  assert.equal(opened.length, 1);
  first.stream.cancel();
  finish(0);
  assert.deepEqual([kindsOf(first), kindsOf(second)], ["", WHOLE]);
  const third = say(kept, ["Hello. ", "Who is it?"]);
  assert.deepEqual([kindsOf(third), opened.length], [WHOLE, 1]);
  assert.deepEqual(third.events, second.events);
});

test("[SP170] another voice, language, pace, rate, text or engine is another phrase; other text is never cached", () => {
  const { engine, opened, finish } = countingEngine();
  const phrases = createPhrases({ system: createManualSystem() });
  const kept = phrases.keep("a", engine);
  say(kept, ["Hello."]);
  finish(0);
  const others: Partial<SynthesisOptions>[] = [
    { voice: "rms" }, { gender: "male" }, { language: "de" }, { speed: 1.1 }, { rate: 16_000 },
    { stability: 0.5 }, { similarity: 0.5 }, { hasEmotion: true }, { isFixed: false },
  ];
  for (const options of others) say(kept, ["Hello."], options);
  say(kept, ["Hello!"]);
  say(phrases.keep("b", engine), ["Hello."]);
  assert.equal(opened.length, 1 + others.length + 2);
});

test("[SP171] failed phrases are not cached; the cache is bounded by bytes and age", () => {
  const system = createManualSystem();
  const { engine, opened, finish } = countingEngine();
  const kept = createPhrases({ system, bytesMax: 3 * SECOND * 2 }).keep("a", engine);
  const failed = say(kept, ["One."]);
  opened[0]?.publish({ kind: "failed", error: new ProviderError("gone", { retryable: true }) });
  assert.equal(kindsOf(failed), "failed");
  for (const text of ["One.", "Two.", "Three."]) {
    say(kept, [text]);
    finish(opened.length - 1);
  }
  assert.equal(opened.length, 4);
  // Asked for again, so that the second has waited longest when there is no room for a fourth.
  assert.equal(kindsOf(say(kept, ["One."])), "audio spoken done");
  say(kept, ["Four."]);
  finish(4);
  say(kept, ["One."]);
  assert.equal(opened.length, 5);
  say(kept, ["Two."]);
  assert.equal(opened.length, 6);
  system.advance(PHRASE_AGE_MS_MAX + 1);
  say(kept, ["One."]);
  assert.equal(opened.length, 7);
});

test("[SP291] a phrase of which nothing was heard is not cached", () => {
  const { engine, opened } = countingEngine();
  const kept = createPhrases({ system: createManualSystem() }).keep("a", engine);
  const silent = say(kept, ["Hello."]);
  opened[0]?.publish({ kind: "spoken", chars: 6 });
  opened[0]?.publish({ kind: "done" });
  assert.equal(kindsOf(silent), "spoken done");
  say(kept, ["Hello."]);
  assert.equal(opened.length, 2);
});

test("[SP170] the second time, the embedded voice's greeting is there at once", async () => {
  const { flite, close } = createEmbeddedVoices(createLogger("silent"));
  const kept = createPhrases({ system: createSystem() }).keep("flite", flite);
  const awake = setInterval(() => undefined, 1000);
  const spoken = (): Promise<Int16Array | null> => new Promise((resolve) =>
    speakWhole(kept, OPTIONS, "Hello and welcome, how can I help you?", resolve));
  const first = await spoken();
  let isThere = false;
  const again = spoken().then((pcm) => pcm);
  void again.then(() => (isThere = true));
  await Promise.resolve().then(() => undefined);
  assert.ok(isThere);
  assert.deepEqual(await again, first);
  clearInterval(awake);
  await close();
});
