// A server without one vendor of speech.
import type { SpeechConfig } from "#providers/speech/engines.ts";

export const NOTHING_SET_UP: SpeechConfig = {
  mode: "auto", transcription: null, synthesis: null, deepgram: null, assemblyAi: null,
  soniox: null, gladia: null, azureEars: null, azureVoice: null, googleVoice: null,
  cartesiaEars: null, cartesiaVoice: null, elevenLabs: null, realtime: null, gemini: null,
  sherpa: null, turnEnds: null,
};
