// What is known of vendors' models beforehand: languages, and what they take. Models unknown here
// are believed. Apart from the adaptors because the main thread asks it and loads none of them.
const ASSEMBLYAI_LANGUAGES: Record<string, readonly string[]> = {
  "universal-streaming-english": ["en"],
  "universal-streaming-multilingual": ["en", "es", "de", "fr", "pt", "it"],
};
/** Others hear the language from the text, and refuse the parameter. */
const TOLD_LANGUAGE = /^eleven_(flash|turbo)_v2_5/;
/** What those models know; one they do not is refused, so it is left for them to guess. */
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
