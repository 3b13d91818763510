// Which speech engines there are by their codes in the catalogs, which of them this server can use,
// and how they are opened in the media thread.
import { ProviderError } from "../../core/faults.ts";
import type { Logger } from "../../core/logger.ts";
import type { System } from "../../core/system.ts";
import { createDeepgramFlux } from "./deepgram-flux.ts";
import { createDeepgram } from "./deepgram.ts";
import { createElevenLabs, elevenLabsSpeaks } from "./elevenlabs.ts";
import { createEmbeddedVoices, espeakMissing } from "./embedded-voices.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "./loopback.ts";
import { createOpenAiRealtime } from "./openai-realtime.ts";
import { createOpenAiSpeech } from "./openai-speech.ts";
import { createOpenAiTranscription } from "./openai-transcription.ts";
import { createPocketSphinx, pocketSphinxMissing } from "./pocketsphinx.ts";
import type {
  NoiseFilter, Pcm, SpeechToSpeech, Synthesizer, Transcriber, Vad,
} from "./port.ts";
import { createRnnoise } from "./rnnoise.ts";
import { createSherpa, sherpaMissing, type SherpaConfig } from "./sherpa.ts";
import { createVad } from "./silero.ts";
import { saidAsWritten } from "./spoken/spoken.ts";

export interface VendorConfig {
  url: string;
  key: string | null;
  model: string;
}

/** Plain data: it is sent to the media thread. Null: not configured. */
export interface SpeechConfig {
  /** `loopback`: speech made of numbers, for tests. */
  mode: "auto" | "loopback";
  transcription: VendorConfig | null;
  /** `voice`: asked for whatever the assistant's is. */
  synthesis: (VendorConfig & { voice: string | null }) | null;
  deepgram: VendorConfig | null;
  elevenLabs: VendorConfig | null;
  realtime: VendorConfig | null;
  sherpa: SherpaConfig | null;
}

export interface Engines {
  /** Throw a ProviderError for a code they cannot serve. */
  synthesizer(code: string): Synthesizer;
  transcriber(code: string): Transcriber;
  speechToSpeech(): SpeechToSpeech;
  vad: Vad;
  noiseFilter: NoiseFilter | null;
  /** The voice of the loopback carrier's far end. */
  speak(text: string, rate: number, ready: (pcm: Pcm) => void): void;
}

export interface Wanted {
  /** `iso_2`. */
  language: string;
  /** The provider chosen in the assistant's settings; null: whichever can. */
  code: string | null;
}

const ENGLISH = "en";

/** Codes that can be used, best first. */
function usableSynthesizers(config: SpeechConfig, language: string): string[] {
  if (config.mode === "loopback") return ["loopback"];
  const { elevenLabs } = config;
  return [
    ...(elevenLabs && elevenLabsSpeaks(elevenLabs.model, language) ? ["elevenlabs"] : []),
    ...(config.synthesis ? ["openai-compatible"] : []),
    ...(language === ENGLISH ? ["flite"] : []),
    ...(espeakMissing() === null ? ["espeak-ng"] : []),
  ];
}

function usableTranscribers(config: SpeechConfig, language: string): string[] {
  if (config.mode === "loopback") return ["loopback"];
  const hasSherpa = config.sherpa?.languages.includes(language) && sherpaMissing() === null;
  return [
    ...(config.deepgram ? ["deepgram"] : []),
    ...(config.transcription ? ["openai-compatible"] : []),
    ...(hasSherpa ? ["sherpa-onnx"] : []),
    ...(language === ENGLISH && pocketSphinxMissing() === null ? ["pocketsphinx"] : []),
  ];
}

const choose = (usable: string[], wanted: string | null): string | null =>
  usable.find((code) => code === wanted) ?? usable[0] ?? null;

/** The engine wanted where it can be used, else the best that can; null: there is none. */
export function chooseSynthesizer(config: SpeechConfig, wanted: Wanted): string | null {
  return choose(usableSynthesizers(config, wanted.language), wanted.code);
}

export function chooseTranscriber(config: SpeechConfig, wanted: Wanted): string | null {
  return choose(usableTranscribers(config, wanted.language), wanted.code);
}

