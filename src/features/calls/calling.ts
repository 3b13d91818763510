// Calls while they last, in the main thread: opens the media, answers the customer's turns through
// the engine, keeps record and transcript, and does the work after the call. The sound itself is in
// voice/, in a thread of its own; the records are in calls.ts.
import { join } from "node:path";
import type { Assistant } from "#features/assistants/assistants.ts";
import { personaOf } from "#features/assistants/turn-context.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Micros } from "#core/money.ts";
import { steadyClock, wait } from "#core/system.ts";
import { allVariables } from "#engine/prompt.ts";
import { fillTemplate } from "#engine/template.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { CarrierName, LegEvent, Offer } from "#providers/carriers/port.ts";
import type { Hosted, HostedArrival, HostedParty, Receive } from "./hosted/hosted.ts";
import { holding, type Capacity } from "./capacity.ts";
import { createControl } from "./control.ts";
import { createAfterCall, type AfterCall } from "./after-call.ts";
import { beat, conclude, neverOpened, sayGoodbye, takeLeave, untilOver } from "./ending.ts";
import { remember } from "./history.ts";
import { admit, withInboundVariables, type Admitted } from "./inbound-calls.ts";
import type { Call, EndReason, Hearing } from "./records/records.ts";
import {
  answerFunctionCall, followLanguage, realtimeOf, reply, replyTo, UNWANTED,
} from "./replies.ts";
import type { Face } from "./face.ts";
import { LOOPBACK_LINE, type Line } from "./lines.ts";
import {
  callNow, type AssistantFacts, type CallingOptions, type Listener, type LiveCall,
} from "./live-call.ts";
import { dismiss, operatorSaid, type Persons } from "./persons.ts";
import { demanded, type GivenWords } from "./voice-choice.ts";
import { NOBODY_TOOK_IT } from "./records/transfers.ts";
import { warmReported } from "./warm.ts";
import { mindsVoicemail } from "./voice/settings.ts";
import type { FromMedia, LegSetup, PeerRequest } from "./voice/protocol.ts";
import type { Said } from "./voice/brain.ts";

export interface Calling {
  /** Places a call whose record has begun; what cannot be placed has failed. Never rejects. */
  dial(call: Call, assistant: Assistant, secondsMax: number): Promise<void>;
  /** Has the loopback caller ring; the record of the call has begun. */
  receive(call: Call, assistant: Assistant, secondsMax: number, lines: string[]): Promise<void>;
  /** Begins a call over a socket that is open; the events of its leg go to what is returned. */
  openWeb(args: {
    assistant: Assistant;
    conversationUuid: string;
    variables: Record<string, string>;
    face: Face;
    /** What the page offers where this server cannot hear. */
    words: GivenWords | null;
  }): Promise<{
    callId: number;
    hearing: Hearing;
    leg: (event: LegEvent) => void;
    peer: (request: PeerRequest) => void;
  }>;
  /** A place for a call that is about to begin; see capacity.ts. */
  hold: Capacity["hold"];
  refusal: Capacity["refusal"];
  onFreed: Capacity["onFreed"];
  /** Takes a call that a hosted carrier brings; resolves once it may be answered. */
  receiveHosted(hosted: Hosted, ...offered: Parameters<Receive>): ReturnType<Receive>;
  control: {
    say(callId: number, text: string): boolean;
    mute(callId: number, on: boolean): boolean;
    end(callId: number): Promise<boolean>;
  };
  /** People who take part themselves. */
  persons: Persons;
  /** Both sides mixed, frame by frame; null when the call is not live. */
  listen(callId: number, onAudio: Listener["onAudio"], over: () => void): (() => void) | null;
  /** Looks for calls that are over and have the work after them to come. */
  lookForEnded: AfterCall["look"];
  live(): number;
  /** Takes no more calls; ends every call that has not ended by itself in that time. */
  drain(waitMs: number): Promise<void>;
}

const WEB_RATE = 16_000;

