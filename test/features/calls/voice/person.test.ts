// A person of the account in a call, on a virtual clock: alone, beside the assistant, gone, and
// what is on record.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { System } from "#core/system.ts";
import { openPerson, type Person } from "#features/calls/voice/person.ts";
import type { Said } from "#features/calls/voice/brain.ts";
import type { VoiceSession } from "#features/calls/voice/voice-session.ts";
import { ProviderError } from "#core/faults.ts";
import {
  createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "#providers/speech/loopback.ts";
import type { Transcriber } from "#providers/speech/port.ts";
import { lines, playCall, VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";

const ANA = { id: "key:1", name: "Ana" };
const RATE = 16_000;
const FRAME = RATE / 50;
const GREETING = "Hello and welcome to our little shop at the corner of the street.";

/** Ana's microphone: what it says comes frame by frame, silence in between. */
function microphone(
  session: VoiceSession, system: System, said: Said[],
  { transcriber = createLoopbackTranscriber({ system, recognitionMs: 0 }) }: {
    transcriber?: Transcriber | null;
  } = {},
) {
  const heard: Int16Array[] = [];
  let line: Int16Array = new Int16Array(0);
  const person: Person = openPerson({
    author: ANA, channel: session.channel, settings: VOICE_SETTINGS, vad: loopbackVad, transcriber,
    level: () => (pcm) => pcm,
    onHears: (pcm) => void heard.push(pcm),
    onSaid: (one) => void said.push(one),
    onTalking: (isTalking) => session.takePart({ kind: "person_voice", isTalking }),
    system,
  });
  const timer = system.every(20, () => {
    const frame = new Int16Array(FRAME);
    frame.set(line.subarray(0, FRAME));
    line = line.slice(FRAME);
    person.write(frame);
  });
  return {
    person, heard,
    say: (text: string) => void (line = loopbackAudio(text, RATE)),
    stop: () => timer.cancel(),
  };
}

/** When the caller heard any sound at all. */
function ears() {
  const loudAtMs: number[] = [];
  let atMs = 0;
  return {
    loudAtMs,
    onHeard: (frame: Int16Array) => {
      atMs += 20;
      if (frame.some((sample) => Math.abs(sample) > 100)) loudAtMs.push(atMs);
    },
  };
}

test("[VL260] a person who takes over is heard, the assistant stops, and both sides' words are in the transcript", () => {
  const said: Said[] = [];
  const { loudAtMs, onHeard } = ears();
  const played = playCall({
    steps: [
      { waitMs: 6000 }, { say: "Is anybody there?" }, { waitMs: 6000 },
      { say: "Thank you, bye." }, { quietMs: 500 }, { hangUp: true },
    ],
    greeting: GREETING, onHeard,
    during: (session, after, _publish, system) => after(2000, () => {
      const ana = microphone(session, system, said);
      session.takePart({ kind: "person_joined", isAlone: true });
      after(1000, () => ana.say("This is Ana speaking."));
      after(9000, () => {
        session.takePart({ kind: "person_left", wasLost: false });
        ana.person.close();
        ana.stop();
      });
    }),
    answer: (question) => question === "handed_back" ? "I go on now." : "You are welcome.",
  });
  assert.equal(played.said[0]?.interrupted, true);
  assert.ok(GREETING.startsWith(played.said[0]?.text ?? "no"), played.said[0]?.text);
  assert.ok(!loudAtMs.some((ms) => ms > 2100 && ms < 2900), "silence after the take-over");
  assert.ok(loudAtMs.some((ms) => ms > 3000 && ms < 4000), "the person is heard");
  assert.deepEqual(said.map(({ speaker, author, text }) => [speaker, author, text]), [
    ["operator", ANA, "This is Ana speaking."],
  ]);
  const [{ startMs, endMs } = { startMs: 0, endMs: 0 }] = said;
  assert.ok(startMs > 2900 && startMs < 3300 && endMs > startMs && endMs < 5500, `${startMs} ${endMs}`);
  assert.deepEqual(lines(played).slice(1), [
    "customer: Is anybody there?", "assistant: I go on now.", "customer: Thank you, bye.",
    "assistant: You are welcome.",
  ]);
  assert.deepEqual([played.questions, played.spokeUp], [["Thank you, bye."], ["handed_back"]]);
});

test("[VL260] the reply being prepared is dropped, and words the customer repeats are in the transcript twice", () => {
  const played = playCall({
    steps: [
      { quietMs: 500 }, { say: "Do you deliver?" }, { waitMs: 3000 }, { say: "Hello." },
      { waitMs: 3000 }, { say: "Hello." }, { waitMs: 3000 }, { hangUp: true },
    ],
    greeting: "Hi.", answer: () => ({ text: "Yes we do.", thinkMs: 4000 }),
    during: (session, after) => {
      after(4500, () => session.takePart({ kind: "person_joined", isAlone: true }));
    },
  });
  assert.deepEqual(lines(played), [
    "assistant: Hi.", "customer: Do you deliver?", "customer: Hello.", "customer: Hello.",
  ]);
  assert.equal(played.over?.reason, "customer_hung_up");
});

test("[VL261] while a person has the call silence and keys trigger nothing, its time runs, and a pending end is cancelled", () => {
  const played = playCall({
    steps: [{ waitMs: 5000 }, { dtmf: "7" }, { dtmf: "#" }, { waitMs: 600_000 }],
    greeting: GREETING, settings: { maxSilenceMs: 10_000, maxDurationMs: 120_000 },
    during: (session, after) => {
      session.endAfterSpeech("assistant_ended");
      after(1000, () => session.takePart({ kind: "person_joined", isAlone: true }));
    },
  });
  assert.equal(played.over?.reason, "max_duration");
  assert.ok(Math.abs(played.lengthMs - 120_000) < 1100, `${played.lengthMs}`);
  assert.deepEqual(lines(played).slice(1), ["customer: [Keypad input: 7]"]);
  assert.deepEqual(played.questions, []);
});

test("[VL261] handed back while the customer speaks, the assistant answers that and does not speak over it", () => {
  const played = playCall({
    steps: [
      { quietMs: 500 }, { waitMs: 2000 }, { say: "I would like to order seven red chairs today." },
      { quietMs: 500 }, { hangUp: true },
    ],
    greeting: "Hi.", answer: () => "Of course.",
    during: (session, after) => {
      after(1500, () => session.takePart({ kind: "person_joined", isAlone: true }));
      after(4500, () => session.takePart({ kind: "person_left", wasLost: true }));
    },
  });
  assert.deepEqual(lines(played), [
    "assistant: Hi.", "customer: I would like to order seven red chairs today.",
    "assistant: Of course.",
  ]);
  assert.deepEqual(played.spokeUp, []);
});

test("[VL264] the assistant does not speak over a person beside it: it pauses and then says every word", () => {
  const said: Said[] = [];
  const { loudAtMs, onHeard } = ears();
  const played = playCall({
    steps: [{ waitMs: 30_000 }, { hangUp: true }], greeting: GREETING, onHeard,
    during: (session, after, _publish, system) => {
      const ana = microphone(session, system, said);
      ana.person.write(new Int16Array(FRAME));
      session.takePart({ kind: "person_joined", isAlone: false });
      after(1500, () => ana.say("One moment please."));
    },
  });
  assert.deepEqual(lines(played), [`assistant: ${GREETING}`]);
  assert.deepEqual(said.map(({ text }) => text), ["One moment please."]);
  assert.ok(loudAtMs.some((ms) => ms > 1600 && ms < 2500));
  assert.deepEqual(played.heard.filter((word) => word === "street.").length, 1);
});

test("[MX6] a microphone that falls silent in mid-word ends what was said there, and the assistant goes on", () => {
  const said: Said[] = [];
  const played = playCall({
    steps: [{ waitMs: 9000 }, { say: "Are you there?" }, { waitMs: 4000 }, { hangUp: true }],
    greeting: GREETING, answer: () => "Yes.",
    during: (session, after, _publish, system) => {
      const ana = microphone(session, system, said);
      session.takePart({ kind: "person_joined", isAlone: false });
      after(1500, () => ana.say("One moment please."));
      // A telephone is locked: its socket stays open, and nothing comes.
      after(2600, () => ana.stop());
    },
  });
  assert.deepEqual(
    lines(played), [`assistant: ${GREETING}`, "customer: Are you there?", "assistant: Yes."]);
  assert.equal(said.length, 1);
  assert.match(said[0]?.text ?? "", /^One/);
});

test("[VL263] a hint is acted on at once if nobody speaks, else with or after the next reply", () => {
  const hinted = (atMs: number) => playCall({
    steps: [{ quietMs: 500 }, { waitMs: 4000 }, { say: "Do you deliver?" }, { quietMs: 1500 }, { hangUp: true }],
    greeting: "Hi.",
    answer: (question) => question === "hint" ? "There is a discount." : "Yes we do.",
    during: (session, after) => after(atMs, () => session.takePart({ kind: "hint" })),
  });
  const quiet = hinted(2000);
  assert.deepEqual(lines(quiet), [
    "assistant: Hi.", "assistant: There is a discount.", "customer: Do you deliver?",
    "assistant: Yes we do.",
  ]);
  const during = hinted(5200);
  assert.deepEqual([lines(during).at(-1), during.spokeUp], ["assistant: Yes we do.", []]);
});

test("[VL265] speech no recogniser understands becomes one entry without words, from beginning to end", () => {
  const failing: Transcriber = {
    name: "failing", detectsTurns: false,
    open: (_options, publish) => ({
      write: () => undefined, close: () => undefined,
      finalize: () => publish({
        kind: "failed", error: new ProviderError("no", { retryable: false }),
      }),
    }),
  };
  for (const transcriber of [null, failing]) {
    const said: Said[] = [];
    playCall({
      steps: [{ waitMs: 12_000 }, { hangUp: true }], greeting: "",
      during: (session, after, _publish, system) => {
        const ana = microphone(session, system, said, { transcriber });
        session.takePart({ kind: "person_joined", isAlone: true });
        after(1000, () => ana.say("Hello there."));
        after(5000, () => ana.say("Bye then."));
        after(9000, () => ana.person.leave(() => undefined));
      },
    });
    assert.deepEqual(said.map(({ text, speaker }) => [speaker, text]), [["operator", ""]]);
    const [{ startMs, endMs } = { startMs: 0, endMs: 0 }] = said;
    assert.ok(startMs > 800 && startMs < 1500 && endMs > 5000 && endMs < 7000, `${startMs} ${endMs}`);
  }
});

test("[VL265] a person who hands back in mid-word is in the transcript with it, before the assistant speaks", () => {
  const said: Said[] = [];
  const order: string[] = [];
  playCall({
    steps: [{ waitMs: 15_000 }, { hangUp: true }], greeting: "",
    during: (session, after, _publish, system) => {
      const ana = microphone(session, system, said, {
        transcriber: createLoopbackTranscriber({ system, recognitionMs: 800 }),
      });
      session.takePart({ kind: "person_joined", isAlone: true });
      after(1000, () => ana.say("My colleague will help you."));
      after(3000, () => ana.person.leave(() => {
        order.push(said[0]?.text ?? "nothing");
        session.takePart({ kind: "person_left", wasLost: false });
      }));
    },
  });
  assert.equal(order.length, 1);
  assert.ok(order[0]?.startsWith("My colleague"), order[0]);
});
