// Warm transfers on a virtual clock: the media thread's host between a caller and a colleague that
// do what a test says, from the moment a function asks for it until both lines have ended.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHoldMusic } from "#audio/hold-music.ts";
import { createHost } from "#features/calls/voice/host.ts";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import type { FromMedia } from "#features/calls/voice/protocol.ts";
import type { WarmSetup } from "#features/calls/voice/warm-host.ts";
import { createLogger } from "#core/logger.ts";
import {
  createLoopbackCarrier, type CallerScript, type CallerStep,
} from "#providers/carriers/loopback.ts";
import type { Carrier, LegEvent } from "#providers/carriers/port.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "#providers/speech/loopback.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";
import { createManualSystem } from "#support/manual-clock.ts";

interface Far {
  /** Words it heard to their end. */
  heard: string[];
  /** Frames in which it heard anything, by the stage of the transfer. */
  loud: Record<string, number>;
  /** Lines of it that are up. */
  live: number;
  ended: string[];
}

interface WarmPlay {
  /** What the assistant is saying when the transfer begins. */
  saying?: string;
  caller?: CallerStep[];
  colleague?: Partial<CallerScript>;
  setup?: Partial<WarmSetup>;
  colleagueRate?: 8000 | 16_000;
  /** How long the final text of what somebody said takes. */
  recognitionMs?: number;
  /** Absent: it comes at once; null: never. */
  summary?: string | null;
  limitMs?: number;
  /** From the beginning of the transfer. */
  during?: [atMs: number, run: (send: ReturnType<typeof createHost>["receive"]) => void][];
}

interface PlayedWarm {
  caller: Far;
  colleague: Far;
  posted: FromMedia[];
  stages: string[];
  outcome: string | null;
  /** What ended the call; null: it goes on. */
  reason: string | null;
  /** What was said on the caller's leg, by speaker. */
  said: string[];
  /** The same of the colleague's. */
  legSaid: string[];
}

const QUIET: CallerStep[] = [{ waitMs: 3_600_000 }];

async function playWarm(play: WarmPlay): Promise<PlayedWarm> {
  const system = createManualSystem();
  const played: PlayedWarm = {
    caller: { heard: [], loud: {}, live: 0, ended: [] },
    colleague: { heard: [], loud: {}, live: 0, ended: [] },
    posted: [], stages: [], outcome: null, reason: null, said: [], legSaid: [],
  };
  const carrier = (
    name: Carrier["name"], far: Far, script: Partial<CallerScript>,
  ): Carrier => {
    const made = createLoopbackCarrier({
      system,
      scriptOf: () => ({ ringMs: 200, answerMs: 500, outcome: "answers", steps: QUIET, ...script }),
      speak: (text, rate, ready) => ready(loopbackAudio(text, rate)),
      onWord: (word) => far.heard.push(word),
      onHeard: (frame) => {
        const stage = played.stages.at(-1) ?? "";
        const isLoud = frame.some((sample) => Math.abs(sample) > 400);
        if (isLoud) far.loud[stage] = (far.loud[stage] ?? 0) + 1;
      },
    });
    return {
      name, inbound: null,
      dial: (request, publish) => {
        far.live += 1;
        return made.dial(request, (event: LegEvent) => {
          if (event.kind === "ended") {
            far.live -= 1;
            far.ended.push(event.cause);
          }
          publish(event);
        });
      },
    };
  };
  const host = createHost({
    synthesizer: () => createLoopbackSynthesizer({ system, synthesisMs: 0 }),
    transcriber: () =>
      createLoopbackTranscriber({ system, recognitionMs: play.recognitionMs ?? 0 }),
    speechToSpeech: () => assert.fail("no model speaks by itself"),
    vad: loopbackVad, level: () => (pcm) => pcm, noiseFilter: null, turnEnds: null,
    ambience: () => assert.fail("there is no ambience"),
    beeps: () => ({ push: () => undefined }),
    recorder: () => assert.fail("nothing is recorded"),
    carriers: [
      carrier("loopback", played.caller, { steps: play.caller ?? QUIET }),
      carrier("sip", played.colleague, play.colleague ?? {}),
    ],
    peers: null,
    clock: createMediaClock(system), system, log: createLogger("silent"),
    post: (message) => receive(message),
  });
  const receive = (message: FromMedia): void => {
    played.posted.push(message);
    if (message.kind === "over") played.reason = message.summary.reason;
    if (message.kind === "said") played.said.push(`${message.said.speaker}: ${message.said.text}`);
    if (message.kind === "reply") {
      host.receive({ kind: "reply_text", callId: 1, turn: message.turn, text: "I see." });
      host.receive({ kind: "reply_end", callId: 1, turn: message.turn, failed: false });
    }
    if (message.kind !== "warm") return;
    const { report } = message;
    if (report.kind === "said") return void played.legSaid.push(`${report.said.speaker}: ${report.said.text}`);
    played.stages.push(report.stage);
    played.outcome = report.outcome;
  };
  const leg = { kind: "dialled", to: "+15550100", from: null, ringingMs: 20_000, rate: 8000 } as const;
  const engines = { synthesizer: "loopback", transcriber: "loopback" };
  host.receive({
    kind: "open", callId: 1,
    setup: {
      settings: VOICE_SETTINGS, durationMaxMs: 3_600_000, greeting: "Hello", engines,
      leg: { ...leg, carrier: "loopback" }, realtime: null, recordingPath: null,
    },
  });
  system.advance(3000);
  if (play.saying !== undefined) {
    host.receive({ kind: "say", callId: 1, text: play.saying });
    system.advance(500);
  }
  const texts = {
    hold: "Please hold", opening: "Somebody calls", question: "Do you take it",
    connected: "You are connected", notConnected: VOICE_SETTINGS.phrases.notConnected,
  };
  host.receive({
    kind: "warm", callId: 1,
    setup: {
      number: 1, engines, leg: { ...leg, carrier: "sip", rate: play.colleagueRate ?? 8000 },
      voice: VOICE_SETTINGS, settings: { ringingMs: 20_000, talkMs: 600_000 }, texts,
      musicGain: null, afterwardsMs: 3_600_000, outOfTime: "balance", recordingPath: null,
      ...play.setup,
    },
  });
  if (play.summary !== null) {
    host.receive({ kind: "summary", callId: 1, text: play.summary ?? "Eva asks for a refund" });
  }
  for (const [atMs, run] of play.during ?? []) system.after(atMs, () => run(host.receive));
  const limitMs = system.monotonicMs() + (play.limitMs ?? 60_000);
  while (played.reason === null && system.monotonicMs() < limitMs) {
    system.advance(100);
    // The end is told once the recording of the leg is closed.
    await Promise.resolve();
  }
  await new Promise((resolve) => setImmediate(resolve));
  return played;
}