export function createCalling(options: CallingOptions): Calling {
  const { media, calls, capacity, system, log } = options;
  const live = new Map<number, LiveCall>();
  const { finish, look: lookForEnded } = createAfterCall(options);
  capacity.count(() => live.values());
  const keep = (what: string, work: Promise<unknown>): void => {
    work.catch((error: unknown) => log.error({ err: error }, `${what} failed`));
  };
  const left = (id: number): void => live.delete(id) ? capacity.freed() : undefined;
  media.onMessage((message) => {
    const call = live.get(message.callId);
    if (call) handle(options, call, message, { keep, finish, forget: () => left(call.id) });
  });
  system.every(LIMITS.callBeatMs, () => keep("call beat", beat(options, live)));
  let isStopping = false;
  const open = (call: Call, assistant: Assistant, args: OpenArgs): LiveCall => {
    const entry = openCall(options, call, assistant, args);
    live.set(call.id, entry);
    void entry.done.promise.then(options.offer(call.id));
    if (isStopping) takeLeave(options, entry);
    return entry;
  };
  const neverPlaced = (call: Call, error: unknown): void => {
    log.error({ err: error, call_id: call.id }, "a call could not be opened");
    keep("call status", calls.change(call, "failed", neverOpened("speech_failed", error)));
  };
  const surely = (call: Call, work: () => Promise<void>): Promise<void> =>
    work().catch((error: unknown) => neverPlaced(call, error));
  /** Never throws: its record has begun, so what cannot be opened has failed. */
  const place: Place = (call, assistant, args) => {
    try {
      open(call, assistant, args);
      return true;
    } catch (error) {
      neverPlaced(call, error);
      return false;
    }
  };
  media.onOffer((carrier, offer) =>
    keep("inbound call", answerOffer(options, carrier, offer, place)));
  const end = async (call: LiveCall, reason: EndReason): Promise<void> => {
    media.send({ kind: "hang_up", callId: call.id, reason });
    await Promise.race([call.done.promise, wait(system, LIMITS.callEndMs)]);
  };

  return {
    dial: (call, assistant, secondsMax) => surely(call, async () => {
      const facts = await options.factsOf(assistant);
      const why = await dial(options, { call, assistant, secondsMax, facts }, place);
      if (why === null) return;
      keep("call status", calls.change(call, "failed", neverOpened("carrier_failed", why)));
    }),
    receive: (call, assistant, secondsMax, lines) => surely(call, async () => {
      const facts = await options.factsOf(assistant);
      const known = await withInboundVariables(options, call, assistant);
      const leg = { ...legTo(call, assistant, LOOPBACK_LINE), lines };
      place(known, assistant, { leg, face: null, secondsMax, facts });
    }),
    openWeb: createOpenWeb(options, open),
    hold: capacity.hold, refusal: capacity.refusal, onFreed: capacity.onFreed,
    receiveHosted: (hosted, arrival, join) =>
      answerHosted(options, hosted, { arrival, join }, place),
    ...createControl(options, live, end), lookForEnded, live: () => live.size,
    drain: async (waitMs) => {
      capacity.close();
      if (waitMs > 0) await untilOver(options, live, waitMs);
      isStopping = true;
      await sayGoodbye(options, live);
      await Promise.all([...live.values()].map((call) => end(call, "server_restarted")));
    },
  };
}

type Open = (call: Call, assistant: Assistant, args: OpenArgs) => LiveCall;

function createOpenWeb(
  { calls, capacity, factsOf, media, whyCannotTalk }: CallingOptions, open: Open,
): Calling["openWeb"] {
  return ({ assistant, conversationUuid, variables, face, words }) =>
    holding(capacity, assistant, words, async () => {
      // Before the record: a call nobody can hear is refused, not failed.
      const why = whyCannotTalk(assistant, words);
      if (why !== null) throw new Fault(422, why);
      const facts = await factsOf(assistant);
      const { call, secondsMax } = await calls.begin({
        assistant, type: "web", conversationUuid, assistantPhone: null, customerPhone: null,
        variables,
      });
      const leg = { kind: "remote", rate: WEB_RATE, hasLine: false } as const;
      const { hearing } = open(call, assistant, { leg, face, secondsMax, words, facts });
      return {
        callId: call.id,
        hearing,
        leg: (event) => media.send({ kind: "leg", callId: call.id, event }),
        peer: (request) => media.send({ kind: "peer", callId: call.id, request }),
      };
    });
}

