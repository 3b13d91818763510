// Opens a call in the media thread: decides its voices, words, rate and recording, and what the
// main thread keeps about it while it lasts. Called by calling.ts.
import { join } from "node:path";
import type { Assistant } from "#features/assistants/assistants.ts";
import { personaOf } from "#features/assistants/turn-context.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { Micros } from "#core/money.ts";
import { allVariables } from "#engine/prompt.ts";
import { fillTemplate } from "#engine/template.ts";
import type { Face } from "./face.ts";
import type { AssistantFacts, CallingOptions, LiveCall } from "./live-call.ts";
import type { Call } from "./records/records.ts";
import { realtimeOf } from "./replies.ts";
import { demanded, type GivenWords } from "./voice-choice.ts";
import type { LegSetup } from "./voice/protocol.ts";

export interface OpenArgs {
  leg: LegSetup;
  /** Absent: the leg's own carrier. */
  carrier?: HostedAccount;
  face: Face | null;
  secondsMax: number;
  words?: GivenWords | null;
  facts: AssistantFacts;
}

/** The loopback caller's lines are known, so nothing has to recognise them. */
const wordsOf = ({ leg, words = null }: OpenArgs): GivenWords | null =>
  leg.kind === "dialled" && leg.carrier === "loopback" ? "script" : words;

function carrierRateOf(
  options: CallingOptions, { type, customerPhone, assistantPhone }: Call, args: OpenArgs,
): Micros {
  const carrier = args.leg.kind === "remote" ? args.carrier : args.leg.carrier;
  if (carrier === undefined || type === "web") return 0;
  const called = type === "outbound" ? customerPhone : assistantPhone;
  return options.carrierRateOf({ carrier, direction: type, called });
}

export function openCall(
  options: CallingOptions,
  call: Call,
  assistant: Assistant,
  args: OpenArgs,
): LiveCall {
  const { system, media, recordings } = options;
  const { leg, face, secondsMax, facts } = args;
  const words = wordsOf(args);
  const isOutbound = call.type === "outbound";
  const { settings, engines, language, realtime, hearing } = demanded(
    options.voiceOf(assistant, { isOutbound, words, titles: facts.titles }));
  if (hearing === "browser") {
    options.log.warn({ call_id: call.id, hearing, language: settings.language },
      "no recogniser of this server understands the language: the caller's browser recognises the speech");
  }
  if (assistant.mode !== "pipeline" && !realtime && hearing !== "typed") {
    options.log.warn({ call_id: call.id, mode: assistant.mode },
      "no realtime model is set up: the call runs in pipeline mode");
  }
  const parties = {
    customerPhone: call.customerPhone ?? "", assistantPhone: call.assistantPhone ?? "",
  };
  const variables = allVariables(personaOf(assistant), call.variables, system.now(), parties);
  const hasLine = leg.kind !== "remote" || leg.hasLine;
  const entry: LiveCall = {
    id: call.id, accountId: call.accountId, assistant, variables, given: call.variables, face,
    isOutbound, hasLine, isOwnLine: leg.kind === "remote" || leg.carrier === "loopback",
    spoken: { current: settings.language, doubt: null },
    language: { name: language, among: settings.languages },
    carrierMicrosPerMinute: carrierRateOf(options, call, args),
    isRealtime: realtime !== null, hearing, recogniser: engines.transcriber, words,
    warnings: facts.warnings,
    rate: leg.rate, answered: null, isSilent: false, saidMs: 0,
    history: [], turn: null, resolved: null, functionCalls: new Map(),
    recordingFile: settings.records ? `${system.uuid()}.wav` : null,
    listeners: new Set(), person: null, hasColleagues: false, untold: [], isOver: false,
    replies: { given: 0, failure: null },
    done: Promise.withResolvers(),
  };
  media.send({
    kind: "open",
    callId: call.id,
    setup: {
      settings,
      durationMaxMs: secondsMax * 1000,
      greeting: fillTemplate(assistant.settings.initial_message, variables),
      leg,
      engines,
      realtime: realtime && realtimeOf(options, entry, realtime, facts.functions),
      recordingPath: entry.recordingFile && join(recordings.folder, entry.recordingFile),
    },
  });
  return entry;
}
