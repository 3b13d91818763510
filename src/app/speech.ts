// Composition root, the part about speech vendors: whose recognisers, voices and realtime models
// the settings name. Called by features.ts.
import type { Config } from "#config/config.ts";
import type { SpeechConfig, VendorConfig } from "#providers/speech/engines.ts";

const vendorOf = (url: string | null, key: string | null, model: string): VendorConfig | null =>
  url === null ? null : { url, key, model };

/** The same for a vendor with a default address: used where there is a key. */
const keyedVendorOf: typeof vendorOf = (url, key, model) =>
  key === null ? null : vendorOf(url, key, model);

/** Each region has one server for recognition and one for synthesis. */
function azureOf(config: Config, server: "stt" | "tts"): SpeechConfig["azureEars"] {
  const { PARLEY_AZURE_KEY: key, PARLEY_AZURE_REGION: region, PARLEY_AZURE_URL: own } = config;
  const url = own ?? `https://${region}.${server}.speech.microsoft.com`;
  return key === null ? null : { url, key };
}

export function speechConfigOf(config: Config): SpeechConfig {
  const synthesis = vendorOf(
    config.PARLEY_SYNTHESIS_URL, config.PARLEY_SYNTHESIS_KEY, config.PARLEY_SYNTHESIS_MODEL);
  const sherpa = config.PARLEY_SHERPA_DIR;
  return {
    mode: config.PARLEY_SPEECH,
    transcription: vendorOf(config.PARLEY_TRANSCRIPTION_URL, config.PARLEY_TRANSCRIPTION_KEY,
      config.PARLEY_TRANSCRIPTION_MODEL),
    synthesis: synthesis && { ...synthesis, voice: config.PARLEY_SYNTHESIS_VOICE },
    deepgram: keyedVendorOf(
      config.PARLEY_DEEPGRAM_URL, config.PARLEY_DEEPGRAM_KEY, config.PARLEY_DEEPGRAM_MODEL),
    assemblyAi: keyedVendorOf(
      config.PARLEY_ASSEMBLYAI_URL, config.PARLEY_ASSEMBLYAI_KEY, config.PARLEY_ASSEMBLYAI_MODEL),
    soniox: keyedVendorOf(
      config.PARLEY_SONIOX_URL, config.PARLEY_SONIOX_KEY, config.PARLEY_SONIOX_MODEL),
    gladia: keyedVendorOf(
      config.PARLEY_GLADIA_URL, config.PARLEY_GLADIA_KEY, config.PARLEY_GLADIA_MODEL),
    azureEars: azureOf(config, "stt"),
    azureVoice: azureOf(config, "tts"),
    googleVoice: keyedVendorOf(config.PARLEY_GOOGLE_URL, config.PARLEY_GOOGLE_KEY, ""),
    cartesiaEars: keyedVendorOf(config.PARLEY_CARTESIA_URL, config.PARLEY_CARTESIA_KEY,
      config.PARLEY_CARTESIA_TRANSCRIPTION_MODEL),
    cartesiaVoice: keyedVendorOf(config.PARLEY_CARTESIA_URL, config.PARLEY_CARTESIA_KEY,
      config.PARLEY_CARTESIA_SYNTHESIS_MODEL),
    elevenLabs: keyedVendorOf(
      config.PARLEY_ELEVENLABS_URL, config.PARLEY_ELEVENLABS_KEY, config.PARLEY_ELEVENLABS_MODEL),
    realtime: vendorOf(
      config.PARLEY_REALTIME_URL, config.PARLEY_REALTIME_KEY, config.PARLEY_REALTIME_MODEL),
    gemini: keyedVendorOf(
      config.PARLEY_GEMINI_URL, config.PARLEY_GEMINI_KEY, config.PARLEY_GEMINI_MODEL),
    sherpa: sherpa && { model: sherpa, languages: config.PARLEY_SHERPA_LANGUAGES },
    turnEnds: config.PARLEY_END_OF_TURN_MODEL,
  };
}