/** False: it could not be opened. */
type Place = (call: Call, assistant: Assistant, args: OpenArgs) => boolean;

/** Answers a call that came in, or has it refused. */
async function answerOffer(
  options: CallingOptions, carrier: CarrierName, offer: Offer, place: Place,
): Promise<void> {
  const { media } = options;
  const cause = await admit(options, offer, async ({ call: begun, ...admitted }) => {
    const { assistant, secondsMax, facts } = admitted;
    const call = await withInboundVariables(options, begun, assistant);
    const leg = { kind: "offered", carrier, offerId: offer.id, rate: offer.rate } as const;
    place(call, assistant, { leg, face: null, secondsMax, facts });
    return null;
  }).catch((error: unknown) => {
    media.refuse(carrier, offer.id, "unavailable");
    throw error;
  });
  if (cause !== null) media.refuse(carrier, offer.id, cause);
}

const partyOf = (
  { calls, media, log }: CallingOptions, call: Call,
): HostedParty => ({
  callId: call.id,
  callerId: call.assistantPhone,
  publish: (event) => media.send({ kind: "leg", callId: call.id, event }),
  // The media thread does not know the call any more.
  transferFailed: () => void calls.failTransfer(call, NOBODY_TOOK_IT).catch((error: unknown) =>
    log.error({ err: error, call_id: call.id }, "a transfer could not be noted")),
});

const transferFailed = (
  options: CallingOptions, call: LiveCall, detail: string | null,
): Promise<void> =>
  options.calls.failTransfer(call, detail ?? NOBODY_TOOK_IT, callNow(options, call));

/** Why there is no way out; null: there is one. */
async function dial(
  options: CallingOptions, begun: Admitted, place: Place,
): Promise<string | null> {
  const { call, assistant, ...rest } = begun;
  const line = await options.lineOf(call, assistant);
  if (!options.holds()) return "This server was given up.";
  if (typeof line === "string") return line;
  if (line.carrier === "hosted") dialHosted(options, line.hosted, begun, place);
  else place(call, assistant, { leg: legTo(call, assistant, line), face: null, ...rest });
  return null;
}

function dialHosted(
  options: CallingOptions, hosted: Hosted, { call, assistant, ...rest }: Admitted, place: Place,
): void {
  const { ringing_time: ringingS } = assistant.settings;
  const far = hosted.call(partyOf(options, call));
  const carrier = hosted.carrier.account;
  if (!place(call, assistant, { leg: hosted.leg, carrier, face: far.face, ...rest })) {
    return far.face.over("speech_failed");
  }
  far.dial({
    to: call.customerPhone ?? "", from: call.assistantPhone ?? "", ringingMs: ringingS * 1000,
    detectMachine: mindsVoicemail(assistant.settings),
  });
}

function answerHosted(
  options: CallingOptions, { leg, carrier: { account: carrier } }: Hosted,
  { arrival: { to, from }, join }: { arrival: HostedArrival; join: Parameters<Receive>[1] },
  place: Place,
): ReturnType<Receive> {
  const arrived = { to, from, trunkId: null, sourceAddress: null };
  return admit(options, arrived, async ({ call: begun, assistant, secondsMax, facts }) => {
    const call = await withInboundVariables(options, begun, assistant);
    const face = join(partyOf(options, call));
    return place(call, assistant, { leg, carrier, face, secondsMax, facts }) ? null : "unavailable";
  });
}

type MediaLine = Exclude<Line, { carrier: "hosted" }>;

const legTo = (call: Call, assistant: Assistant, line: MediaLine) => ({
  kind: "dialled" as const,
  to: call.customerPhone ?? "",
  from: call.assistantPhone,
  ringingMs: assistant.settings.ringing_time * 1000,
  ...line,
});

interface OpenArgs {
  leg: LegSetup;
  /** Absent: as the leg says. */
  carrier?: HostedAccount;
  face: Face | null;
  secondsMax: number;
  words?: GivenWords | null;
  facts: AssistantFacts;
}

/** The loopback caller's lines are known: nothing has to recognise them. */
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

