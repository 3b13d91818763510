// Keys as tones in the sound: recognised as Q.24 has it at every level, length and place, told
// once whichever other way they come, and never made out of speech, music or noise.
import assert from "node:assert/strict";
import { after } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { createLogger } from "#core/logger.ts";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { ToneKeys } from "#providers/carriers/sip/media/tone-keys.ts";
import { createEmbeddedVoices } from "#providers/speech/embedded/embedded-voices.ts";
import { speakWhole } from "#providers/speech/opening.ts";
import { test } from "#support/bounded-test.ts";
import { createBargeInSounds } from "#support/calls/barge-in-sounds.ts";
import { agreedOf, openPhone, openSession, packetOf, settled, silence } from "#support/calls/media-session.ts";
import { QUESTIONS } from "#support/documents/corpus.ts";
import { IS_PROOF } from "#support/proof.ts";
import { startSipWorld } from "#support/sip/server-with-sip.ts";
import { openCaller } from "#support/sip/sip-caller.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const world = await startSipWorld({ PARLEY_MODEL_URL: model.url });
after(async () => {
  await world.server.close();
  await model.close();
});

/** Where the windows fall within a key; they are 51 samples apart. */
const SHIFTS = IS_PROOF ? Array.from({ length: 51 }, (_, at) => at) : [0, 17, 38];
const ROWS = [697, 770, 852, 941];
const COLUMNS = [1209, 1336, 1477, 1633];
const KEYPAD = ["123A", "456B", "789C", "*0#D"];
const KEYS = "123A456B789C*0#D";
/** The peak of a sine at 0 dBm0. */
const PEAK = 22_300;
const amplitudeOf = (dBm0: number): number => PEAK * 10 ** (dBm0 / 20);

interface Manner {
  onMs: number;
  offMs: number;
  /** How far all frequencies are off, as a share. */
  off: number;
  low: number;
  high: number;
  noise: number;
  rate: number;
  law: "PCMU" | "PCMA" | null;
  /** Silence before, so that windows fall elsewhere. */
  shift: number;
  /** A break in the middle of each key. */
  gapMs: number;
}

const USUAL: Manner = {
  onMs: 40, offMs: 40, off: 0, low: -10, high: -10, noise: -90, rate: 8000, law: "PCMU", shift: 0,
  gapMs: 0,
};

function tonesOf(keys: string, changes: Partial<Manner> = {}): Int16Array {
  const { onMs, offMs, off, low, high, noise, rate, law, shift, gapMs } = { ...USUAL, ...changes };
  const samples: number[] = new Array<number>(shift).fill(0);
  let state = 1;
  const hiss = (): number =>
    amplitudeOf(noise) * ((state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0) / 2 ** 31);
  const add = (ms: number, sampleAt: (second: number, ms: number) => number): void => {
    for (let at = 0; at < (ms * rate) / 1000; at += 1) {
      samples.push(sampleAt(at / rate, (at * 1000) / rate) + hiss());
    }
  };
  for (const key of keys) {
    const row = KEYPAD.findIndex((line) => line.includes(key));
    const turn = 2 * Math.PI * (1 + off);
    const [one, other] = [ROWS[row]!, COLUMNS[KEYPAD[row]!.indexOf(key)]!];
    add(onMs, (second, ms) => gapMs > 0 && ms > onMs / 2 && ms < onMs / 2 + gapMs
      ? 0
      : amplitudeOf(low) * Math.sin(turn * one * second)
        + amplitudeOf(high) * Math.sin(turn * other * second + 1));
    add(offMs, () => 0);
  }
  add(100, () => 0);
  const pcm = Int16Array.from(samples, (sample) => Math.max(-32_768, Math.min(32_767, sample)));
  if (law === null) return pcm;
  return Int16Array.from(encodeG711(LAWS[law], pcm), (code) => LAWS[law].samples[code] ?? 0);
}

