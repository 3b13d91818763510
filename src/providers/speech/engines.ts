// Which speech engines there are by their codes in the catalogs, which of them this server can use,
// and how they are opened in the media thread.
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { assemblyAiHears, createAssemblyAi } from "./assemblyai/assemblyai.ts";
import { createCartesiaEars } from "./cartesia/cartesia-ears.ts";
import { createCartesiaVoice } from "./cartesia/cartesia-voice.ts";
import { createDeepgramFlux } from "./deepgram/deepgram-flux.ts";
import { createDeepgram } from "./deepgram/deepgram.ts";
import { createElevenLabs, elevenLabsSpeaks } from "./elevenlabs/elevenlabs.ts";
import { createEmbeddedVoices, espeakMissing } from "./embedded/embedded-voices.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "./loopback.ts";
import { enduringSynthesizers, enduringTranscribers, remembered } from "./fallback/enduring.ts";
import { createGladia } from "./gladia/gladia.ts";
import { createOpenAiRealtime } from "./openai/openai-realtime.ts";
import { createOpenAiSpeech } from "./openai/openai-speech.ts";
import { createOpenAiTranscription } from "./openai/openai-transcription.ts";
import { createPhrases } from "./phrases.ts";
import { createPocketSphinx, POCKETSPHINX_SPEAKERS_MAX } from "./embedded/pocketsphinx.ts";
import type {
  NoiseFilter, Pcm, SpeechToSpeech, SynthesisOptions, Synthesizer, Transcriber, Vad,
} from "./port.ts";
import { createNoiseFilter } from "./embedded/noise-filter.ts";
import {
  createSherpa, SHERPA_SPEAKERS_MAX, sherpaMissing, type SherpaConfig,
} from "./embedded/sherpa.ts";
import { createSoniox } from "./soniox/soniox.ts";
import { createVad } from "./embedded/silero.ts";
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
  assemblyAi: VendorConfig | null;
  soniox: VendorConfig | null;
  gladia: VendorConfig | null;
  cartesiaEars: VendorConfig | null;
  cartesiaVoice: VendorConfig | null;
  elevenLabs: VendorConfig | null;
  realtime: VendorConfig | null;
  sherpa: SherpaConfig | null;
}

export interface Engines {
  /**
   * Throw a ProviderError for a code they cannot serve. Where the engine fails in the middle of a
   * call, the others that are set up go on.
   */
  synthesizer(code: string): Synthesizer;
  transcriber(code: string): Transcriber;
  speechToSpeech(): SpeechToSpeech;
  vad: Vad;
  noiseFilter: NoiseFilter | null;
  /** The voice of the loopback carrier's far end. */
  speak(text: string, rate: number, ready: (pcm: Pcm) => void): void;
}

interface Wanted {
  /** `iso_2`. */
  language: string;
  /** The provider chosen in the assistant's settings; null: whichever can. */
  code: string | null;
}

const ENGLISH = "en";

/** What stands in the way of an engine, in one sentence; null: nothing does. */
type Missing = (config: SpeechConfig, language: string | null) => string | null;

const unset = (isSet: unknown, setting: string): string | null =>
  isSet ? null : `The setting ${setting} is not set on this server.`;
const unspoken = (speaks: boolean): string | null =>
  speaks ? null : "The engine does not know the language.";

