// Calls on a virtual clock: the real session, mixer and turn taker between a loopback caller and a
// brain that answers as the test says.
import { createMediaClock } from "#features/calls/voice/clock.ts";
import type { CallSummary, Said, VoiceState } from "#features/calls/voice/brain.ts";
import { VoiceSession } from "#features/calls/voice/voice-session.ts";
import { createLegTranscriber } from "#features/calls/voice/leg-transcriber.ts";
import type { VoiceSettings } from "#features/calls/voice/settings.ts";
import type { System } from "#core/system.ts";
import { createLogger } from "#core/logger.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import { createLoopbackCarrier, type CallerScript, type CallerStep } from "#providers/carriers/loopback.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "#providers/speech/loopback.ts";
import { saidAsWritten, type Manner } from "#providers/speech/spoken/spoken.ts";
import type { NoiseFilter, Synthesizer, TurnEndModel, Vad } from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";

export const VOICE_SETTINGS: VoiceSettings = {
  language: "en",
  languages: ["en"],
  hints: [],
  phrases: {
    stillThere: "Are you still there?", again: "Could you say it again?",
    timeIsUp: "I am sorry, our time is up. Goodbye.",
    leaving: "I am sorry, this call has to end now. Goodbye.", sorry: "I am sorry. Goodbye.",
    notConnected: "I could not put you through.", takeCall: "Press 1 to take the call.",
  },
  endpoint: { type: "vad", silenceMs: 700 },
  interrupt: { allowed: true, threshold: 0.6, confirmMs: 100, wordsMin: 0 },
  isEager: true,
  waitForCustomer: false,
  greetsAlike: true,
  maxDurationMs: 3_600_000,
  maxSilenceMs: 40_000,
  reengageEveryMs: 30_000,
  maxInitialSilenceMs: null,
  fillers: null,
  ambience: null,
  filtersNoise: false,
  voicemail: { detects: false, message: null, ends: true },
  reengagePrompt: null,
  keypad: { timeoutMs: 5000, stopKey: "#" },
  records: false,
  voice: { voice: null, gender: "female", language: "en", speed: 1, stability: 1, similarity: 1, hasEmotion: false },
};

/** What the assistant answers; `thinkMs` until the first word, `gapMs` between the pieces. */
export interface Answer {
  text: string;
  thinkMs?: number;
  gapMs?: number;
  /** A function of this name runs for so long before the text. */
  toolMs?: number;
}

export interface PlayedCall {
  said: Said[];
  /** Words the far end heard to their end, in order. */
  heard: string[];
  questions: string[];
  /** Replies that were prepared early and discarded. */
  dropped: number;
  states: VoiceState[];
  /** Why it spoke although the customer had said nothing. */
  spokeUp: string[];
  answeredBy: string[];
  over: CallSummary | null;
  /** Since the answer of the call. */
  lengthMs: number;
}

export interface PlayedCallOptions {
  steps: CallerStep[];
  script?: Partial<CallerScript>;
  settings?: Partial<VoiceSettings>;
  greeting?: string;
  durationMaxMs?: number;
  answer?: (question: string | null, number: number) => string | Answer;
  synthesisMs?: number;
  /** `words`: numbers and addresses are said as by real voices. */
  manner?: Manner;
  recognitionMs?: number;
  /** No recogniser runs: the words come with the leg. */
  knowsWords?: boolean;
  beepAtMs?: number;
  limitMs?: number;
  ambience?: { next(samples: number): Int16Array; gain: number };
  comfort?: () => Int16Array;
  noiseFilter?: NoiseFilter;
  turnEnds?: TurnEndModel;
  /** Replaces the detector that is exact. */
  vad?: Vad;
  /** Wraps the synthesizer. */
  voicedBy?: (synthesizer: Synthesizer) => Synthesizer;
  /** Every frame of both sides, as recordings get them. */
  record?: (customer: Int16Array, assistant: Int16Array) => void;
  /** Every frame the far end hears. */
  onHeard?: (frame: Int16Array) => void;
  /** Called once the call is answered, with the session, timers, and the leg's publisher. */
  during?: (
    session: VoiceSession, after: (ms: number, run: () => void) => void,
    publish: (event: LegEvent) => void, system: System,
  ) => void;
  /** What the carrier does when a call is transferred; absent: it accepts. */
  handOn?: (to: string) => void;
}

