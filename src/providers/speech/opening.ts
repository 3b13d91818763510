// Opens the speech engines that engines.ts says can be used: in the media thread for calls, and in
// the main thread when somebody listens to a voice.
import { joined } from "#audio/mix.ts";
import { ProviderError } from "#core/faults.ts";
import { createEmbeddedVoices } from "./embedded/embedded-voices.ts";
import { createNoiseFilter } from "./embedded/noise-filter.ts";
import { createPocketSphinx } from "./embedded/pocketsphinx.ts";
import { createSherpa } from "./embedded/sherpa.ts";
import { createVad } from "./embedded/silero.ts";
import { createTurnEndModel } from "./embedded/turn-ends.ts";
import {
  usableSynthesizers, usableTranscribers, type SpeechConfig, type VendorOptions,
} from "./engines.ts";
import { enduringSynthesizers, enduringTranscribers, remembered } from "./fallback/enduring.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "./loopback.ts";
import { createLevel, levelled, levelledModel, type Level } from "./levelled.ts";
import { createPhrases } from "./phrases.ts";
import type {
  CallEngines, Pcm, RealtimeVendor, SpeechToSpeech, SynthesisOptions, Synthesizer, Transcriber,
  TurnEndModel,
} from "./port.ts";
import { saidAsWritten } from "./spoken/spoken.ts";
import { loadRealtimeModels, loadVendorEars, loadVendorVoices } from "./vendors.ts";

export interface Engines extends CallEngines {
  /** Brings all voices to the same loudness. */
  level: Level;
  /** The voice of the loopback carrier's far end. */
  speak(text: string, rate: number, ready: (pcm: Pcm) => void): void;
}

export async function openEngines(
  config: SpeechConfig, options: VendorOptions,
): Promise<Engines> {
  return config.mode === "loopback" ? openLoopback(config, options) : openReal(config, options);
}

const missing = (code: string): ProviderError =>
  new ProviderError(`the speech engine ${code} is not configured`, { retryable: false });

/** Throws where there is none. */
async function realtimeModels(
  config: SpeechConfig, options: VendorOptions,
): Promise<(vendor: RealtimeVendor) => SpeechToSpeech> {
  const models = await loadRealtimeModels(config, options);
  return (vendor) => {
    const model = models(vendor);
    if (!model) throw missing(vendor);
    return model;
  };
}

const turnEndsOf = ({ turnEnds }: SpeechConfig, { log }: VendorOptions): TurnEndModel | null =>
  (turnEnds === null ? null : createTurnEndModel(turnEnds, log));

async function openLoopback(config: SpeechConfig, options: VendorOptions): Promise<Engines> {
  const transcriber = createLoopbackTranscriber(options);
  const level = createLevel();
  return {
    synthesizer: await openSynthesizers(config, options, level),
    transcriber: () => transcriber,
    speechToSpeech: await realtimeModels(config, options),
    vad: loopbackVad,
    noiseFilter: null,
    turnEnds: turnEndsOf(config, options),
    level,
    speak: (text, rate, ready) => ready(loopbackAudio(text, rate)),
  };
}

async function openReal(config: SpeechConfig, options: VendorOptions): Promise<Engines> {
  const level = createLevel();
  const [vad, speaking, hearing, models] = await Promise.all([
    createVad(), openSynthesizers(config, options, level), openTranscribers(config, options),
    realtimeModels(config, options),
  ]);
  options.log.info({ vad: vad.name }, "the speech engines are ready");
  return {
    synthesizer: enduringSynthesizers(
      speaking, (language) => usableSynthesizers(config, language), options),
    transcriber: enduringTranscribers(
      hearing, (language) => usableTranscribers(config, language), options),
    speechToSpeech: (vendor) => levelledModel(models(vendor), level),
    vad,
    noiseFilter: createNoiseFilter(options.log),
    turnEnds: turnEndsOf(config, options),
    level,
    speak: (text, rate, ready) => {
      const wanted = { ...CLEAR_VOICE, rate };
      speakWhole(speaking("flite"), wanted, text, (pcm) => ready(pcm ?? new Int16Array(0)));
    },
  };
}

async function openTranscribers(
  config: SpeechConfig, options: VendorOptions,
): Promise<(code: string) => Transcriber> {
  const vendors = await loadVendorEars(config, options);
  const embedded: Partial<Record<string, Transcriber>> = {
    pocketsphinx: createPocketSphinx(options.log),
    ...(config.sherpa ? { "sherpa-onnx": createSherpa(config.sherpa, options.log) } : {}),
  };
  return (code) => {
    const found = embedded[code] ?? vendors(code);
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
export async function openSynthesizers(
  config: SpeechConfig, options: VendorOptions, level: Level = createLevel(),
): Promise<(code: string) => Synthesizer> {
  if (config.mode === "loopback") {
    const loopback = saidAsWritten(createLoopbackSynthesizer(options), "signs");
    return () => loopback;
  }
  const vendors = await loadVendorVoices(config, options);
  const voices = createEmbeddedVoices(options.log);
  const embedded: Partial<Record<string, Synthesizer>> = {
    flite: voices.flite, "espeak-ng": voices.espeakNg,
  };
  const phrases = createPhrases(options);
  return remembered((code) => {
    const found = embedded[code] ?? vendors(code);
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
    ready(joined(pieces));
  });
  stream.write(text);
  stream.end();
}
