// Which speech engines there are by their codes in the catalogs, and which of them this server can
// use. Loads none of them: opening.ts does.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { espeakMissing } from "./embedded/embedded-voices.ts";
import { POCKETSPHINX_SPEAKERS_MAX } from "./embedded/pocketsphinx.ts";
import { SHERPA_SPEAKERS_MAX, sherpaMissing, type SherpaConfig } from "./embedded/sherpa.ts";
import type { RealtimeVendor } from "./port.ts";
import { assemblyAiHears, elevenLabsSpeaks } from "./vendor-models.ts";

/** The address and the credentials of a vendor. */
export interface VendorConfig {
  /** Base; where it leads to a WebSocket `wss:` means the same as `https:`. */
  url: string;
  /** Null: the server asks for none. */
  key: string | null;
  model: string;
}

export interface VendorOptions {
  system: System;
  log: Logger;
}

/** What the adaptor of a vendor is made from. */
export interface VendorArgs extends VendorConfig, VendorOptions {}

/** Plain data: it is sent to the media thread. Null: not configured. */
export interface SpeechConfig {
  /** `loopback`: speech made of numbers, for tests. */
  mode: "auto" | "loopback";
  transcription: VendorConfig | null;
  /** `voice`: used instead of the assistant's. */
  synthesis: (VendorConfig & { voice: string | null }) | null;
  deepgram: VendorConfig | null;
  assemblyAi: VendorConfig | null;
  soniox: VendorConfig | null;
  gladia: VendorConfig | null;
  azureEars: Omit<VendorConfig, "model"> | null;
  azureVoice: Omit<VendorConfig, "model"> | null;
  googleVoice: Omit<VendorConfig, "model"> | null;
  cartesiaEars: VendorConfig | null;
  cartesiaVoice: VendorConfig | null;
  elevenLabs: VendorConfig | null;
  realtime: VendorConfig | null;
  gemini: VendorConfig | null;
  sherpa: SherpaConfig | null;
  /** File of the end-of-turn model. */
  turnEnds: string | null;
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
  azure: ({ azureVoice }) => unset(azureVoice, "PARLEY_AZURE_KEY"),
  google: ({ googleVoice }) => unset(googleVoice, "PARLEY_GOOGLE_KEY"),
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
  azure: ({ azureEars }) => unset(azureEars, "PARLEY_AZURE_KEY"),
  "openai-compatible": ({ transcription }) => unset(transcription, "PARLEY_TRANSCRIPTION_URL"),
  "sherpa-onnx": ({ sherpa }, language) =>
    unset(sherpa, "PARLEY_SHERPA_DIR") ?? sherpaMissing()
      ?? unspoken(language === null || sherpa?.languages.includes(language) === true),
  pocketsphinx: (_, language) => unspoken(language === null || language === ENGLISH),
};

const REALTIME: Record<RealtimeVendor, Missing> = {
  openai: ({ realtime }) => unset(realtime, "PARLEY_REALTIME_URL"),
  gemini: ({ gemini }) => unset(gemini, "PARLEY_GEMINI_KEY"),
};

/** Recognisers that run on this machine. */
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

/** Why the vendor's models cannot be used here; null: they can. */
export const whyRealtimeMissing = (config: SpeechConfig, vendor: RealtimeVendor): string | null =>
  REALTIME[vendor](config, null);

/** How many speakers the recogniser of that code follows at a time. */
export const speakersMax = (code: string): number => SPEAKERS_MAX[code] ?? Infinity;

function usable(
  engines: Record<string, Missing>, config: SpeechConfig, language: string,
): string[] {
  if (config.mode === "loopback") return ["loopback"];
  return Object.keys(engines).filter((code) => engines[code]?.(config, language) === null);
}

/** The codes of those that can be used for the language, best first. */
export const usableSynthesizers = (config: SpeechConfig, language: string): string[] =>
  usable(SYNTHESIZERS, config, language);
export const usableTranscribers = (config: SpeechConfig, language: string): string[] =>
  usable(TRANSCRIBERS, config, language);

const choose = (codes: string[], wanted: string | null): string | null =>
  codes.find((code) => code === wanted) ?? codes[0] ?? null;

/** The engine wanted where it can be used, else the best that can; null: there is none. */
export function chooseSynthesizer(config: SpeechConfig, wanted: Wanted): string | null {
  return choose(usableSynthesizers(config, wanted.language), wanted.code);
}

export function chooseTranscriber(config: SpeechConfig, wanted: Wanted): string | null {
  return choose(usableTranscribers(config, wanted.language), wanted.code);
}

/** What would let the server recognise a language that it cannot, in one sentence. */
export function whyNoTranscriber({ sherpa }: SpeechConfig): string {
  return [
    sherpa && sherpaMissing(),
    "Set PARLEY_DEEPGRAM_KEY, the key of another vendor, PARLEY_TRANSCRIPTION_URL or"
      + " PARLEY_SHERPA_DIR for a recogniser that understands it.",
  ].filter((sentence) => sentence !== null).join(" ");
}