const heardBy = ({ heard }: Far): string => heard.join(" ");
const TAKES: CallerStep[] = [{ quietMs: 700 }, { say: "yes" }];

test("[WT23] a colleague who accepts hears the caller and is heard; neither hears an echo of themselves", async () => {
  const played = await playWarm({
    caller: [{ waitMs: 25_000 }, { say: "refund" }, { waitMs: 6000 }, { hangUp: true }],
    colleague: { steps: [{ words: 9 }, ...TAKES, { waitMs: 4000 }, { say: "welcome" }, ...QUIET] },
  });
  assert.deepEqual(played.stages, [
    "dialling", "ringing", "briefing", "asking", "connected", "over",
  ]);
  assert.equal(played.outcome, "completed");
  assert.equal(heardBy(played.caller), "Hello Please hold You are connected welcome");
  assert.equal(
    heardBy(played.colleague),
    "Somebody calls Eva asks for a refund Do you take it You are connected refund");
  assert.deepEqual(played.legSaid, [
    "assistant: Somebody calls", "assistant: Eva asks for a refund", "assistant: Do you take it",
    "customer: yes", "customer: welcome",
  ]);
  assert.deepEqual([played.caller.live, played.colleague.live], [0, 0]);
});

test("[MX1] an assistant that talks on is followed by what is true by then: hold, or connected", async () => {
  // Such a word takes 0.62 s. The colleague is called after 40 s all the same, and takes it at 52.
  for (const [words, then] of [[74, "Please hold You are connected"], [100, "You are connected"]] as const) {
    const played = await playWarm({
      saying: "continuing ".repeat(words), limitMs: 90_000,
      colleague: { steps: [{ words: 2 }, { waitMs: 9000 }, { dtmf: "1" }, ...QUIET] },
    });
    assert.equal(played.stages.at(-1), "connected");
    assert.equal(heardBy(played.caller).replaceAll("continuing ", ""), `Hello ${then}`);
  }
});

test("[WT25] while a colleague has the caller the assistant is silent and keeps the words", async () => {
  const played = await playWarm({
    caller: [{ waitMs: 25_000 }, { say: "where are you" }, { waitMs: 55_000 }, { hangUp: true }],
    colleague: { steps: [{ words: 5 }, { dtmf: "1" }, ...QUIET] }, limitMs: 120_000,
  });
  assert.equal(played.reason, "customer_hung_up");
  // Not a reply, nor a question whether somebody is still there.
  assert.deepEqual(played.posted.filter(({ kind }) => kind === "reply" || kind === "reengage"), []);
  assert.deepEqual(played.said, [
    "assistant: Hello", "assistant: Please hold", "assistant: You are connected",
    "customer: where are you",
  ]);
});

