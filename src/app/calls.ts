// Composition root, the part about calls: speech engines, media thread, recordings, and what joins
// them to the features below. Called by features.ts.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Catalogs } from "#features/assistants/catalogs.ts";
import type { Calls } from "#features/calls/calls.ts";
import { createCalling, type Calling } from "#features/calls/calling.ts";
import { createEvaluate } from "#features/calls/evaluation.ts";
import { createMediaThread } from "#features/calls/media.ts";
import type { MediaThread } from "#features/calls/voice/protocol.ts";
import type { Recordings } from "#features/calls/recordings.ts";
import type { Hearing } from "#features/calls/records.ts";
import type { CallingOptions } from "#features/calls/live-call.ts";
import type { ChosenVoice, GivenWords, VoiceOf } from "#features/calls/voice-choice.ts";
import { hintsOf, voiceSettingsOf } from "#features/calls/voice/settings.ts";
import { createHostedLines, type HostedLines } from "./hosted-carriers.ts";
import type { Config } from "#config/config.ts";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { formatForTrunk } from "#features/phone-numbers/dialled.ts";
import type { InboundStore } from "#features/phone-numbers/inbound-routing.ts";
import type { SipTrunks } from "#features/phone-numbers/sip-trunks.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { SipListener } from "#providers/carriers/sip/trunks/trunk.ts";
import type { ModelCatalog } from "#providers/models/catalog.ts";
import { transcriberAbilities } from "#providers/speech/abilities.ts";
import {
  chooseSynthesizer, chooseTranscriber, whyNoTranscriber, type SpeechConfig, type VendorConfig,
} from "#providers/speech/engines.ts";

export interface VoiceOptions
  extends Pick<
    CallingOptions,
    | "askInbound" | "findAssistant" | "languagesOf" | "resolveModel" | "sourcesOf"
    | "referenceFor" | "limits" | "routeInbound" | "warningsOf"
  > {
  sipTrunks: SipTrunks;
  findHosted: InboundStore["findHosted"];
  config: Config;
  catalogs: Catalogs;
  realtimeName: ModelCatalog["realtimeName"];
  /** Titles of what the assistant knows. */
  titlesOf(assistant: Assistant): string[];
  calls: Calls;
  recordings: Recordings;
  system: System;
  log: Logger;
  /** Milliseconds a tick of the media clock came late by. */
  observeLateness(ms: number): void;
}

export interface Voice {
  calling: Calling;
  /** Without those that could not reach this server. */
  hosted: HostedLines;
  /** Throws Fault 422 when the assistant cannot call from the number. */
  assertCanCall(assistant: Assistant, phoneNumber: string | null): void;
  /** Calls may come in from now on. */
  listen: MediaThread["listen"];
  /**
   * Throws Fault 422 when nothing can speak the assistant's language, or understand it without the
   * words the far end gives. What a call would be heard by.
   */
  hearingOf(assistant: Assistant, words: GivenWords | null): Hearing;
  close(): Promise<void>;
}

export function createVoice(options: VoiceOptions): Voice {
  const { config, calls, recordings, system, log } = options;
  mkdirSync(recordings.folder, { recursive: true, mode: 0o700 });
  const speech = speechConfigOf(config);
  const { carrier: trunks } = options.sipTrunks;
  const media = createMediaThread({
    data: {
      speech, logLevel: config.PARLEY_LOG_LEVEL, sip: sipListenerOf(config),
      reachableNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS,
    },
    trunks: trunks.listActive,
    onLateness: options.observeLateness,
    system,
    log,
  });
  trunks.onChange(media.trunksChanged);
  const voiceOf: VoiceOf = (assistant, call) =>
    chooseVoice(speech, options, assistant, call);
  const hosted = createHostedLines(options);
  const lines = createLines(options, hosted);
  const calling = createCalling({
    ...options,
    calls,
    media,
    voiceOf,
    lineOf: lines.of,
    carrierRateOf: (leg) => config.PARLEY_CARRIER_RATES_FILE?.of(leg) ?? 0,
    evaluate: createEvaluate({ resolveModel: options.resolveModel, system, log }),
  });
  return {
    calling,
    hosted,
    assertCanCall: (assistant, phoneNumber) => {
      lines.assert(assistant.accountId, phoneNumber);
      const isScript = lines.isLoopback(assistant.accountId, phoneNumber);
      voiceOf(assistant, { isOutbound: true, words: isScript ? "script" : null });
    },
    listen: media.listen,
    hearingOf: (assistant, words) => voiceOf(assistant, { isOutbound: false, words }).hearing,
    close: async () => {
      await calling.drain();
      await Promise.all([...hosted.values()].map((one) => one.close()));
      await media.close();
    },
  };
}

