// What is known about vendors' models: languages and parameters. A model that is not listed is
// assumed capable. Kept apart from the adaptors, because the main thread needs it and loads no
// adaptor.
const ASSEMBLYAI_LANGUAGES: Record<string, readonly string[]> = {
  "universal-streaming-english": ["en"],
  "universal-streaming-multilingual": ["en", "es", "de", "fr", "pt", "it"],
};
/** Models that take a language. Others detect it in the text, and refuse the parameter. */
const TOLD_LANGUAGE = /^eleven_(flash|turbo)_v2_5/;
/** The languages of those models; any other would be refused, so they are left to guess it. */
const ELEVENLABS_LANGUAGES = new Set([
  "ar", "bg", "cs", "da", "de", "el", "en", "es", "fi", "fil", "fr", "hi", "hr", "hu", "id", "it",
  "ja", "ko", "ms", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sv", "ta", "tr", "uk", "vi", "zh",
]);

/** Whether the model understands the language. */
export const assemblyAiHears = (model: string, language: string): boolean =>
  ASSEMBLYAI_LANGUAGES[model]?.includes(language) ?? true;

/** Whether the model follows a speaker from one language into another. */
export const assemblyAiHearsSeveral = (model: string): boolean =>
  ASSEMBLYAI_LANGUAGES[model]?.length !== 1;

/** Whether the model follows a speaker from one language into another. */
export const deepgramHearsSeveral = (model: string): boolean =>
  /^nova-3|^flux-.*-multi$/.test(model);

/** Whether the model takes the language as a parameter. */
export const elevenLabsIsTold = (model: string): boolean => TOLD_LANGUAGE.test(model);

/** Whether the model is known to speak the language. */
export const elevenLabsSpeaks = (model: string, language: string): boolean =>
  !elevenLabsIsTold(model) || ELEVENLABS_LANGUAGES.has(language);

/** Whether the model of OpenAI's takes instructions; older ones refuse them. */
export const openAiTakesInstructions = (model: string): boolean => !/^tts-1/.test(model);