function openCall(
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
      "no recogniser of this server understands the language: the caller's own page gives the words");
  }
  if (assistant.mode !== "pipeline" && !realtime && hearing !== "typed") {
    options.log.warn({ call_id: call.id, mode: assistant.mode },
      "no model that hears by itself is set up: the call runs in the mode pipeline");
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

type Keep = (what: string, work: Promise<unknown>) => void;

interface Hands extends Pick<AfterCall, "finish"> {
  keep: Keep;
  forget(): void;
}

/** Handles what the media thread posts. Writes are committed in the order they are asked for. */
function handle(
  options: CallingOptions, call: LiveCall, message: FromMedia, { keep, finish, forget }: Hands,
): void {
  const { calls, system } = options;
  switch (message.kind) {
    case "ringing":
      return keep("call status", calls.change(call, "ringing", {}));
    case "answered":
      call.answered = steadyClock(system);
      return keep("call status", calls.change(call, "in-progress", {
        recordingFile: call.recordingFile, hearing: call.hearing, warnings: call.warnings,
        carrierMicrosPerMinute: call.carrierMicrosPerMinute,
      }));
    case "sound":
      return void (call.isSilent = !message.isComing);
    case "answered_by":
      return keep("call status", calls.change(call, "in-progress", { answeredBy: message.by }));
    case "reply":
      return keep("reply", reply(options, call, message.turn, {
        question: message.text, detected: message.language, ahead: message.ahead,
      }));
    case "go_ahead":
      if (call.turn?.number === message.turn) call.turn.goAhead();
      return;
    case "reengage":
      return keep("reply", replyTo(options, call, message.turn, "silence"));
    case "speak_up":
      return keep("reply", replyTo(options, call, message.turn, message.why));
    case "cancel":
      if (call.turn?.number === message.turn) call.turn.abort.abort(UNWANTED);
      return;
    case "function_call":
      return keep("function call", answerFunctionCall(options, call, message));
    case "said":
      return said(options, call, message.said, keep);
    case "delta":
      calls.transcriptDelta(call, { speaker: message.speaker, text: message.text });
      return call.face?.transcript(message.speaker, message.text, false);
    case "state":
      return call.face?.state(message.state);
    case "frame":
      return call.face?.frame(message.pcm);
    case "peer":
      return call.face?.peer(message.report);
    case "clear":
      return call.face?.clear();
    case "mark":
      return call.face?.mark();
    case "dtmf":
      return call.face?.line?.dtmf(message.digits);
    case "transfer":
      return call.face?.line?.transfer(message.to);
    case "warm":
      return keep("warm transfer", warmReported(options, call, message.report));
    case "transfer_failed":
      return keep("transfer", transferFailed(options, call, message.detail));
    case "person_hears":
      return call.person?.microphone?.onAudio(message.pcm);
    case "tap":
      return call.listeners.forEach(({ onAudio }) => onAudio(message.pcm, call.rate));
    case "over":
      call.isOver = true;
      call.turn?.abort.abort(UNWANTED);
      dismiss(call);
      return keep("end of a call", conclude(options, call, message, finish).finally(() => {
        forget();
        call.done.resolve();
      }));
  }
}

function said(options: CallingOptions, call: LiveCall, words: Said, keep: Keep): void {
  const { calls } = options;
  if (words.speaker === "operator") {
    return keep("transcript", operatorSaid(calls, call, words));
  }
  const { speaker, text, startMs, endMs, interrupted, turn, counts } = words;
  const functionCalls = turn === null ? [] : call.functionCalls.get(turn) ?? [];
  if (turn !== null) call.functionCalls.delete(turn);
  call.saidMs = endMs;
  if (text !== "" || functionCalls.length > 0) {
    const entry = { speaker, text, startMs, endMs, interrupted, functionCalls };
    keep("transcript", calls.addTranscript(call, entry));
    if (text !== "") call.face?.transcript(speaker, text, true);
  }
  // A model that hears by itself answers by itself: its turns are seen here alone.
  if (call.isRealtime && speaker === "customer" && text !== "") {
    keep("language", followLanguage(options, call, { text, detected: null }));
  }
  // What functions said counts also where the words behind it were never heard.
  if ((counts && text !== "") || functionCalls.length > 0) {
    const heard = counts ? text : "";
    remember(call.history, speaker === "customer" ? "user" : "assistant", heard, functionCalls);
  }
}