/** Keyed by their codes in the catalogs, best first. Language null: any will do. */
const SYNTHESIZERS: Record<string, Missing> = {
  elevenlabs: ({ elevenLabs }, language) =>
    unset(elevenLabs, "PARLEY_ELEVENLABS_KEY")
      ?? unspoken(language === null || elevenLabsSpeaks(elevenLabs?.model ?? "", language)),
  cartesia: ({ cartesiaVoice }) => unset(cartesiaVoice, "PARLEY_CARTESIA_KEY"),
  "openai-compatible": ({ synthesis }) => unset(synthesis, "PARLEY_SYNTHESIS_URL"),
  flite: (_, language) => unspoken(language === null || language === ENGLISH),
  "espeak-ng": () => espeakMissing(),
};
const TRANSCRIBERS: Record<string, Missing> = {
  deepgram: ({ deepgram }) => unset(deepgram, "PARLEY_DEEPGRAM_KEY"),
  assemblyai: ({ assemblyAi }, language) =>
    unset(assemblyAi, "PARLEY_ASSEMBLYAI_KEY")
      ?? unspoken(language === null || assemblyAiHears(assemblyAi?.model ?? "", language)),
  soniox: ({ soniox }) => unset(soniox, "PARLEY_SONIOX_KEY"),
  gladia: ({ gladia }) => unset(gladia, "PARLEY_GLADIA_KEY"),
  cartesia: ({ cartesiaEars }) => unset(cartesiaEars, "PARLEY_CARTESIA_KEY"),
  "openai-compatible": ({ transcription }) => unset(transcription, "PARLEY_TRANSCRIPTION_URL"),
  "sherpa-onnx": ({ sherpa }, language) =>
    unset(sherpa, "PARLEY_SHERPA_DIR") ?? sherpaMissing()
      ?? unspoken(language === null || sherpa?.languages.includes(language) === true),
  pocketsphinx: (_, language) => unspoken(language === null || language === ENGLISH),
};

/** Those that run on this machine. */
const SPEAKERS_MAX: Record<string, number> = {
  pocketsphinx: POCKETSPHINX_SPEAKERS_MAX, "sherpa-onnx": SHERPA_SPEAKERS_MAX,
};

function whyMissing(engines: Record<string, Missing>): (
  config: SpeechConfig, wanted: { code: string; language: string | null },
) => string | null {
  return (config, { code, language }) => {
    if (config.mode === "loopback") return null;
    const missing = Object.hasOwn(engines, code) ? engines[code] : undefined;
    return missing ? missing(config, language) : "This server has no such engine.";
  };
}

/** Why the engine of that code cannot be used here; null: it can. */
export const whySynthesizerMissing = whyMissing(SYNTHESIZERS);
export const whyTranscriberMissing = whyMissing(TRANSCRIBERS);

/** How many speakers the recogniser of that code follows at a time. */
export const speakersMax = (code: string): number => SPEAKERS_MAX[code] ?? Infinity;

function usable(
  engines: Record<string, Missing>, config: SpeechConfig, language: string,
): string[] {
  if (config.mode === "loopback") return ["loopback"];
  return Object.keys(engines).filter((code) => engines[code]?.(config, language) === null);
}

const choose = (codes: string[], wanted: string | null): string | null =>
  codes.find((code) => code === wanted) ?? codes[0] ?? null;

/** The engine wanted where it can be used, else the best that can; null: there is none. */
export function chooseSynthesizer(config: SpeechConfig, wanted: Wanted): string | null {
  return choose(usable(SYNTHESIZERS, config, wanted.language), wanted.code);
}

export function chooseTranscriber(config: SpeechConfig, wanted: Wanted): string | null {
  return choose(usable(TRANSCRIBERS, config, wanted.language), wanted.code);
}

