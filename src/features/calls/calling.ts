// Live calls in the main thread: how each begins, and how all of them end. opening.ts opens a call;
// from-media.ts handles what the media thread reports of it. The sound itself is in voice/, in a
// thread of its own; the records are in calls.ts.
import type { OwnPersons } from "#cluster/cluster.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wait } from "#core/system.ts";
import type { CarrierName, LegEvent, Offer, RefusalCause } from "#providers/carriers/port.ts";
import type { Hosted, HostedArrival, HostedParty, Receive } from "./hosted/hosted.ts";
import { holding, type Capacity } from "./capacity.ts";
import { createControl } from "./control.ts";
import { createAfterCall, type AfterCall } from "./after-call.ts";
import { abandon, keepBeating, neverOpened, sayGoodbye, takeLeave, untilOver } from "./ending.ts";
import { admit, withInboundVariables, type Admitted, type Arrival } from "./inbound-calls.ts";
import type { Call, EndReason, Hearing } from "./records/records.ts";
import type { Face } from "./face.ts";
import { handle } from "./from-media.ts";
import { LOOPBACK_LINE, type Line } from "./lines.ts";
import type { CallingOptions, Listener, LiveCall } from "./live-call.ts";
import { openCall, type OpenArgs } from "./opening.ts";
import type { GivenWords } from "./voice-choice.ts";
import { NOBODY_TOOK_IT } from "./records/transfers.ts";
import { mindsVoicemail } from "./voice/settings.ts";
import type { PeerRequest } from "./voice/protocol.ts";

export interface Calling {
  /** Places a call whose record has begun; one that cannot be placed fails. Never rejects. */
  dial(call: Call, assistant: Assistant, secondsMax: number): Promise<void>;
  /** Has the loopback caller ring for a call whose record has begun. */
  receive(call: Call, assistant: Assistant, secondsMax: number, lines: string[]): Promise<void>;
  /** Begins a call over an open socket; the result's `leg` takes the events of its leg. */
  openWeb(args: {
    assistant: Assistant;
    conversationUuid: string;
    variables: Record<string, string>;
    face: Face;
    /** What the page offers in place of sound where this server has no recogniser. */
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
  /** Takes a call that a hosted carrier delivers; resolves once it may be answered. */
  receiveHosted(hosted: Hosted, ...offered: Parameters<Receive>): ReturnType<Receive>;
  control: {
    say(callId: number, text: string): boolean;
    mute(callId: number, on: boolean): boolean;
    end(callId: number): Promise<boolean>;
  };
  /** People of the account who take part in a call. */
  persons: OwnPersons;
  /** Both sides mixed, frame by frame; null when the call is not live. */
  listen(callId: number, onAudio: Listener["onAudio"], over: () => void): (() => void) | null;
  /** Looks for ended calls whose work after the call is still due. */
  lookForEnded: AfterCall["look"];
  live(): number;
  /** Takes no more calls; ends every call that has not ended by itself within `waitMs`. */
  drain(waitMs: number): Promise<void>;
}

const WEB_RATE = 16_000;

export function createCalling(options: CallingOptions): Calling {
  const { media, calls, capacity, system, log } = options;
  const { live, opening, preparing, neverPlaced } = createOpening(options);
  const { finish, look: lookForEnded, leave } = createAfterCall(options);
  capacity.count(() => live.values());
  const keep = (what: string, work: Promise<unknown>): void => {
    work.catch((error: unknown) => log.error({ err: error }, `${what} failed`));
  };
  const left = (id: number): void => live.delete(id) ? capacity.freed() : undefined;
  media.onMessage((message) => {
    const call = live.get(message.callId);
    if (call) handle(options, call, message, { keep, finish, forget: () => left(call.id) });
  });
  keepBeating(options, live);
  let isStopping = false;
  const open = (call: Call, assistant: Assistant, args: OpenArgs): LiveCall => {
    const entry = openCall(options, call, assistant, args);
    live.set(call.id, entry);
    if (!opening.has(call.id)) void entry.done.promise.then(options.offer(call.id));
    if (isStopping) takeLeave(options, entry);
    return entry;
  };
  const surely = (call: Call, work: () => Promise<void>): Promise<void> =>
    preparing(call, work).catch(() => undefined);
  /** Never throws: the record has begun, so a call that cannot be opened fails. */
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
    keep("inbound call", answerOffer(options, { carrier, offer, preparing }, place)));
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
      answerHosted(options, hosted, { arrival, join, preparing }, place),
    ...createControl(options, { live, opening }, end), lookForEnded, live: () => live.size,
    drain: async (waitMs) => {
      capacity.close();
      if (waitMs > 0) await untilOver(options, live, waitMs);
      isStopping = true;
      await sayGoodbye(options, live).then(leave);
      await Promise.all([...live.values()].map((call) => end(call, "server_restarted")));
    },
  };
}

