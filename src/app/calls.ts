// Composition root, the part about calls: speech engines, media thread, recordings, and what
// connects them to the features below. Called by features.ts.
import { readFileSync } from "node:fs";
import { ownCallsAlone, shareCalls } from "#cluster/calls.ts";
import type { Cluster, SharedCalls } from "#cluster/cluster.ts";
import type { Wire } from "#cluster/wire.ts";
import type { Costs } from "#features/accounts/money/costs.ts";
import type { Assistant, Assistants } from "#features/assistants/assistants.ts";
import type { Warning } from "#features/assistants/warnings.ts";
import { createSummarise } from "#features/calls/briefing.ts";
import { createCalling, type Calling } from "#features/calls/calling.ts";
import { createCalls, type Calls } from "#features/calls/calls.ts";
import { createCapacity, createLateness } from "#features/calls/capacity.ts";
import { createLines, type Lines } from "#features/calls/lines.ts";
import type { CallingOptions } from "#features/calls/live-call.ts";
import { createMediaThread } from "#features/calls/media.ts";
import type { Recordings } from "#features/calls/records/recordings.ts";
import {
  createVoiceChoice, type VoiceChoice, type VoiceChoiceOptions,
} from "#features/calls/voice-choice.ts";
import type { MediaThread } from "#features/calls/voice/protocol.ts";
import type { RouteInbound } from "#features/phone-numbers/inbound-routing.ts";
import type { SipTrunks } from "#features/phone-numbers/sip-trunks.ts";
import { tlsFilesOf, type Config } from "#config/config.ts";
import { LIMITS } from "#core/limits.ts";
import type { Plan } from "#core/price-lists.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { SipListener } from "#providers/carriers/sip/trunks/trunk.ts";
import { speakersMax, type SpeechConfig } from "#providers/speech/engines.ts";
import type { Storage } from "#storage/storage.ts";
import type { HostedLines } from "./hosted-carriers.ts";
import { peersConfigOf } from "./webrtc.ts";

interface CallRecordsOptions {
  config: Config;
  storage: Pick<Storage, "calls">;
  planOf(accountId: number): Promise<Plan>;
  recordings: Recordings;
  costs: Pick<Costs, "catchUp">;
  bus: EventBus;
  system: System;
}

export function createCallRecords(options: CallRecordsOptions): Calls {
  const { config, storage, planOf, recordings, costs, bus, system } = options;
  return createCalls({
    store: storage.calls, bus, system, recordings, costs,
    dialling: {
      countries: config.PARLEY_DIAL_COUNTRIES,
      perMinute: config.PARLEY_RATE_LIMITS ? config.PARLEY_DIAL_RATE_PER_MINUTE : null,
    },
    priceMicrosPerMinute: config.PARLEY_CALL_PRICE ?? 0,
    parallelMax: async (accountId) => (await planOf(accountId)).parallel_calls,
  });
}

interface VoiceOptions
  extends Pick<
    CallingOptions,
    | "askInbound" | "calls" | "evaluate" | "languagesOf" | "limits" | "log" | "observeEager"
    | "recordings" | "resolveTurn" | "sourcesOf" | "system" | "titlesOf"
  >, Pick<VoiceChoiceOptions, "catalogs"> {
  config: Config;
  resolveModel: Parameters<typeof createSummarise>[0]["resolveModel"];
  nodes: Pick<Cluster, "nodeId" | "holds" | "onLost">;
  storage: Pick<Storage, "calls" | "phoneNumbers">;
  /** Null: there are no other nodes. */
  wire: Wire | null;
  speech: SpeechConfig;
  capabilities: VoiceChoiceOptions["can"];
  modelCatalog: Pick<VoiceChoiceOptions, "realtimeOf">;
  assistants: Pick<Assistants, "find">;
  hosted: HostedLines;
  warningsOf(assistant: Assistant): Promise<readonly Warning[]>;
  phoneNumbers: { sipTrunks: SipTrunks; routeInbound: RouteInbound };
  /** Called with the milliseconds by which a tick of the media clock was late. */
  observeLateness(ms: number): void;
}

interface Voice {
  calling: Calling;
  /** Calls of all nodes, for control and for listening in. */
  shared: SharedCalls;
  /** Without lines whose carrier could not reach this server. */
  hosted: HostedLines;
  isScript: Lines["isScript"];
  whyCannotCall: Lines["whyCannotCall"];
  whyCannotTalk: VoiceChoice["whyCannotTalk"];
  /** Starts to accept incoming calls. */
  listen: MediaThread["listen"];
  close(): Promise<void>;
}