function heardIn(pcm: Int16Array, rate = 8000): string {
  let heard = "";
  const keys = new ToneKeys(rate, (key) => (heard += key));
  const frame = rate / 50;
  for (let at = 0; at + frame <= pcm.length; at += frame) keys.push(pcm.subarray(at, at + frame));
  return heard;
}

test("[SI127] every key is detected once: 40 ms on and off, 1.5 % off, 0 to -29 dBm0, twist, noise, a 10 ms break", async () => {
  const pressed = `${KEYS}1155`;
  const manners: Partial<Manner>[] = [
    {}, { off: 0.015 }, { off: -0.015 }, { low: 0, high: 0 }, { low: -29, high: -29 },
    { low: -10, high: -18 }, { low: -14, high: -10 }, { noise: -25 }, { noise: -25, off: 0.015 },
    { onMs: 200, offMs: 80 }, { onMs: 2000 }, { onMs: 120, gapMs: 10 }, { rate: 16_000 },
    { rate: 24_000, off: -0.015 },
  ];
  for (const manner of manners) {
    for (const law of ["PCMU", "PCMA", null] as const) {
      for (const shift of SHIFTS) {
        const pcm = tonesOf(pressed, { ...manner, law, shift });
        assert.equal(heardIn(pcm, manner.rate), pressed, JSON.stringify({ ...manner, law, shift }));
      }
    }
  }
  const digits = fc.array(fc.constantFrom(...KEYS), { minLength: 1, maxLength: 6 });
  fc.assert(fc.property(digits, fc.record({
    onMs: fc.integer({ min: 40, max: 150 }), offMs: fc.integer({ min: 40, max: 150 }),
    off: fc.double({ min: -0.015, max: 0.015, noNaN: true }),
    low: fc.double({ min: -25, max: -3, noNaN: true }), shift: fc.nat(101),
  }), fc.double({ min: -4, max: 2, noNaN: true }), (keys, manner, twist) => {
    const high = manner.low + twist;
    assert.equal(heardIn(tonesOf(keys.join(""), { ...manner, high })), keys.join(""));
  }), { numRuns: IS_PROOF ? 1000 : 40 });
});

test("[SI127] tones too short, too far off, single or triple are not keys, nor are those of exchanges and faxes", async () => {
  const none: Partial<Manner>[] = [
    { onMs: 23 }, { off: 0.035 }, { off: -0.035 }, { low: -45, high: -45 }, { low: -10, high: -22 },
    { low: -18, high: -10 },
  ];
  for (const manner of none) {
    for (const shift of SHIFTS) {
      assert.equal(heardIn(tonesOf(KEYS, { ...manner, shift })), "", JSON.stringify(manner));
    }
  }
  const exchanges = [
    [350, 440], [440, 480], [480, 620], [425], [1100], [2100], [1000], [697], [1477],
    [697, 1209, 1336], [697, 770, 1209], [700, 900], [1100, 1300], [1300, 1500], [950, 1400, 1800],
  ];
  for (const hertzes of exchanges) {
    const pcm = Int16Array.from({ length: 16_000 }, (_, at) => hertzes.reduce((sum, hertz) =>
      sum + 6000 * Math.sin((2 * Math.PI * hertz * at) / 8000), 0));
    assert.equal(heardIn(pcm), "", hertzes.join("+"));
  }
});