const whyNoLine = (carrier: HostedAccount): string =>
  `The number is at ${carrier}: calls need the settings PARLEY_${carrier.toUpperCase()}_…`
  + (carrier === "asterisk" ? "." : " and PARLEY_PUBLIC_URL.");

/** The way a call leaves by is the one its own number came by. */
function createLines(options: VoiceOptions, hosted: HostedLines) {
  const { config, sipTrunks, findHosted, log } = options;
  const trunksOf = (accountId: number, phoneNumber: string | null) =>
    sipTrunks.all().filter((one) =>
      one.accountId === accountId && one.phoneNumber === phoneNumber);
  const carrierOf = (accountId: number, phoneNumber: string | null): HostedAccount | null => {
    const number = phoneNumber === null ? null : findHosted(phoneNumber);
    return number?.accountId === accountId ? number.carrier : null;
  };
  const of: CallingOptions["lineOf"] = (call, { phoneNumberId }) => {
    const { id, accountId, assistantPhone, customerPhone } = call;
    const trunks = trunksOf(accountId, assistantPhone);
    // A number may be reached over several trunks: the assistant's own goes before the others.
    const trunk = trunks.find((one) => one.id === phoneNumberId) ?? trunks[0];
    if (!trunk) {
      const carrier = carrierOf(accountId, assistantPhone);
      if (carrier === null) return { carrier: "loopback" };
      const line = hosted.get(carrier);
      if (!line) log.warn({ call_id: id }, whyNoLine(carrier));
      return line ? { carrier: "hosted", hosted: line } : whyNoLine(carrier);
    }
    if (config.PARLEY_SIP_PORT === null) {
      log.warn({ call_id: id }, "PARLEY_SIP_PORT is not set: no calls over SIP trunks");
      return "the settings PARLEY_SIP_PORT are missing";
    }
    return { carrier: "sip", trunkId: trunk.id, to: formatForTrunk(trunk, customerPhone ?? "") };
  };
  const isLoopback = (accountId: number, phoneNumber: string | null): boolean =>
    trunksOf(accountId, phoneNumber).length === 0 && carrierOf(accountId, phoneNumber) === null;
  const assert = (accountId: number, phoneNumber: string | null): void => {
    if (trunksOf(accountId, phoneNumber).length > 0) return;
    const carrier = carrierOf(accountId, phoneNumber);
    if (carrier !== null && !hosted.has(carrier)) throw new Fault(422, whyNoLine(carrier));
  };
  return { of, assert, isLoopback };
}