test("[WT2] if the colleague cannot be reached, the assistant tells the caller and goes on", async () => {
  const ways: [Partial<CallerScript>, string][] = [
    [{ outcome: "busy" }, "busy"], [{ outcome: "no_answer" }, "no_answer"],
    [{ outcome: "rejected" }, "declined"], [{ outcome: "failed" }, "failed"],
    [{ steps: [{ words: 2 }, { dtmf: "2" }, ...QUIET] }, "declined"],
    [{ steps: [{ words: 9 }, { quietMs: 700 }, { say: "not now" }, ...QUIET] }, "declined"],
    [{ steps: [{ waitMs: 500 }, { hangUp: true }] }, "declined"],
    [{ steps: [{ say: "please leave a message after the tone" }, ...QUIET] }, "voicemail"],
    [{ steps: QUIET }, "timed_out"],
  ];
  for (const [colleague, outcome] of ways) {
    const played = await playWarm({
      colleague, limitMs: 150_000,
      caller: [
        // Hello, please hold, and that nobody took the call.
        { words: 9 }, { waitMs: 800 }, { say: "thank you" }, { words: 2 }, { waitMs: 500 },
        { hangUp: true },
      ],
    });
    assert.deepEqual([played.stages.at(-1), played.outcome], ["over", outcome]);
    assert.match(heardBy(played.caller), /Please hold I could not put you through\. I see\.$/, outcome);
    assert.equal(played.reason, "customer_hung_up");
    assert.equal(played.colleague.live, 0);
  }
});

test("[WT24] whenever either hangs up, both lines end or the caller is back, and the transfer ends once", async () => {
  for (let waitMs = 200; waitMs < 12_000; waitMs += 700) {
    for (const who of ["caller", "colleague"] as const) {
      const steps: CallerStep[] = who === "colleague"
        ? [{ waitMs }, { hangUp: true }] : [{ words: 9 }, { dtmf: "1" }, ...QUIET];
      const played = await playWarm({
        caller: who === "caller" ? [{ waitMs }, { hangUp: true }] : QUIET,
        colleague: { steps }, limitMs: 45_000,
      });
      const overs = played.stages.filter((stage) => stage === "over").length;
      // A caller who hung up before it was asked for has no transfer.
      const hasBegun = played.stages.length > 0 || waitMs > 3000;
      assert.equal(overs, hasBegun ? 1 : 0, `${who} after ${waitMs}: ${played.stages}`);
      assert.equal(played.colleague.live, 0, `${who} after ${waitMs}`);
      if (who === "caller") assert.equal(played.caller.live, 0);
      else assert.ok(heardBy(played.caller).endsWith("through."), `${waitMs}: ${heardBy(played.caller)}`);
    }
  }
});

test("[MX16] a caller who hangs up in mid-word has left at once, though their last words are waited for", async () => {
  const played = await playWarm({
    recognitionMs: 1500,
    // Half a second before the colleague presses the key.
    caller: [{ waitMs: 8000 }, { noiseMs: 1500 }, { hangUp: true }],
    colleague: { steps: [{ waitMs: 6200 }, { dtmf: "1" }, ...QUIET] },
  });
  assert.deepEqual([played.reason, played.outcome], ["customer_hung_up", "caller_left"]);
  assert.ok(!played.stages.includes("connected"), played.stages.join());
});

test("[WT24] actions of a person in the call or of the operator end it, too", async () => {
  const ended = await playWarm({
    during: [[8000, (send) => send({ kind: "hang_up", callId: 1, reason: "operator" })]],
    colleague: { steps: QUIET },
  });
  assert.deepEqual([ended.reason, ended.outcome, ended.colleague.live], ["operator", "caller_left", 0]);
  const leaving = await playWarm({
    during: [[8000, (send) => send({
      kind: "end_after_speech", callId: 1, reason: "server_restarted", to: null,
    })]],
    colleague: { steps: QUIET },
  });
  assert.deepEqual([leaving.reason, leaving.colleague.live], ["server_restarted", 0]);
  assert.match(heardBy(leaving.caller), /this call has to end now\. Goodbye\.$/);
});

