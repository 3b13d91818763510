// Composition root, the part about calls: speech engines, media thread, recordings, and what joins
// them to the features below. Called by features.ts.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Assistant } from "./assistants/assistants.ts";
import type { Catalogs } from "./assistants/catalogs.ts";
import type { Calls } from "./calls/calls.ts";
import { createCalling, type Calling } from "./calls/calling.ts";
import { createEvaluate } from "./calls/evaluation.ts";
import { createMediaThread } from "./calls/media.ts";
import type { Recordings } from "./calls/recordings.ts";
import type { CallingOptions } from "./calls/replies.ts";
import { voiceSettingsOf } from "./calls/voice/settings.ts";
import type { Config } from "./config.ts";
import { Fault } from "./core/faults.ts";
import type { Logger } from "./core/logger.ts";
import type { System } from "./core/system.ts";
import {
  chooseSynthesizer, chooseTranscriber, whyNoTranscriber, type SpeechConfig, type VendorConfig,
} from "./providers/speech/engines.ts";

export interface VoiceOptions
  extends Pick<CallingOptions, "findAssistant" | "resolveModel" | "sourcesOf" | "referenceFor" | "limits"> {
  config: Config;
  catalogs: Catalogs;
  calls: Calls;
  recordings: Recordings;
  system: System;
  log: Logger;
}

export interface Voice {
  calling: Calling;
  /** Throws Fault 422 when nothing can speak or understand the assistant's language. */
  assertCanTalk(assistant: Assistant): void;
  close(): Promise<void>;
}

export function createVoice(options: VoiceOptions): Voice {
  const { config, calls, recordings, system, log } = options;
  mkdirSync(recordings.folder, { recursive: true, mode: 0o700 });
  const speech = speechConfigOf(config);
  const media = createMediaThread({ speech, logLevel: config.PARLEY_LOG_LEVEL }, log);
  const voiceOf = (assistant: Assistant, isOutbound: boolean) =>
    chooseVoice(speech, options.catalogs, assistant, isOutbound);
  const calling = createCalling({
    ...options,
    calls,
    media,
    voiceOf,
    evaluate: createEvaluate({ resolveModel: options.resolveModel, system, log }),
    recordingsDir: recordings.folder,
    hasRealtime: speech.realtime !== null,
  });
  return {
    calling,
    assertCanTalk: (assistant) => void voiceOf(assistant, false),
    close: async () => {
      await calling.drain();
      await media.close();
    },
  };
}

export const recordingsFolder = (config: Config): string =>
  join(config.PARLEY_DATA_DIR, "recordings");

const vendorOf = (url: string | null, key: string | null, model: string): VendorConfig | null =>
  url === null ? null : { url, key, model };

function speechConfigOf(config: Config): SpeechConfig {
  return {
    mode: config.PARLEY_SPEECH,
    deepgram: config.PARLEY_DEEPGRAM_KEY === null
      ? null
      : vendorOf(
          config.PARLEY_DEEPGRAM_URL, config.PARLEY_DEEPGRAM_KEY, config.PARLEY_DEEPGRAM_MODEL),
    realtime: vendorOf(
      config.PARLEY_REALTIME_URL, config.PARLEY_REALTIME_KEY, config.PARLEY_REALTIME_MODEL),
  };
}

function chooseVoice(
  speech: SpeechConfig,
  catalogs: Catalogs,
  assistant: Assistant,
  isOutbound: boolean,
): ReturnType<CallingOptions["voiceOf"]> {
  const { settings } = assistant;
  const language = catalogs.findLanguage(settings.language_id);
  const voice = catalogs.findVoice(settings.voice_id);
  if (!language || !voice) throw new Fault(422, "The assistant's language or voice is not there any more.");
  const codeOf = (provider: { code: string } | null): string | null => provider?.code ?? null;
  const synthesizer = chooseSynthesizer(speech, {
    language: language.iso_2,
    code: settings.synthesizer_provider_id !== null
      ? codeOf(catalogs.findSynthesizer(settings.synthesizer_provider_id))
      : voice.synthesizer_provider_id === null
        ? null
        : codeOf(catalogs.findSynthesizer(voice.synthesizer_provider_id)),
  });
  const transcriber = chooseTranscriber(speech, {
    language: language.iso_2,
    code: settings.transcriber_provider_id === null
      ? null
      : codeOf(catalogs.findTranscriber(settings.transcriber_provider_id)),
  });
  if (!synthesizer) {
    throw new Fault(422, `No speech engine of this server can speak ${language.name}.`);
  }
  if (!transcriber) {
    throw new Fault(422, `No speech engine of this server can understand ${language.name}. `
      + whyNoTranscriber(language.iso_2));
  }
  return {
    settings: voiceSettingsOf(assistant, {
      language: language.iso_2,
      fillers: catalogs.fillers(language.id),
      voice: { voice: voice.codes[synthesizer] ?? null, gender: voice.gender },
      isOutbound,
    }),
    engines: { synthesizer, transcriber },
  };
}