export function playCall(options: PlayedCallOptions): PlayedCall {
  const system = createManualSystem();
  const { synthesisMs = 0, recognitionMs = 0, vad = loopbackVad } = options;
  const { voicedBy = (synthesizer: Synthesizer) => synthesizer } = options;
  const played: PlayedCall = {
    said: [], heard: [], questions: [], states: [], answeredBy: [], over: null, lengthMs: 0,
    dropped: 0, spokeUp: [],
  };
  const words = options.knowsWords ? createLegTranscriber(system) : null;
  const carrier = createLoopbackCarrier({
    system,
    scriptOf: () => ({
      ringMs: 200, answerMs: 1000, outcome: "answers", steps: options.steps, ...options.script,
    }),
    speak: (text, rate, ready) => ready(loopbackAudio(text, rate)),
    onWord: (word) => played.heard.push(word),
    onHeard: (frame) => options.onHeard?.(frame),
  });
  const cancelled = new Set<number>();
  const early = new Map<number, string>();
  const reply = (turn: number, question: string | null): void => {
    const given = options.answer?.(question, turn) ?? `You said ${question}`;
    const answer: Answer = typeof given === "string" ? { text: given } : given;
    const { text, thinkMs = 0, gapMs = 0, toolMs = 0 } = answer;
    const pieces = gapMs > 0 ? text.match(/\S+\s*/g) ?? [] : [text];
    if (toolMs > 0) session.functionRunning(true);
    system.after(toolMs, () => {
      if (toolMs > 0) session.functionRunning(false);
    });
    pieces.forEach((piece, index) => {
      system.after(toolMs + thinkMs + index * gapMs, () => {
        if (!cancelled.has(turn)) session.replyText(turn, piece);
      });
    });
    system.after(toolMs + thinkMs + pieces.length * gapMs, () => {
      if (!cancelled.has(turn)) session.replyEnd(turn, false);
    });
  };
  let answeredMs = 0;
  let publishOfLeg = (_event: LegEvent): void => undefined;
  const session: VoiceSession = new VoiceSession({
    settings: { ...VOICE_SETTINGS, ...options.settings },
    durationMaxMs: options.durationMaxMs ?? 3_600_000,
    greeting: options.greeting ?? "Hello, how can I help?",
    connect: (publish) => {
      publishOfLeg = publish;
      const leg = carrier.dial({
        rate: 8000, to: "+15550100", from: null, ringingMs: 30_000,
      }, (event) => {
        if (event.kind === "words") words?.receive(event);
        else publish(event);
      });
      return options.handOn ? Object.assign(leg, { transfer: options.handOn }) : leg;
    },
    synthesizer: saidAsWritten(
      voicedBy(createLoopbackSynthesizer({ system, synthesisMs })), options.manner ?? "signs"),
    transcriber: words?.transcriber ?? createLoopbackTranscriber({ system, recognitionMs }),
    vad: words ? words.watch(vad) : vad,
    noiseFilter: options.noiseFilter ?? null,
    turnEnds: options.turnEnds ?? null,
    ambience: options.ambience ?? null,
    comfort: options.comfort ?? null,
    record: options.record ?? null,
    beeps: (_rate, onBeep) => {
      if (options.beepAtMs !== undefined) system.after(options.beepAtMs, onBeep);
      return { push: () => undefined };
    },
    clock: createMediaClock(system),
    system,
    log: createLogger("silent"),
    brain: {
      ringing: () => undefined,
      answered: () => {
        answeredMs = system.monotonicMs();
        options.during?.(session, (ms, run) => system.after(ms, run), publishOfLeg, system);
      },
      answeredBy: (by) => played.answeredBy.push(by),
      reply: (turn, text, _language, ahead) => {
        if (ahead === null) played.questions.push(text);
        else early.set(turn, text);
        reply(turn, text);
      },
      ending: (_reason, then) => then(),
      goAhead: (turn) => {
        played.questions.push(early.get(turn) ?? "");
        early.delete(turn);
      },
      reengage: (turn) => reply(turn, null),
      speakUp: (turn, why) => {
        played.spokeUp.push(why);
        reply(turn, why);
      },
      cancel: (turn) => {
        cancelled.add(turn);
        if (early.delete(turn)) played.dropped += 1;
      },
      functionCall: () => undefined,
      said: (said) => played.said.push(said),
      delta: () => undefined,
      state: (state) => played.states.push(state),
      over: (summary) => {
        played.over = summary;
        played.lengthMs = system.monotonicMs() - answeredMs;
      },
    },
  });
  const limitMs = options.limitMs ?? 2_400_000;
  while (played.over === null && system.monotonicMs() < limitMs) system.advance(1000);
  return played;
}

/** The assistant's words on record, in order. */
export const wordsOnRecord = ({ said }: PlayedCall): string[] =>
  said.filter(({ speaker }) => speaker === "assistant")
    .flatMap(({ text }) => text.split(/\s+/).filter((word) => word !== ""));

/** Lines `assistant: …`, with an exclamation mark after the speaker if interrupted. */
export const lines = ({ said }: PlayedCall): string[] =>
  said.map(({ speaker, text, interrupted }) => `${speaker}${interrupted ? "!" : ""}: ${text}`);