test("[SI128] no key is detected in the embedded voices, hums, laughter, music and noise", async (t) => {
  const voices = createEmbeddedVoices(createLogger("silent"));
  t.after(() => voices.close());
  const said = (engine: "flite" | "espeakNg", voice: string | null, language: string, text: string) =>
    new Promise<Int16Array>((resolve) => speakWhole(voices[engine], {
      rate: 8000, voice, gender: "female", language, speed: 1, stability: 1, similarity: 1,
      hasEmotion: false,
    }, text, (pcm) => resolve(pcm ?? new Int16Array(0))));
  const texts = QUESTIONS.map(([question]) => question);
  let seconds = 0;
  let keys = "";
  const listen = (pcm: Int16Array): void => {
    seconds += pcm.length / 8000;
    // As loud as lines are, and too loud for them.
    for (const gain of [1, 3]) {
      keys += heardIn(pcm.map((sample) => Math.max(-32_768, Math.min(32_767, gain * sample))));
    }
  };
  const short = IS_PROOF ? texts.length : 6;
  for (const voice of ["rms", "slt", "kal16", "awb"]) {
    for (const text of texts.slice(0, short)) listen(await said("flite", voice, "en", text));
  }
  for (const language of ["en", "de", "fr", "es", "it", "pl", "tr", "hi", "zh", "sv", "fi", "vi"]) {
    for (const text of texts.slice(0, IS_PROOF ? 20 : 2)) {
      listen(await said("espeakNg", null, language, text));
    }
  }
  for (const { name, pcm } of await createBargeInSounds()) {
    // One of them is keys.
    if (name === "keys") assert.equal(heardIn(pcm), "55555");
    else listen(pcm);
  }
  t.diagnostic(`${Math.round(seconds)} s of sound, ${keys.length} keys`);
  assert.equal(keys, "");
  assert.ok(seconds > 180, `${seconds}`);
});

test("[SI129] tones count as keys only if no events are agreed, once each; not while INFO brings keys, nor as an echo", async (t) => {
  const press = async (
    telephoneEvent: number | null, keys: string,
    before: (call: Awaited<ReturnType<typeof openSession>>) => void = () => undefined,
  ) => {
    const phone = await openPhone(t);
    const call = await openSession(t);
    call.session.agree(agreedOf(phone.port, { telephoneEvent }));
    before(call);
    const pcm = tonesOf(keys, { onMs: 100, offMs: 100, law: null });
    const codes = encodeG711(LAWS.PCMU, pcm);
    for (let number = 0; number < pcm.length / 160; number += 1) {
      const payload = Buffer.from(codes.subarray(number * 160, (number + 1) * 160));
      await phone.send(packetOf(number, { payload }), call.session.port);
      await settled();
      call.system.advance(20);
      call.session.send(silence);
    }
    return call;
  };
  const heard = await press(null, "147*");
  assert.equal(heard.told.join(""), "147*");
  const loudMs = 20 * heard.heard.filter((frame) =>
    frame.some((sample) => Math.abs(sample) > 1000)).length;
  assert.ok(loudMs <= 4 * 60, `${loudMs} ms of four keys are heard as sound`);
  assert.equal((await press(101, "147")).told.join(""), "");
  const told = await press(null, "1", ({ session }) => session.receiveInfoKey("9"));
  assert.equal(told.told.join(""), "9");
  // The first key came as a tone, and then in INFO: from there on INFO alone counts.
  const both = await press(null, "5");
  both.session.receiveInfoKey("5");
  both.session.receiveInfoKey("5");
  assert.equal(both.told.join(""), "55");
  const echo = await press(null, "8", ({ session }) => {
    session.sendDtmf("8");
    for (let frame = 0; frame < 8; frame += 1) session.send(silence);
  });
  assert.equal(echo.told.join(""), "");
});

test("[SC102] keys of a telephone without events or INFO reach the assistant once, and no words are heard in them", async (t) => {
  for (const [hasEvents, expected] of [[false, ["[Keypad input: 4711]"]], [true, []]] as const) {
    const { number } = await world.desk({ initial_message: "Hello" });
    const caller = await openCaller(world.sipPort, number);
    t.after(() => caller.close());
    await caller.call({ hasEvents });
    const callId = await world.nextCall(number);
    await delay(800);
    caller.talker.say(tonesOf("4711#", { onMs: 80, offMs: 60, law: null }));
    await delay(2500);
    caller.say("BYE");
    const call = await world.when(callId, "ended_by_customer");
    const said = (call.transcript_entries as { sender: string; text: string }[])
      .filter(({ sender }) => sender === "human").map(({ text }) => text);
    assert.deepEqual(said, expected);
  }
});