/** Rejects as the work does; the call has failed then. */
type Preparing = <T>(call: Call, work: () => Promise<T>) => Promise<T>;

/** Calls that are open, and calls with a record that are about to be opened. */
function createOpening(options: CallingOptions) {
  const { calls, log, offer } = options;
  const live = new Map<number, LiveCall>();
  options.onLost(() => abandon(options, live));
  const opening = new Map<number, Promise<void>>();
  /** Ends the record, which nothing else would. */
  const neverPlaced = (call: Call, error: unknown): void => {
    log.error({ err: error, call_id: call.id }, "could not start a call");
    calls.change(call, "failed", neverOpened("speech_failed", error)).catch((err: unknown) =>
      log.error({ err, call_id: call.id }, "could not record that a call failed"));
  };
  const preparing: Preparing = async (call, work) => {
    const { id } = call;
    const { promise, resolve } = Promise.withResolvers<void>();
    opening.set(id, promise);
    const withdraw = offer(id);
    try {
      return await work();
    } catch (error) {
      neverPlaced(call, error);
      throw error;
    } finally {
      opening.delete(id);
      const opened = live.get(id);
      if (opened) void opened.done.promise.then(withdraw);
      else withdraw();
      resolve();
    }
  };
  return { live, opening, preparing, neverPlaced };
}

type Open = (call: Call, assistant: Assistant, args: OpenArgs) => LiveCall;

function createOpenWeb(
  { calls, capacity, factsOf, media, whyCannotTalk }: CallingOptions, open: Open,
): Calling["openWeb"] {
  return ({ assistant, conversationUuid, variables, face, words }) =>
    holding(capacity, assistant, words, async () => {
      // Checked before the record: a call that cannot be understood is refused, not failed.
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

/** `admit`, with the inbound webhook's variables known by the time `open` is called. */
const admitPrepared = (
  options: CallingOptions, preparing: Preparing, arrival: Arrival,
  open: (admitted: Admitted) => RefusalCause | null,
): Promise<RefusalCause | null> => admit(options, arrival, ({ call: begun, ...rest }) =>
  preparing(begun, async () =>
    open({ call: await withInboundVariables(options, begun, rest.assistant), ...rest })));

/** Answers an inbound call, or has the carrier refuse it. */
async function answerOffer(
  options: CallingOptions,
  { carrier, offer, preparing }: { carrier: CarrierName; offer: Offer; preparing: Preparing },
  place: Place,
): Promise<void> {
  const { media } = options;
  const leg = { kind: "offered", carrier, offerId: offer.id, rate: offer.rate } as const;
  const cause = await admitPrepared(options, preparing, offer, (admitted) => {
    const { call, assistant, secondsMax, facts } = admitted;
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
  // The media thread no longer knows the call.
  transferFailed: () => void calls.failTransfer(call, NOBODY_TOOK_IT).catch((error: unknown) =>
    log.error({ err: error, call_id: call.id }, "could not record a transfer")),
});

/** Resolves to why the call cannot be placed; null: it is being placed. */
async function dial(
  options: CallingOptions, begun: Admitted, place: Place,
): Promise<string | null> {
  const { call, assistant, ...rest } = begun;
  const line = await options.lineOf(call, assistant);
  if (!options.holds()) return "This server lost its place among the nodes. Please try again.";
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
  { arrival, join, preparing }: {
    arrival: HostedArrival; join: Parameters<Receive>[1]; preparing: Preparing;
  },
  place: Place,
): ReturnType<Receive> {
  const arrived = { ...arrival, trunkId: null, sourceAddress: null };
  return admitPrepared(options, preparing, arrived, ({ call, assistant, secondsMax, facts }) => {
    const face = join(partyOf(options, call));
    const isOpen = place(call, assistant, { leg, carrier, face, secondsMax, facts });
    return isOpen ? null : "unavailable";
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
