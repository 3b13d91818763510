// Composition root, the part about calls: speech engines, media thread, recordings, and what joins
// them to the features below. Called by features.ts.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Capabilities } from "#features/assistants/capabilities.ts";
import type { Catalogs } from "#features/assistants/catalogs.ts";
import type { Calls } from "#features/calls/calls.ts";
import { createCalling, type Calling } from "#features/calls/calling.ts";
import { createEvaluate } from "#features/calls/evaluation.ts";
import { createMediaThread } from "#features/calls/media.ts";
import type { MediaThread } from "#features/calls/voice/protocol.ts";
import type { Recordings } from "#features/calls/recordings.ts";
import { createLines, type Lines } from "#features/calls/lines.ts";
import type { CallingOptions } from "#features/calls/live-call.ts";
import { createVoiceChoice, type VoiceChoice } from "#features/calls/voice-choice.ts";
import { createHostedLines, type HostedLines } from "./hosted-carriers.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { InboundStore } from "#features/phone-numbers/inbound-routing.ts";
import type { SipTrunks } from "#features/phone-numbers/sip-trunks.ts";
import type { SipListener } from "#providers/carriers/sip/trunks/trunk.ts";
import type { ModelCatalog } from "#providers/models/catalog.ts";
import type { SpeechConfig, VendorConfig } from "#providers/speech/engines.ts";

export interface VoiceOptions
  extends Pick<
    CallingOptions,
    | "askInbound" | "findAssistant" | "languagesOf" | "resolveTurn" | "sourcesOf" | "limits"
    | "routeInbound" | "warningsOf"
  > {
  /** Which model judges a call that is over. */
  resolveModel: Parameters<typeof createEvaluate>[0]["resolveModel"];
  sipTrunks: SipTrunks;
  findHosted: InboundStore["findHosted"];
  config: Config;
  speech: SpeechConfig;
  can: Capabilities;
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

interface Voice {
  calling: Calling;
  /** Without those that could not reach this server. */
  hosted: HostedLines;
  whyCannotCall: Lines["whyCannotCall"];
  whyCannotTalk: VoiceChoice["whyCannotTalk"];
  /** Calls may come in from now on. */
  listen: MediaThread["listen"];
  close(): Promise<void>;
}

export function createVoice(options: VoiceOptions): Voice {
  const { config, speech, calls, recordings, system, log } = options;
  mkdirSync(recordings.folder, { recursive: true, mode: 0o700 });
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
  const hosted = createHostedLines(options);
  const { voiceOf, whyCannotTalk } = createVoiceChoice(options);
  const { lineOf, whyCannotCall } = createLines({
    trunks: options.sipTrunks, hosted, findHosted: options.findHosted, whyCannotTalk,
    hasSip: config.PARLEY_SIP_PORT !== null, log,
  });
  const calling = createCalling({
    ...options,
    calls, media, voiceOf, whyCannotTalk, lineOf,
    carrierRateOf: (leg) => config.PARLEY_CARRIER_RATES_FILE?.of(leg) ?? 0,
    evaluate: createEvaluate({ resolveModel: options.resolveModel, system, log }),
  });
  return {
    calling,
    hosted,
    whyCannotCall,
    whyCannotTalk,
    listen: media.listen,
    close: async () => {
      await calling.drain();
      await Promise.all([...hosted.values()].map((one) => one.close()));
      await media.close();
    },
  };
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

/** The same for a vendor whose address has a default: it is used where there is a key. */
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