test("[WT5] when the held amount is spent, caller and colleague are disconnected", async () => {
  const played = await playWarm({
    colleague: { steps: [{ words: 2 }, { dtmf: "1" }, ...QUIET] },
    setup: { settings: { ringingMs: 20_000, talkMs: 30_000 } },
  });
  assert.deepEqual([played.reason, played.outcome], ["balance", "completed"]);
  assert.deepEqual([played.caller.live, played.colleague.live], [0, 0]);
});

test("[WT26] lines of different sample rates are connected", async () => {
  const played = await playWarm({
    colleagueRate: 16_000,
    caller: [{ waitMs: 25_000 }, { noiseMs: 2000 }, { waitMs: 3000 }, { hangUp: true }],
    colleague: { steps: [{ words: 5 }, { dtmf: "1" }, { waitMs: 5000 }, { noiseMs: 3000 }, ...QUIET] },
  });
  // Two and three seconds of them, and what is said to both.
  for (const [far, seconds] of [[played.caller, 3], [played.colleague, 2]] as const) {
    const frames = seconds * 50;
    const { connected = 0 } = far.loud;
    assert.ok(connected >= frames && connected < frames + 80, `${connected} frames of ${frames}`);
  }
});

test("[MX2] music plays from the call to the colleague until they take it or the caller is back", async () => {
  for (const [key, last] of [["1", "connected"], ["2", "over"]] as const) {
    const { caller: { loud }, stages } = await playWarm({
      colleague: { steps: [{ words: 9 }, { waitMs: 2000 }, { dtmf: key }, ...QUIET] },
      setup: { musicGain: 1 }, limitMs: 25_000,
    });
    assert.equal(stages.at(-1), last);
    // More than a second of it while the colleague is asked; then no more than one sentence.
    assert.ok((loud.asking ?? 0) > 50, JSON.stringify(loud));
    assert.ok((loud[last] ?? 0) < 120, JSON.stringify(loud));
  }
});

test("[MX3] a colleague who asks something back is still asked; who hangs up later has had the call", async () => {
  const played = await playWarm({
    colleague: {
      steps: [
        { words: 9 }, { quietMs: 700 }, { say: "who is it" }, { waitMs: 3000 }, { say: "yes" },
        { waitMs: 5000 }, { hangUp: true },
      ],
    },
  });
  assert.deepEqual(played.stages.slice(-2), ["connected", "over"]);
  assert.deepEqual([played.outcome, played.reason], ["completed", "transferred"]);
  const [first] = played.posted.flatMap((message) =>
    message.kind === "warm" && message.report.kind === "said" ? [message.report.said] : []);
  // Their times count from the answer of the call, which was there long before.
  assert.ok(first && first.startMs > 3000 && first.endMs > first.startMs, JSON.stringify(first));
});

test("[MX4] a person who takes the caller over ends the transfer, and the caller is told nothing", async () => {
  const played = await playWarm({
    during: [[6000, (send) => send({
      kind: "person_joined", callId: 1, author: { id: "key:1", name: "Ana" }, isAlone: true,
      ears: null,
    })]],
    colleague: { steps: QUIET },
  });
  assert.deepEqual([played.stages.at(-1), played.outcome], ["over", "failed"]);
  assert.equal(heardBy(played.caller), "Hello Please hold");
  assert.deepEqual([played.caller.live, played.colleague.live], [1, 0]);
});

test("[MX19] an assistant that calls a colleague and hangs up in one breath does not end the call", async () => {
  const played = await playWarm({
    during: [[1, (send) => send({
      kind: "end_after_speech", callId: 1, reason: "assistant_ended", to: null,
    })]],
    colleague: { steps: [{ words: 9 }, { dtmf: "1" }, ...QUIET] }, limitMs: 30_000,
  });
  assert.deepEqual([played.stages.at(-1), played.reason], ["connected", null]);
});

test("[WT8] hold music is audible, never loud, and the same in whatever pieces it is read", () => {
  for (const rate of [8000, 16_000, 24_000]) {
    const [whole, pieces] = [createHoldMusic(rate), createHoldMusic(rate)];
    const samples = whole.next(rate * 40);
    const cut = new Int16Array(rate * 40);
    for (let at = 0; at < cut.length; at += rate / 50) cut.set(pieces.next(rate / 50), at);
    assert.ok(Buffer.from(cut.buffer).equals(Buffer.from(samples.buffer)));
    for (let from = 0; from < samples.length; from += rate / 5) {
      const part = samples.subarray(from, from + rate / 5);
      const rms = Math.sqrt(part.reduce((sum, sample) => sum + sample ** 2, 0) / part.length);
      assert.ok(rms > 300 && rms < 5000, `${rate}, ${from}: ${rms}`);
    }
    assert.ok(samples.every((sample) => Math.abs(sample) < 15_000));
  }
});