/** In one sentence what would make the server understand a language that it does not. */
export function whyNoTranscriber({ sherpa }: SpeechConfig): string {
  return [
    sherpa && sherpaMissing(),
    "Set PARLEY_DEEPGRAM_KEY, the key of another vendor, PARLEY_TRANSCRIPTION_URL or"
      + " PARLEY_SHERPA_DIR for a recogniser that understands it.",
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
  const transcriber = createLoopbackTranscriber(options);
  return {
    synthesizer: openSynthesizers(config, options),
    transcriber: () => transcriber,
    speechToSpeech: realtimeModel(config, options),
    vad: loopbackVad,
    noiseFilter: null,
    speak: (text, rate, ready) => ready(loopbackAudio(text, rate)),
  };
}

async function openReal(config: SpeechConfig, options: OpenOptions): Promise<Engines> {
  const vad = await createVad();
  const speaking = openSynthesizers(config, options);
  options.log.info({ vad: vad.name }, "speech engines are open");
  return {
    synthesizer: enduringSynthesizers(
      speaking, (language) => usable(SYNTHESIZERS, config, language), options),
    transcriber: enduringTranscribers(
      openTranscribers(config, options),
      (language) => usable(TRANSCRIBERS, config, language), options),
    speechToSpeech: realtimeModel(config, options),
    vad,
    noiseFilter: createNoiseFilter(options.log),
    speak: (text, rate, ready) => {
      const wanted = { ...CLEAR_VOICE, rate };
      speakWhole(speaking("flite"), wanted, text, (pcm) => ready(pcm ?? new Int16Array(0)));
    },
  };
}

function openTranscribers(
  { assemblyAi, cartesiaEars, deepgram, gladia, sherpa, soniox, transcription }: SpeechConfig,
  options: OpenOptions,
): (code: string) => Transcriber {
  const { log } = options;
  const transcribers: Record<string, Transcriber> = { pocketsphinx: createPocketSphinx(log) };
  if (deepgram) {
    const create = deepgram.model.startsWith("flux") ? createDeepgramFlux : createDeepgram;
    transcribers.deepgram = create({ ...deepgram, ...options });
  }
  if (assemblyAi) transcribers.assemblyai = createAssemblyAi({ ...assemblyAi, ...options });
  if (soniox) transcribers.soniox = createSoniox({ ...soniox, ...options });
  if (gladia) transcribers.gladia = createGladia({ ...gladia, ...options });
  if (cartesiaEars) transcribers.cartesia = createCartesiaEars({ ...cartesiaEars, ...options });
  if (transcription) {
    transcribers["openai-compatible"] = createOpenAiTranscription({
      ...transcription, ...options,
    });
  }
  if (sherpa) transcribers["sherpa-onnx"] = createSherpa(sherpa, log);
  return (code) => {
    const found = transcribers[code];
    if (!found) throw missing(code);
    return found;
  };
}

/** The voice that is easiest to understand for a recogniser. */
const CLEAR_VOICE = {
  voice: "rms", gender: "male", language: ENGLISH, speed: 1, stability: 1, similarity: 1,
  hasEmotion: false,
} as const;

/** The engines that speak, by code; throws a ProviderError for a code that cannot be served. */
export function openSynthesizers(
  config: SpeechConfig, options: OpenOptions,
): (code: string) => Synthesizer {
  const { cartesiaVoice, elevenLabs, synthesis } = config;
  if (config.mode === "loopback") {
    const loopback = saidAsWritten(createLoopbackSynthesizer(options), "signs");
    return () => loopback;
  }
  const voices = createEmbeddedVoices(options.log);
  const synthesizers: Record<string, Synthesizer> = {
    flite: voices.flite, "espeak-ng": voices.espeakNg,
  };
  if (elevenLabs) synthesizers.elevenlabs = createElevenLabs({ ...elevenLabs, ...options });
  if (cartesiaVoice) synthesizers.cartesia = createCartesiaVoice({ ...cartesiaVoice, ...options });
  if (synthesis) synthesizers["openai-compatible"] = createOpenAiSpeech({ ...synthesis, ...options });
  const phrases = createPhrases(options);
  return remembered((code) => {
    const found = synthesizers[code];
    if (!found) throw missing(code);
    return saidAsWritten(phrases.keep(code, found), "words");
  });
}

/** Speaks a whole line; null when the engine has failed. */
export function speakWhole(
  synthesizer: Synthesizer, options: SynthesisOptions, text: string,
  ready: (pcm: Pcm | null) => void,
): void {
  const pieces: Pcm[] = [];
  const stream = synthesizer.open(options, (event) => {
    if (event.kind === "audio") pieces.push(event.pcm);
    if (event.kind === "failed") return ready(null);
    if (event.kind !== "done") return;
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
