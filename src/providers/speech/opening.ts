// Opens the speech engines that engines.ts says can be used: in the media thread for calls, and in
// the main thread when somebody listens to a voice.
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { createAssemblyAi } from "./assemblyai/assemblyai.ts";
import { createAzureEars } from "./azure/azure-ears.ts";
import { createAzureVoice } from "./azure/azure-voice.ts";
import { createCartesiaEars } from "./cartesia/cartesia-ears.ts";
import { createCartesiaVoice } from "./cartesia/cartesia-voice.ts";
import { createDeepgramFlux } from "./deepgram/deepgram-flux.ts";
import { createDeepgram } from "./deepgram/deepgram.ts";
import { createElevenLabs } from "./elevenlabs/elevenlabs.ts";
import { createEmbeddedVoices } from "./embedded/embedded-voices.ts";
import { createNoiseFilter } from "./embedded/noise-filter.ts";
import { createPocketSphinx } from "./embedded/pocketsphinx.ts";
import { createSherpa } from "./embedded/sherpa.ts";
import { createVad } from "./embedded/silero.ts";
import { createTurnEndModel } from "./embedded/turn-ends.ts";
import { usableSynthesizers, usableTranscribers, type SpeechConfig } from "./engines.ts";
import { enduringSynthesizers, enduringTranscribers, remembered } from "./fallback/enduring.ts";
import { createGeminiLive } from "./gemini/gemini-live.ts";
import { createGladia } from "./gladia/gladia.ts";
import { createGoogleVoice } from "./google/google-voice.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "./loopback.ts";
import { createOpenAiRealtime } from "./openai/openai-realtime.ts";
import { createOpenAiSpeech } from "./openai/openai-speech.ts";
import { createOpenAiTranscription } from "./openai/openai-transcription.ts";
import { createLevel, levelled, levelledModel } from "./levelled.ts";
import { createPhrases } from "./phrases.ts";
import type {
  NoiseFilter, Pcm, RealtimeVendor, SpeechToSpeech, SynthesisOptions, Synthesizer, Transcriber,
  TurnEndModel,
  Vad,
} from "./port.ts";
import { createSoniox } from "./soniox/soniox.ts";
import { saidAsWritten } from "./spoken/spoken.ts";

export interface Engines {
  /**
   * Throw a ProviderError for a code they cannot serve. Where the engine fails in the middle of a
   * call, the others that are set up go on.
   */
  synthesizer(code: string): Synthesizer;
  transcriber(code: string): Transcriber;
  speechToSpeech(vendor: RealtimeVendor): SpeechToSpeech;
  vad: Vad;
  noiseFilter: NoiseFilter | null;
  /** Null: turns end by their words and silence alone. */
  turnEnds: TurnEndModel | null;
  /** The voice of the loopback carrier's far end. */
  speak(text: string, rate: number, ready: (pcm: Pcm) => void): void;
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
function realtimeModels(
  { gemini, realtime }: SpeechConfig, options: OpenOptions,
): (vendor: RealtimeVendor) => SpeechToSpeech {
  const models = {
    openai: realtime && createOpenAiRealtime({ ...realtime, ...options }),
    gemini: gemini && createGeminiLive({ ...gemini, ...options }),
  };
  return (vendor) => {
    const model = models[vendor];
    if (!model) throw missing(vendor);
    return model;
  };
}

const turnEndsOf = ({ turnEnds }: SpeechConfig, { log }: OpenOptions): TurnEndModel | null =>
  (turnEnds === null ? null : createTurnEndModel(turnEnds, log));

function openLoopback(config: SpeechConfig, options: OpenOptions): Engines {
  const transcriber = createLoopbackTranscriber(options);
  return {
    synthesizer: openSynthesizers(config, options),
    transcriber: () => transcriber,
    speechToSpeech: realtimeModels(config, options),
    vad: loopbackVad,
    noiseFilter: null,
    turnEnds: turnEndsOf(config, options),
    speak: (text, rate, ready) => ready(loopbackAudio(text, rate)),
  };
}

async function openReal(config: SpeechConfig, options: OpenOptions): Promise<Engines> {
  const vad = await createVad();
  const speaking = openSynthesizers(config, options);
  const models = realtimeModels(config, options);
  const level = createLevel();
  options.log.info({ vad: vad.name }, "speech engines are open");
  return {
    synthesizer: enduringSynthesizers(
      speaking, (language) => usableSynthesizers(config, language), options),
    transcriber: enduringTranscribers(
      openTranscribers(config, options),
      (language) => usableTranscribers(config, language), options),
    speechToSpeech: (vendor) => levelledModel(models(vendor), level),
    vad,
    noiseFilter: createNoiseFilter(options.log),
    turnEnds: turnEndsOf(config, options),
    speak: (text, rate, ready) => {
      const wanted = { ...CLEAR_VOICE, rate };
      speakWhole(speaking("flite"), wanted, text, (pcm) => ready(pcm ?? new Int16Array(0)));
    },
  };
}

function openTranscribers(
  config: SpeechConfig, options: OpenOptions,
): (code: string) => Transcriber {
  const { assemblyAi, azureEars, cartesiaEars, deepgram, gladia, sherpa, soniox } = config;
  const { transcription } = config;
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
  if (azureEars) transcribers.azure = createAzureEars({ ...azureEars, ...options });
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
  voice: "rms", gender: "male", language: "en", speed: 1, stability: 1, similarity: 1,
  hasEmotion: false,
} as const;

/** The engines that speak, by code; throws a ProviderError for a code that cannot be served. */
export function openSynthesizers(
  config: SpeechConfig, options: OpenOptions,
): (code: string) => Synthesizer {
  const { azureVoice, cartesiaVoice, elevenLabs, googleVoice, synthesis } = config;
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
  if (azureVoice) synthesizers.azure = createAzureVoice(azureVoice);
  if (googleVoice) synthesizers.google = createGoogleVoice(googleVoice);
  if (synthesis) synthesizers["openai-compatible"] = createOpenAiSpeech({ ...synthesis, ...options });
  const phrases = createPhrases(options);
  const level = createLevel();
  return remembered((code) => {
    const found = synthesizers[code];
    if (!found) throw missing(code);
    return saidAsWritten(levelled(code, phrases.keep(code, found), level), "words");
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
