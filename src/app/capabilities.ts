// Composition root, the part about what this server can do for assistants: which models, voices and
// recognisers it has, and what a voice sounds like. Called by features.ts.
import type { Catalogs, SpeechProvider, Voice } from "#features/assistants/catalogs.ts";
import { createVoicePreviews, type VoicePreviews } from "#features/assistants/voice-previews.ts";
import type { Capabilities } from "#features/assistants/warnings.ts";
import { monoWav } from "#audio/wav.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { ModelCatalog } from "#providers/models/catalog.ts";
import { synthesizerAbilities, transcriberAbilities } from "#providers/speech/abilities.ts";
import {
  chooseSynthesizer, chooseTranscriber, openSynthesizers, speakWhole, whySynthesizerMissing,
  whyTranscriberMissing,
} from "#providers/speech/engines.ts";
import type { Storage } from "#storage/storage.ts";
import { OPENAI_VOICES, speechConfigOf } from "./calls.ts";

export interface CapabilityOptions {
  config: Config;
  system: System;
  log: Logger;
}

export interface ServerCapabilities extends Capabilities {
  whyVoiceMissing(voice: Voice): string | null;
  whyProviderMissing(kind: "synthesizer" | "transcriber", provider: SpeechProvider): string | null;
  previews: VoicePreviews;
}

const NO_REALTIME = "The setting PARLEY_REALTIME_URL is not set on this server.";
const NOTHING_SPEAKS = "Nothing on this server speaks the language of the voice.";
const PREVIEW_RATE = 24_000;

export function createCapabilities(
  options: CapabilityOptions,
  { assistants }: Pick<Storage, "assistants">,
  { catalogs, modelCatalog }: { catalogs: Catalogs; modelCatalog: ModelCatalog },
): ServerCapabilities {
  const speech = speechConfigOf(options.config);
  const can: Capabilities = {
    hasAssistant: (accountId, id) => assistants.find(accountId, id) !== null,
    whyModelMissing: modelCatalog.whyMissing,
    whyRealtimeMissing: () => (speech.realtime === null ? NO_REALTIME : null),
    // Lists ask for many assistants at once, and the answers look for files and packages. What is
    // installed later counts from the next start.
    whySynthesizerMissing: remembered((code: string, language: string | null) =>
      whySynthesizerMissing(speech, { code, language })),
    whyTranscriberMissing: remembered((code: string, language: string | null) =>
      whyTranscriberMissing(speech, { code, language })),
    synthesizerFor: remembered((language: string, code: string | null) =>
      chooseSynthesizer(speech, { language, code })),
    transcriberFor: remembered((language: string, code: string | null) =>
      chooseTranscriber(speech, { language, code })),
    synthesizerAbilities: (code) => synthesizerAbilities(code, speech),
    transcriberAbilities: (code) => transcriberAbilities(code, speech),
  };
  const languageOf = ({ language_id: id }: Voice): string =>
    (id === null ? null : catalogs.findLanguage(id)?.iso_2) ?? "en";
  const engineOf = (voice: Voice): string | null => {
    const { synthesizer_provider_id: id } = voice;
    const provider = id === null ? null : catalogs.findSynthesizer(id);
    return can.synthesizerFor(languageOf(voice), provider?.code ?? null);
  };
  const whyVoiceMissing = (voice: Voice): string | null => {
    const { synthesizer_provider_id: id, language_id: languageId, modes } = voice;
    if (modes.every((mode) => mode === "multimodal")) return can.whyRealtimeMissing();
    const provider = id === null ? null : catalogs.findSynthesizer(id);
    const language = languageId === null ? null : languageOf(voice);
    if (provider) return can.whySynthesizerMissing(provider.code, language);
    return engineOf(voice) === null ? NOTHING_SPEAKS : null;
  };
  return {
    ...can,
    whyVoiceMissing,
    whyProviderMissing: (kind, { code }) => kind === "synthesizer"
      ? can.whySynthesizerMissing(code, null)
      : can.whyTranscriberMissing(code, null),
    previews: createVoicePreviews({
      catalogs,
      whyMissing: (voice) => (engineOf(voice) === null ? NOTHING_SPEAKS : whyVoiceMissing(voice)),
      speak: createSpeaker(options, engineOf),
    }),
  };
}

/** Keeps each answer; there are as many as catalogs have codes and languages. */
function remembered<A extends string | null, B extends string | null>(
  ask: (a: A, b: B) => string | null,
): (a: A, b: B) => string | null {
  const answers = new Map<string, string | null>();
  return (a, b) => {
    const key = `${a} ${b}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = ask(a, b);
    answers.set(key, answer);
    return answer;
  };
}

/** Opens the engines when somebody first listens. */
function createSpeaker(
  { config, system, log }: CapabilityOptions, engineOf: (voice: Voice) => string | null,
): Parameters<typeof createVoicePreviews>[0]["speak"] {
  let synthesizers: ReturnType<typeof openSynthesizers> | null = null;
  return (voice, language, text) => new Promise((resolve) => {
    const code = engineOf(voice);
    if (code === null) return resolve(null);
    synthesizers ??= openSynthesizers(speechConfigOf(config), { system, log });
    const name = code === "openai-compatible" ? OPENAI_VOICES : code;
    const wanted = {
      rate: PREVIEW_RATE, voice: voice.codes[name] ?? null, gender: voice.gender, language,
      speed: 1, stability: 0.7, similarity: 0.5, hasEmotion: false,
    };
    speakWhole(synthesizers(code), wanted, text, (pcm) => {
      resolve(pcm === null || pcm.length === 0 ? null : monoWav([pcm], PREVIEW_RATE));
    });
  });
}
