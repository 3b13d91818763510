// Voice previews: a short sentence in the voice's language, spoken by the engine that would speak
// for an assistant with that voice. They are public (audio players send no API key), so each is
// synthesised once and cached: there are only as many as the catalog has voices.
import type { Catalogs, Voice } from "./catalogs.ts";

export interface VoicePreviews {
  /** Whether this server can preview the voice itself, not a substitute. */
  has(voice: Voice): boolean;
  /** A WAV file; null when there is none or the engine has failed. */
  get(voiceId: number): Promise<Uint8Array<ArrayBuffer> | null>;
  /**
   * Speaks the text, or else the language's sentence, as calls would. Null when the engine has
   * failed; an empty file when the text has nothing to say.
   */
  say(spoken: Omit<Spoken, "text">, text: string | null): Promise<Uint8Array<ArrayBuffer> | null>;
}

/** A text and how to speak it, as in the assistant's settings. */
interface Spoken {
  voice: Voice;
  /** `iso_2`. */
  language: string;
  /** The speech provider's code; null: chosen by the language. */
  provider: string | null;
  speed: number;
  stability: number;
  similarity: number;
  hasEmotion: boolean;
  text: string;
}

interface VoicePreviewOptions {
  catalogs: Catalogs;
  /** Why the voice cannot be heard on this server; null: it can. */
  whyMissing(voice: Voice): string | null;
  /** A WAV file; null when the engine has failed, empty where there is nothing to say. */
  speak(spoken: Spoken): Promise<Uint8Array<ArrayBuffer> | null>;
}

const PLAIN = { speed: 1, stability: 0.7, similarity: 0.5, hasEmotion: false } as const;

const ENGLISH = "en";
const SENTENCES: Record<string, string> = {
  en: "Hello, how can I help you today?",
  ro: "Bună ziua, cu ce vă pot ajuta astăzi?",
  fr: "Bonjour, comment puis-je vous aider aujourd'hui ?",
  es: "Hola, ¿en qué puedo ayudarle hoy?",
  de: "Guten Tag, wie kann ich Ihnen heute helfen?",
  lt: "Laba diena, kuo galiu jums padėti?",
  it: "Buongiorno, come posso aiutarla oggi?",
  ar: "مرحبًا، كيف يمكنني مساعدتك اليوم؟",
  pt: "Olá, em que posso ajudar hoje?",
  da: "Goddag, hvad kan jeg hjælpe med i dag?",
};

export function createVoicePreviews(options: VoicePreviewOptions): VoicePreviews {
  const { catalogs, whyMissing, speak } = options;
  const spoken = new Map<number, Promise<Uint8Array<ArrayBuffer> | null>>();
  const languageOf = ({ language_id: id }: Voice): string =>
    (id === null ? null : catalogs.findLanguage(id)?.iso_2) ?? ENGLISH;
  const has: VoicePreviews["has"] = (voice) =>
    Object.hasOwn(SENTENCES, languageOf(voice)) && whyMissing(voice) === null;
  return {
    has,
    get: async (voiceId) => {
      const voice = catalogs.findVoice(voiceId);
      if (!voice || !has(voice)) return null;
      const language = languageOf(voice);
      const { code = null } = catalogs.findSynthesizer(voice.synthesizer_provider_id ?? 0) ?? {};
      const text = SENTENCES[language] ?? "";
      const file = spoken.get(voiceId)
        ?? speak({ ...PLAIN, voice, language, provider: code, text });
      spoken.set(voiceId, file);
      if ((await file)?.length) return file;
      spoken.delete(voiceId);
      return null;
    },
    say: (wanted, text) =>
      speak({ ...wanted, text: text ?? SENTENCES[wanted.language] ?? SENTENCES[ENGLISH] ?? "" }),
  };
}