function sipListenerOf(config: Config): SipListener | null {
  const {
    PARLEY_SIP_PORT: port, PARLEY_TLS_KEY_FILE: key, PARLEY_TLS_CERT_FILE: cert,
  } = config;
  if (port === null) return null;
  return {
    port,
    host: config.PARLEY_SIP_HOST,
    publicHost: config.PARLEY_SIP_PUBLIC_HOST,
    rtpPorts: config.PARLEY_RTP_PORTS,
    tls: key !== null && cert !== null
      ? { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") }
      : null,
  };
}

export const recordingsFolder = (config: Config): string =>
  join(config.PARLEY_DATA_DIR, "recordings");

const vendorOf = (url: string | null, key: string | null, model: string): VendorConfig | null =>
  url === null ? null : { url, key, model };

/** Of a vendor whose address has a default: used where there is a key. */
const keyedVendorOf: typeof vendorOf = (url, key, model) =>
  key === null ? null : vendorOf(url, key, model);

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
    elevenLabs: keyedVendorOf(
      config.PARLEY_ELEVENLABS_URL, config.PARLEY_ELEVENLABS_KEY, config.PARLEY_ELEVENLABS_MODEL),
    realtime: vendorOf(
      config.PARLEY_REALTIME_URL, config.PARLEY_REALTIME_KEY, config.PARLEY_REALTIME_MODEL),
    sherpa: sherpa && { model: sherpa, languages: config.PARLEY_SHERPA_LANGUAGES },
  };
}

const codeOf = (provider: { code: string } | null): string | null => provider?.code ?? null;

/** Catalogs name OpenAI's voices once for all servers that have them. */
export const OPENAI_VOICES = "openai";

function chooseVoice(
  speech: SpeechConfig,
  options: Pick<VoiceOptions, "catalogs" | "realtimeName" | "titlesOf">,
  assistant: Assistant,
  { isOutbound, isRealtime, language: spoken, words }: Parameters<VoiceOf>[1],
): ChosenVoice {
  const { catalogs } = options;
  const { mode, settings } = assistant;
  const known = [settings.language_id, ...settings.secondary_language_ids]
    .flatMap((id) => catalogs.findLanguage(id) ?? []);
  const language = known.find(({ iso_2: code }) => code === spoken) ?? known[0];
  const voice = catalogs.findVoice(settings.voice_id);
  if (!language || !voice) {
    throw new Fault(422, "The assistant's language or voice is not there any more.");
  }
  const hearsItself = isRealtime ?? (mode !== "pipeline" && speech.realtime !== null);
  const speaksItself = hearsItself && mode !== "dualplex";
  const synthesizerId = settings.synthesizer_provider_id ?? voice.synthesizer_provider_id;
  const synthesizer = chooseSynthesizer(speech, {
    language: language.iso_2,
    code: synthesizerId === null ? null : codeOf(catalogs.findSynthesizer(synthesizerId)),
  });
  const transcriber = chooseTranscriber(speech, {
    language: language.iso_2,
    code: settings.transcriber_provider_id === null
      ? null
      : codeOf(catalogs.findTranscriber(settings.transcriber_provider_id)),
  });
  if (!synthesizer && !speaksItself) {
    throw new Fault(422, `No speech engine of this server can speak ${language.name}.`);
  }
  const hearing = hearsItself ? "model" : words === "script" || !transcriber ? words : "server";
  if (hearing === null) {
    throw new Fault(422, `No speech engine of this server can understand ${language.name}. `
      + whyNoTranscriber(speech, language.iso_2));
  }
  // A browser listens in one language; who gives the words in writing may change it.
  const follows = hearing === "server" && transcriber !== null
    ? transcriberAbilities(transcriber, speech).severalLanguages
    : hearing !== "browser";
  const openAiVoice = voice.codes[OPENAI_VOICES] ?? null;
  const voiceCode = synthesizer === "openai-compatible" ? openAiVoice : voice.codes[synthesizer ?? ""];
  return {
    language: language.name,
    settings: voiceSettingsOf(assistant, {
      language,
      languages: follows ? [...new Set(known.map(({ iso_2: code }) => code))] : [language.iso_2],
      hints: hintsOf(assistant, options.titlesOf(assistant)),
      voice: { voice: voiceCode ?? null, gender: voice.gender },
      isOutbound,
    }),
    engines: {
      synthesizer: speaksItself ? null : synthesizer,
      transcriber: hearing === "server" ? transcriber : null,
    },
    hearing,
    realtime: hearsItself
      ? {
          voice: openAiVoice,
          language: language.iso_2,
          model: options.realtimeName(settings.multimodal_model_id),
        }
      : null,
  };
}
