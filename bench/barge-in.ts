// Barge-in: which sounds over the assistant take the floor, through the real ears (Silero's voice
// detector and the embedded recogniser), in a real session with the settings of a new assistant.
// One sound at a time begins 1.5 s into a long reply. A `stop` (a stop word or a question) is
// missed if the assistant goes on with what it was saying; any other sound is false if it does not.
// The assistant is silent when the first of 100 ms without its voice is sent, counted from the
// beginning of the sound.
//
// The clock is virtual: after every 100 ms it waits until the recogniser has caught up, so a busy
// machine changes no figure, and the recogniser's own work takes no time.
import { createLogger } from "#core/logger.ts";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import { VoiceSession } from "#features/calls/voice/voice-session.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import { createPocketSphinx } from "#providers/speech/embedded/pocketsphinx.ts";
import { createVad } from "#providers/speech/embedded/silero.ts";
import { createLoopbackSynthesizer } from "#providers/speech/loopback.ts";
import { saidAsWritten } from "#providers/speech/spoken/spoken.ts";
import { createBargeInSounds, SOUND_RATE, type BargeInSound } from "#support/calls/barge-in-sounds.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { median, percentile, print, printResult } from "./report.ts";

const FRAME_MS = 20;
const FRAME = (SOUND_RATE * FRAME_MS) / 1000;
const LEAD_MS = 1500;
/** Silence this long is longer than that between two words. */
const PAUSE_MS = 100;
/** How long the call goes on after the sound: long enough for the assistant to have gone on. */
const TAIL_MS = 2200;
const REPLY = "And so it went on and on for many a day until there was nothing left. ".repeat(12);
/** What settings.ts makes of `interrupt_sensitivity` 0.5. */
const INTERRUPT = { allowed: true, threshold: 0.6, confirmMs: 130, wordsMin: 0 };

const log = createLogger("silent");
const vad = await createVad();
const recogniser = createPocketSphinx(log);
// The threads of the ears do not keep the process alive.
const awake = setInterval(() => undefined, 1000);

/** The recogniser answers in order: once this last stream is answered, all others are. */
let settle: () => void = () => undefined;
const echo = recogniser.open(
  { rate: SOUND_RATE, language: "en", languages: ["en"], hints: [] }, () => settle());
async function earsAreReady(): Promise<void> {
  await new Promise<void>((resolve) => {
    settle = resolve;
    echo.finalize();
  });
}

interface Verdict extends BargeInSound {
  tookFloor: boolean;
  silentMs: number | null;
  words: string;
}

async function judge(sound: BargeInSound): Promise<Verdict> {
  const system = createManualSystem();
  let publish: (event: LegEvent) => void = () => undefined;
  let isSilent = false;
  let tookFloor = false;
  const words: string[] = [];
  const session = new VoiceSession({
    settings: {
      ...VOICE_SETTINGS, interrupt: INTERRUPT, endpoint: { type: "vad", silenceMs: 750 },
    },
    durationMaxMs: 3_600_000,
    greeting: REPLY,
    connect: (next) => {
      publish = next;
      return {
        rate: SOUND_RATE, transfer: null,
        send: (frame) => void (isSilent = frame.every((sample) => Math.abs(sample) < 300)),
        clear: () => next({ kind: "cleared", droppedMs: 0 }),
        sendDtmf: () => undefined, hangUp: () => undefined,
      };
    },
    synthesizer: saidAsWritten(createLoopbackSynthesizer({ system }), "signs"),
    transcriber: {
      ...recogniser,
      open: (options, next) => recogniser.open(options, (event) => {
        if ("text" in event && event.text !== "") words.push(event.text);
        next(event);
      }),
    },
    vad, noiseFilter: null, turnEnds: null, ambience: null, comfort: null, record: null,
    beeps: null,
    clock: createMediaClock(system), system, log,
    brain: {
      ringing: () => undefined, answered: () => undefined, answeredBy: () => undefined,
      reply: () => void (tookFloor = true),
      reengage: () => undefined, speakUp: () => undefined, cancel: () => undefined,
      goAhead: () => undefined,
      ending: (_reason, then) => then(),
      functionCall: () => undefined,
      said: ({ interrupted }) => void (tookFloor ||= interrupted),
      delta: () => undefined, state: () => undefined, over: () => undefined,
    },
  });
  publish({ kind: "answered" });
  const silence = new Int16Array(FRAME);
  let silentMs: number | null = null;
  let quietMs = 0;
  const lengthMs = (sound.pcm.length * 1000) / SOUND_RATE;
  for (let atMs = -LEAD_MS; atMs < lengthMs + TAIL_MS; atMs += FRAME_MS) {
    const at = (atMs / FRAME_MS) * FRAME;
    const frame = atMs < 0 ? silence : new Int16Array(FRAME);
    if (atMs >= 0) frame.set(sound.pcm.subarray(at, at + FRAME));
    publish({ kind: "audio", pcm: frame });
    await Promise.resolve();
    if ((atMs + LEAD_MS) % 100 === 80) await earsAreReady();
    system.advance(FRAME_MS);
    quietMs = isSilent ? quietMs + FRAME_MS : 0;
    if (quietMs >= PAUSE_MS && atMs >= quietMs) silentMs ??= atMs + FRAME_MS - quietMs;
  }
  // The verdict is taken first: what the end of the call cuts off, the sound did not.
  const verdict = { tookFloor, silentMs };
  session.channel.hangUp("operator");
  return { ...sound, ...verdict, words: words.slice(-3).join(" / ") };
}

const verdicts: Verdict[] = [];
for (const sound of await createBargeInSounds()) {
  const verdict = await judge(sound);
  verdicts.push(verdict);
  const isWrong = verdict.tookFloor !== (sound.label === "stop");
  print(`${isWrong ? "WRONG" : "ok   "} ${sound.label.padEnd(5)} ${sound.name}: `
    + `${verdict.tookFloor ? "took the floor" : "went on"}, silent after ${verdict.silentMs ?? "-"} ms`
    + (verdict.words === "" ? "" : `, heard: ${verdict.words}`));
}
clearInterval(awake);
await recogniser.close();

const stops = verdicts.filter(({ label }) => label === "stop");
const taken = verdicts.filter(({ tookFloor }) => tookFloor);
const rightly = taken.filter(({ label }) => label === "stop").length;
const silentMs = stops.flatMap((stop) => stop.silentMs ?? []);
const percent = (part: number, whole: number): number =>
  whole === 0 ? 100 : Math.round((part * 1000) / whole) / 10;
print(`precision ${percent(rightly, taken.length)} %, recall ${percent(rightly, stops.length)} %`);
printResult("barge-in", {
  sounds: verdicts.length, false: taken.length - rightly,
  stops: stops.length, missed_stops: stops.length - rightly,
  silent_p50_ms: median(silentMs), silent_p95_ms: percentile(silentMs, 95),
  others: verdicts.length - stops.length, recogniser: recogniser.name, vad: vad.name,
  clock: "virtual",
});