export function createVoice(options: VoiceOptions): Voice {
  const { config, storage, wire, speech, assistants, hosted, phoneNumbers, system, log } = options;
  const { sipTrunks, routeInbound } = phoneNumbers;
  const { carrier: trunks } = sipTrunks;
  const lateness = createLateness(system);
  const media = createMediaThread({
    data: {
      speech, logLevel: config.PARLEY_LOG_LEVEL, sip: sipListenerOf(config),
      reachableNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS, peers: peersConfigOf(config),
    },
    hasHostedCarriers: hosted.size > 0,
    trunks: trunks.listActive,
    onLateness: (ms) => {
      lateness.observe(ms);
      options.observeLateness(ms);
    },
    system,
    log,
  });
  trunks.onChange(media.trunksChanged);
  const { recogniserOf, voiceOf, whyCannotTalk } = createVoiceChoice({
    eagerReplies: config.PARLEY_EAGER_REPLIES,
    ...options, can: options.capabilities, realtimeOf: options.modelCatalog.realtimeOf,
  });
  const { colleagueLineOf, isScript, lineOf, whyCannotCall } = createLines({
    trunks: sipTrunks, hosted, whyCannotTalk, log,
    findHosted: (number) => storage.phoneNumbers.findHosted(number),
    findNumber: (accountId, id) => storage.phoneNumbers.find(accountId, id),
    hasSip: config.PARLEY_SIP_PORT !== null,
  });
  const capacity = createCapacity({
    callsMax: config.PARLEY_CALLS_MAX, isLate: lateness.isLate, speakersMax, recogniserOf,
  });
  capacity.onRoom(media.setRoom);
  system.every(LIMITS.callBeatMs, capacity.look);
  let shared: ReturnType<typeof shareCalls> | null = null;
  const calling = createCalling({
    ...options, holds: options.nodes.holds, onLost: options.nodes.onLost,
    offer: (callId) => shared?.offer(callId) ?? (() => undefined),
    media, recogniserOf, voiceOf, whyCannotTalk, colleagueLineOf, lineOf, routeInbound,
    capacity,
    toFinish: (now) => storage.calls.toFinish(options.nodes.nodeId, now),
    findAssistant: assistants.find,
    factsOf: factsFrom(options),
    summarise: createSummarise(options),
    carrierRateOf: (leg) => config.PARLEY_CARRIER_RATES_FILE?.of(leg) ?? 0,
  });
  if (wire) {
    const isElsewhere = (callId: number): Promise<boolean> =>
      storage.calls.isElsewhere(callId, options.nodes.nodeId);
    shared = shareCalls({ own: calling, isElsewhere, wire, system, log });
  }
  return {
    calling,
    shared: shared ?? ownCallsAlone(calling),
    hosted,
    isScript,
    whyCannotCall,
    whyCannotTalk,
    listen: media.listen,
    close: async () => {
      await calling.drain(config.PARLEY_CALL_DRAIN_SECONDS * 1000);
      await Promise.all([...hosted.values()].map((one) => one.close()));
      await media.close();
    },
  };
}

function factsFrom(
  { titlesOf, warningsOf, sourcesOf }: VoiceOptions,
): CallingOptions["factsOf"] {
  return async (assistant) => {
    // Only the offered functions count here: a call creates its sources for each turn.
    const turn = { assistant, scope: "call:0.0", variables: {}, endConversation: () => undefined };
    const [titles, warnings, sources] = await Promise.all([
      titlesOf(assistant), warningsOf(assistant),
      assistant.mode === "pipeline" ? [] : sourcesOf(turn),
    ]);
    return { titles, warnings, functions: sources.flatMap(({ offered }) => offered) };
  };
}

function sipListenerOf(config: Config): SipListener | null {
  const port = config.PARLEY_SIP_PORT;
  if (port === null) return null;
  const files = tlsFilesOf(config);
  return {
    port,
    host: config.PARLEY_SIP_HOST,
    publicHost: config.PARLEY_SIP_PUBLIC_HOST,
    rtpPorts: config.PARLEY_RTP_PORTS,
    tls: files && {
      key: readFileSync(files.keyFile, "utf8"), cert: readFileSync(files.certFile, "utf8"),
    },
  };
}