/** In one sentence what would make the server understand the language. */
export function whyNoTranscriber({ sherpa }: SpeechConfig, language: string): string {
  return [
    sherpa && sherpaMissing(),
    language === ENGLISH ? pocketSphinxMissing() : null,
    "Set PARLEY_DEEPGRAM_KEY, PARLEY_TRANSCRIPTION_URL or PARLEY_SHERPA_DIR"
      + " for a recogniser that understands it.",
  ].filter((sentence) => sentence !== null).join(" ");
}

interface OpenOptions {
  system: System;
  log: Logger;
}

export async function openEngines(config: SpeechConfig, options: OpenOptions): Promise<Engines> {
  return config.mode === "loopback" ? openLoopback(config, options) : openReal(config, options);
}

const missing = (code: string): ProviderError =>
  new ProviderError(`the speech engine ${code} is not configured`, { retryable: false });

/** Throws where there is none. */
function realtimeModel({ realtime }: SpeechConfig, options: OpenOptions): () => SpeechToSpeech {
  const model = realtime && createOpenAiRealtime({ ...realtime, ...options });
  return () => {
    if (!model) throw missing("realtime");
    return model;
  };
}

function openLoopback(config: SpeechConfig, options: OpenOptions): Engines {
  const { system } = options;
  const synthesizer = saidAsWritten(createLoopbackSynthesizer({ system }), "signs");
  const transcriber = createLoopbackTranscriber({ system });
  return {
    synthesizer: () => synthesizer,
    transcriber: () => transcriber,
    speechToSpeech: realtimeModel(config, options),
    vad: loopbackVad,
    noiseFilter: null,
    speak: (text, rate, ready) => ready(loopbackAudio(text, rate)),
  };
}

async function openReal(config: SpeechConfig, options: OpenOptions): Promise<Engines> {
  const { log } = options;
  const voices = createEmbeddedVoices(log);
  const { deepgram, elevenLabs, sherpa, synthesis, transcription } = config;
  const vad = await createVad();
  const synthesizers: Record<string, Synthesizer> = {
    flite: voices.flite, "espeak-ng": voices.espeakNg,
  };
  const transcribers: Record<string, Transcriber> = { pocketsphinx: createPocketSphinx(log) };
  if (deepgram) {
    const create = deepgram.model.startsWith("flux") ? createDeepgramFlux : createDeepgram;
    transcribers.deepgram = create({ ...deepgram, ...options });
  }
  if (transcription) {
    transcribers["openai-compatible"] = createOpenAiTranscription({
      ...transcription, ...options, vad,
    });
  }
  if (sherpa) transcribers["sherpa-onnx"] = createSherpa(sherpa, log);
  if (elevenLabs) synthesizers.elevenlabs = createElevenLabs({ ...elevenLabs, ...options });
  if (synthesis) synthesizers["openai-compatible"] = createOpenAiSpeech({ ...synthesis, ...options });
  log.info({ vad: vad.name }, "speech engines are open");
  return {
    synthesizer: (code) => {
      const found = synthesizers[code];
      if (!found) throw missing(code);
      return saidAsWritten(found, "words");
    },
    transcriber: (code) => {
      const found = transcribers[code];
      if (!found) throw missing(code);
      return found;
    },
    speechToSpeech: realtimeModel(config, options),
    vad,
    noiseFilter: await createRnnoise(),
    speak: (text, rate, ready) => speakWhole(voices.flite, text, rate, ready),
  };
}

/** A whole line in the voice that is easiest to understand for a recogniser. */
function speakWhole(
  synthesizer: Synthesizer, text: string, rate: number, ready: (pcm: Pcm) => void,
): void {
  const pieces: Pcm[] = [];
  const stream = synthesizer.open({
    rate, voice: "rms", gender: "male", language: ENGLISH, speed: 1, stability: 1, similarity: 1,
  }, (event) => {
    if (event.kind === "audio") pieces.push(event.pcm);
    if (event.kind !== "done" && event.kind !== "failed") return;
    const pcm = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      pcm.set(piece, at);
      at += piece.length;
    }
    ready(pcm);
  });
  stream.write(text);
  stream.end();
}
