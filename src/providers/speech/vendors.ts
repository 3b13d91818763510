// The adaptors of speech vendors, keyed by their codes in the catalogs. A server loads those that
// are set up and no others, as each brings its HTTP or WebSocket client along. Used by opening.ts.
import type { SpeechConfig, VendorOptions } from "./engines.ts";
import type { RealtimeVendor, SpeechToSpeech, Synthesizer, Transcriber } from "./port.ts";

/** Resolves to null where it is not set up. */
type Load<Engine> = (config: SpeechConfig, options: VendorOptions) => Promise<Engine | null>;
type Loads<Code extends string, Engine> = Record<Code, Load<Engine>>;

const EARS: Loads<string, Transcriber> = {
  deepgram: async ({ deepgram }, options) => {
    if (!deepgram) return null;
    const args = { ...deepgram, ...options };
    return deepgram.model.startsWith("flux")
      ? (await import("./deepgram/deepgram-flux.ts")).createDeepgramFlux(args)
      : (await import("./deepgram/deepgram.ts")).createDeepgram(args);
  },
  assemblyai: async ({ assemblyAi: set }, options) => set
    && (await import("./assemblyai/assemblyai.ts")).createAssemblyAi({ ...set, ...options }),
  soniox: async ({ soniox: set }, options) => set
    && (await import("./soniox/soniox.ts")).createSoniox({ ...set, ...options }),
  gladia: async ({ gladia: set }, options) => set
    && (await import("./gladia/gladia.ts")).createGladia({ ...set, ...options }),
  cartesia: async ({ cartesiaEars: set }, options) => set
    && (await import("./cartesia/cartesia-ears.ts")).createCartesiaEars({ ...set, ...options }),
  azure: async ({ azureEars: set }, options) => set
    && (await import("./azure/azure-ears.ts")).createAzureEars({ ...set, ...options }),
  "openai-compatible": async ({ transcription: set }, options) => set
    && (await import("./openai/openai-transcription.ts"))
      .createOpenAiTranscription({ ...set, ...options }),
};

const VOICES: Loads<string, Synthesizer> = {
  elevenlabs: async ({ elevenLabs: set }, options) => set
    && (await import("./elevenlabs/elevenlabs.ts")).createElevenLabs({ ...set, ...options }),
  cartesia: async ({ cartesiaVoice: set }, options) => set
    && (await import("./cartesia/cartesia-voice.ts")).createCartesiaVoice({ ...set, ...options }),
  azure: async ({ azureVoice: set }) => set
    && (await import("./azure/azure-voice.ts")).createAzureVoice(set),
  google: async ({ googleVoice: set }) => set
    && (await import("./google/google-voice.ts")).createGoogleVoice(set),
  "openai-compatible": async ({ synthesis: set }, options) => set
    && (await import("./openai/openai-speech.ts")).createOpenAiSpeech({ ...set, ...options }),
};

const REALTIME: Loads<RealtimeVendor, SpeechToSpeech> = {
  openai: async ({ realtime: set }, options) => set
    && (await import("./openai/openai-realtime.ts")).createOpenAiRealtime({ ...set, ...options }),
  gemini: async ({ gemini: set }, options) => set
    && (await import("./gemini/gemini-live.ts")).createGeminiLive({ ...set, ...options }),
};

/** Resolves to a function from code to engine; null: it is not set up, or the code is unknown. */
const loader = <Code extends string, Engine>(loads: Loads<Code, Engine>) =>
  async (config: SpeechConfig, options: VendorOptions): Promise<(code: Code) => Engine | null> => {
    const loading = Object.entries<Load<Engine>>(loads).map(async ([code, load]) =>
      [code, await load(config, options)] as const);
    const engines = new Map<string, Engine | null>(await Promise.all(loading));
    return (code) => engines.get(code) ?? null;
  };

export const loadVendorEars = loader(EARS);
export const loadVendorVoices = loader(VOICES);
export const loadRealtimeModels = loader(REALTIME);
