// What this server can do for assistants: which models it has, which engines speak and understand
// a language, and what its voices lack. Asked by warnings, lists of voices, and before every call.
import type { Catalogs, SpeechProvider, Voice } from "./catalogs.ts";

/** A reason is one sentence; null: nothing is missing. */
export interface Capabilities {
  whyModelMissing(id: number): string | null;
  /** True: the model, or the one that stands in for it, cannot call assistants' functions. */
  isOffline(id: number): boolean;
  /**
   * Why the modes multimodal and dualplex fall back to a pipeline; with `codes`, why none of these
   * vendors is available.
   */
  whyRealtimeMissing(codes?: string[]): string | null;
  /** `language`: `iso_2`; null: any. */
  whySynthesizerMissing(code: string, language: string | null): string | null;
  whyTranscriberMissing(code: string, language: string | null): string | null;
  /** One sentence on what would let the server recognise speech. */
  whyNothingHears(): string;
  /** Code of the engine for the language, preferring `code`'s; null: there is none. */
  synthesizerFor(language: string, code: string | null): string | null;
  transcriberFor(language: string, code: string | null): string | null;
  hasAssistant(accountId: number, id: number): Promise<boolean>;
  /** Which settings the engine with this code supports. */
  synthesizerAbilities(code: string): { stability: boolean; emotion: boolean };
  transcriberAbilities(code: string): { hints: boolean; severalLanguages: boolean };
}

export interface VoiceAvailability {
  whyVoiceMissing(voice: Voice): string | null;
  /** Why calls in the language are impossible; `iso`: an `iso_2` code. */
  whyLanguageMissing(iso: string): string | null;
  whyProviderMissing(kind: "synthesizer" | "transcriber", provider: SpeechProvider): string | null;
  /** Why the voice cannot be heard other than through a realtime model. */
  whyUnspoken(voice: Voice): string | null;
}

const ENGLISH = "en";
const UNSPOKEN = "No voice on this server speaks it.";
const UNHEARD = "No recogniser on this server understands it.";
const NOTHING_SPEAKS = "No engine on this server speaks the language of the voice.";

export function createVoiceAvailability(
  catalogs: Pick<Catalogs, "findLanguage" | "findSynthesizer">, can: Capabilities,
): VoiceAvailability {
  const languageOf = ({ language_id: id }: Voice): string | null =>
    (id === null ? null : catalogs.findLanguage(id)?.iso_2 ?? ENGLISH);
  const providerOf = ({ synthesizer_provider_id: id }: Voice): SpeechProvider | null =>
    (id === null ? null : catalogs.findSynthesizer(id));
  const engineOf = (voice: Voice): string | null =>
    can.synthesizerFor(languageOf(voice) ?? ENGLISH, providerOf(voice)?.code ?? null);
  const whyVoiceMissing = (voice: Voice): string | null => {
    if (voice.modes.every((mode) => mode === "multimodal")) {
      return can.whyRealtimeMissing(Object.keys(voice.codes));
    }
    const provider = providerOf(voice);
    if (provider) return can.whySynthesizerMissing(provider.code, languageOf(voice));
    return engineOf(voice) === null ? NOTHING_SPEAKS : null;
  };
  return {
    whyVoiceMissing,
    whyLanguageMissing: (iso) => {
      if (can.synthesizerFor(iso, null) === null) return UNSPOKEN;
      return can.transcriberFor(iso, null) === null ? UNHEARD : null;
    },
    whyProviderMissing: (kind, { code }) => kind === "synthesizer"
      ? can.whySynthesizerMissing(code, null)
      : can.whyTranscriberMissing(code, null),
    whyUnspoken: (voice) => (engineOf(voice) === null ? NOTHING_SPEAKS : whyVoiceMissing(voice)),
  };
}

/**
 * Caches the answers, as many as catalogs have codes and languages, because lists ask for many
 * assistants at once and engines look for files and packages. Anything installed later takes effect
 * at the next start.
 */
export function remembering(can: Capabilities): Capabilities {
  return {
    ...can,
    whySynthesizerMissing: remembered(can.whySynthesizerMissing),
    whyTranscriberMissing: remembered(can.whyTranscriberMissing),
    synthesizerFor: remembered(can.synthesizerFor),
    transcriberFor: remembered(can.transcriberFor),
  };
}

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
