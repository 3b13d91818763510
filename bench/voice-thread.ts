// Calls in a thread of their own, as workers/media.ts holds them, to measure what no call record
// has: when the clock really ticked, and when a caller who interrupts hears the last of the reply.
// The real session, mixer, turn taker and clock run in real time; every caller interrupts the
// greeting, asks, hears the answer and hangs up. Started by bench/voice.ts.
import { parentPort, workerData } from "node:worker_threads";
import { createBeepDetector } from "#audio/tones.ts";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import { VoiceSession } from "#features/calls/voice/voice-session.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createLoopbackCarrier } from "#providers/carriers/loopback.ts";
import { FRAME_MS, type Leg, type LegEvent } from "#providers/carriers/port.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "#providers/speech/loopback.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";

export interface ThreadData {
  calls: number;
  /** The time over which the calls begin. */
  spanMs: number;
}

export interface ThreadFigures {
  latenessMs: number[];
  /** One figure for each interrupted call; see `listening`. */
  bargeInMs: number[];
}

const GREETING = "Hello and welcome to the front desk of the house, how can I help you today?";
const ANSWER = "We are open from nine to five on every day of the week.";
/** A gap between words is one frame of silence; this many are the end of speech. */
const STOPPED_FRAMES = 10;
const LOUD = 500;
/** The settings that an assistant's defaults resolve to. */
const SETTINGS = {
  ...VOICE_SETTINGS,
  endpoint: { type: "vad", silenceMs: 750 },
  interrupt: { allowed: true, threshold: 0.6, confirmMs: 250, wordsMin: 0 },
  voicemail: { detects: true, message: null, ends: true },
} as const;

const port = parentPort;
if (!port) throw new Error("bench/voice-thread.ts runs as a worker thread");
// The port keeps the thread alive, which the timers of `system` do not.
port.ref();
const { calls, spanMs } = workerData as ThreadData;
const system = createSystem();
const latenessMs: number[] = [];
const clock = createMediaClock(system, (lateMs) => latenessMs.push(lateMs));
const bargeInMs: number[] = [];
let live = calls;

const carrier = createLoopbackCarrier({
  system,
  scriptOf: () => ({
    ringMs: 100,
    answerMs: 100,
    outcome: "answers",
    steps: [
      { words: 3 }, { say: "Stop. When are you open?" }, { quietMs: 1200 }, { hangUp: true },
    ],
  }),
  speak: (text, rate, ready) => ready(loopbackAudio(text, rate)),
});

const isLoud = (frame: Pcm): boolean => Math.abs(frame[frame.length >> 1] ?? 0) > LOUD;

/**
 * A leg that measures the time from confirmed speech to silence. Speech begins with the first
 * sample of the caller's first loud frame and is confirmed once it has lasted `confirmMs`; silence
 * is when the last loud frame sent before a stop has been played to its end. So 20 ms of what is
 * measured are that frame itself, and up to 20 ms more the rounding of `confirmMs` to frames.
 */
function listening(publish: (event: LegEvent) => void): Leg {
  let begunMs: number | null = null;
  let lastLoudMs = 0;
  let quietFrames = 0;
  let hasStopped = false;
  const leg = carrier.dial({ rate: 16_000, to: "+15550100", from: null, ringingMs: 30_000 }, (event) => {
    if (event.kind === "audio" && begunMs === null && isLoud(event.pcm)) {
      begunMs = system.monotonicMs() - FRAME_MS;
    }
    publish(event);
  });
  return {
    rate: leg.rate,
    transfer: leg.transfer,
    send: (frame) => {
      quietFrames = isLoud(frame) ? 0 : quietFrames + 1;
      if (quietFrames === 0) lastLoudMs = system.monotonicMs();
      // The first stop is the interruption; the next is the end of the answer.
      if (begunMs !== null && !hasStopped && quietFrames === STOPPED_FRAMES) {
        bargeInMs.push(lastLoudMs + FRAME_MS - begunMs - SETTINGS.interrupt.confirmMs);
        hasStopped = true;
      }
      leg.send(frame);
    },
    clear: () => leg.clear(),
    sendDtmf: (digits) => leg.sendDtmf(digits),
    hangUp: () => leg.hangUp(),
  };
}

/** Posts what a session publishes, as the media thread does; nobody listens. */
const post = (what: unknown): void => port.postMessage(what);

function begin(): void {
  const session: VoiceSession = new VoiceSession({
    settings: SETTINGS,
    durationMaxMs: 3_600_000,
    greeting: GREETING,
    connect: listening,
    synthesizer: createLoopbackSynthesizer({ system }),
    transcriber: createLoopbackTranscriber({ system }),
    vad: loopbackVad,
    noiseFilter: null, turnEnds: null,
    ambience: null,
    comfort: null,
    record: null,
    beeps: createBeepDetector,
    clock,
    system,
    log: createLogger("error"),
    brain: {
      ringing: () => post("ringing"),
      answered: () => post("answered"),
      answeredBy: post,
      reply: (turn) => {
        session.replyText(turn, ANSWER);
        session.replyEnd(turn, false);
      },
      reengage: post,
      speakUp: () => undefined,
      cancel: post,
      goAhead: post,
      ending: (_reason, then) => then(),
      functionCall: post,
      said: post,
      delta: (speaker, text) => post([speaker, text]),
      state: post,
      over: () => {
        live -= 1;
        if (live > 0) return;
        post({ latenessMs, bargeInMs } satisfies ThreadFigures);
        port?.close();
      },
    },
  });
}

for (let index = 0; index < calls; index += 1) system.after((index * spanMs) / calls, begin);
