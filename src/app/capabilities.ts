// Composition root, the part about what this server can do for assistants: connects speech engines
// and models to the rules about them. Called by features.ts.
import {
  createVoiceAvailability, remembering, type Capabilities, type VoiceAvailability,
} from "#features/assistants/capabilities.ts";
import { voiceCodeOf, type Catalogs } from "#features/assistants/catalogs.ts";
import { createVoicePreviews, type VoicePreviews } from "#features/assistants/voice-previews.ts";
import { monoWav } from "#audio/wav.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { ModelCatalog } from "#providers/models/catalog.ts";
import { synthesizerAbilities, transcriberAbilities } from "#providers/speech/abilities.ts";
import {
  chooseSynthesizer, chooseTranscriber, whyNoTranscriber, whyRealtimeMissing,
  whySynthesizerMissing, whyTranscriberMissing, type SpeechConfig,
} from "#providers/speech/engines.ts";
import type { openSynthesizers } from "#providers/speech/opening.ts";
import { REALTIME_VENDORS, type Pcm } from "#providers/speech/port.ts";
import type { Storage } from "#storage/storage.ts";

interface CapabilityOptions {
  speech: SpeechConfig;
  catalogs: Catalogs;
  modelCatalog: ModelCatalog;
  storage: Pick<Storage, "assistants">;
  system: System;
  log: Logger;
}

interface ServerCapabilities extends Capabilities, VoiceAvailability {
  previews: VoicePreviews;
}

const PREVIEW_RATE = 24_000;

export function createCapabilities(options: CapabilityOptions): ServerCapabilities {
  const { speech, catalogs, modelCatalog, storage } = options;
  const can = remembering({
    hasAssistant: async (accountId, id) => await storage.assistants.find(accountId, id) !== null,
    whyModelMissing: modelCatalog.whyMissing,
    isOffline: modelCatalog.isOffline,
    whyRealtimeMissing: (codes) => {
      const reasons = REALTIME_VENDORS
        .filter((vendor) => codes === undefined || codes.includes(vendor))
        .map((vendor) => whyRealtimeMissing(speech, vendor));
      return reasons.includes(null) ? null : reasons[0] ?? null;
    },
    whySynthesizerMissing: (code, language) => whySynthesizerMissing(speech, { code, language }),
    whyTranscriberMissing: (code, language) => whyTranscriberMissing(speech, { code, language }),
    whyNothingHears: () => whyNoTranscriber(speech),
    synthesizerFor: (language, code) => chooseSynthesizer(speech, { language, code }),
    transcriberFor: (language, code) => chooseTranscriber(speech, { language, code }),
    synthesizerAbilities: (code) => synthesizerAbilities(code, speech),
    transcriberAbilities: (code) => transcriberAbilities(code, speech),
  });
  const voices = createVoiceAvailability(catalogs, can);
  return {
    ...can,
    ...voices,
    previews: createVoicePreviews({
      catalogs, whyMissing: voices.whyUnspoken, speak: createSpeaker(options, can),
    }),
  };
}

/** Opens the engines when a voice is first played. */
function createSpeaker(
  { speech, system, log }: CapabilityOptions, can: Pick<Capabilities, "synthesizerFor">,
): Parameters<typeof createVoicePreviews>[0]["speak"] {
  let opening: ReturnType<typeof openSynthesizers> | null = null;
  return async ({ voice, language, provider, text, ...manner }) => {
    const code = can.synthesizerFor(language, provider);
    if (code === null) return null;
    const { openSynthesizers, speakWhole } = await import("#providers/speech/opening.ts");
    opening ??= openSynthesizers(speech, { system, log });
    const synthesizers = await opening;
    const wanted = {
      rate: PREVIEW_RATE, voice: voiceCodeOf(voice, code), gender: voice.gender, language,
      ...manner,
    };
    const spoken = Promise.withResolvers<Pcm | null>();
    speakWhole(synthesizers(code), wanted, text, spoken.resolve);
    const pcm = await spoken.promise;
    if (pcm?.length === 0) return new Uint8Array(0);
    return pcm && monoWav([pcm], PREVIEW_RATE);
  };
}
