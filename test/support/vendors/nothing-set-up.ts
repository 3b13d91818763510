// The configuration of a server without any speech vendor.
import type { SpeechConfig } from "#providers/speech/engines.ts";

export const NOTHING_SET_UP: SpeechConfig = {
  mode: "auto", transcription: null, synthesis: null, deepgram: null, assemblyAi: null,
  soniox: null, gladia: null, azureEars: null, azureVoice: null, googleVoice: null,
  cartesiaEars: null, cartesiaVoice: null, elevenLabs: null, realtime: null, gemini: null,
  sherpa: null, turnEnds: null,
};
