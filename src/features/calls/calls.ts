// Calls as records: begins them within the limits of balance and plan, applies their transitions,
// stores what was said, publishes every committed event. calling.ts handles them while live.
import type { CallDeskOutcome } from "#cluster/cluster.ts";
import { publishNoted, type By } from "#features/accounts/audit.ts";
import type { Costs } from "#features/accounts/money/costs.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import type { Warning } from "#features/assistants/warnings.ts";
import { fieldFault, Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Micros } from "#core/money.ts";
import { pageOf } from "#core/paging.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { accountTopic, callTopic, type Author } from "#events/events.ts";
import { barredReason, type DialRules } from "#features/phone-numbers/dial-guard.ts";
import { FOREVER_S, talkCost } from "./records/failures.ts";
import type { Recordings } from "./records/recordings.ts";
import { senderOf } from "./records/transcript.ts";
import type { CallStatus } from "./records/status.ts";
import type {
  AnsweredBy, BeginTransfer, BeginTransferOutcome, Call, CallBeat, CallFilter, CallRef, CallStore,
  DeletedCalls, EndReason, Hearing, NewCall, TranscriptEntry,
} from "./records/records.ts";
import type { Transfer } from "./records/transfers.ts";

interface CallsOptions {
  store: CallStore;
  bus: EventBus;
  system: System;
  /** Calls of the account that may be live at a time. */
  parallelMax(accountId: number): Promise<number>;
  priceMicrosPerMinute: Micros;
  /** The rules for calls to telephones, for every account. */
  dialling: DialRules;
  recordings: Pick<Recordings, "mend" | "remove">;
  /** Caught up before a deletion: afterwards nobody knows whose cost that was. */
  costs: Pick<Costs, "catchUp">;
}

interface NewCallArgs
  extends Pick<
    NewCall, "type" | "conversationUuid" | "assistantPhone" | "customerPhone" | "variables"
  > {
  assistant: Assistant;
  /** Absent: every request makes another call. */
  idempotencyKey?: string | null;
}

interface BegunCall {
  call: Call;
  /** How long the reserved money lasts. */
  secondsMax: number;
  /** An earlier request with the same key made the call: nothing is to be done. */
  replayed: boolean;
}

export type Calls = ReturnType<typeof createCalls>;

function createReads(store: CallStore) {
  return {
    /** Throws Fault 404. */
    get: async (accountId: number, callId: number): Promise<Call> => {
      const call = await store.find(accountId, callId);
      if (!call) throw new Fault(404, "Call not found");
      return call;
    },
    findById: (callId: number): Promise<Call | null> => store.findById(callId),
    page: (
      accountId: number, filter: CallFilter, place: { page: number; perPage: number },
    ) => pageOf(place, (offset, rows) => store.list(accountId, filter, offset, rows),
      () => store.count(accountId, filter)),
    live: (accountId: number): Promise<Call[]> => store.live(accountId),
    snapshot: (callId: number) => store.snapshot(callId),
    liveSnapshot: (accountId: number) => store.liveSnapshot(accountId),
    transcript: (callId: number): Promise<TranscriptEntry[]> => store.transcript(callId),
    transcripts: (callIds: readonly number[]) => store.transcripts(callIds),
  };
}

/** The price and limits of a call of the assistant, for every way to place one. */
const termsOf = async (options: CallsOptions, { accountId, settings }: Assistant) => ({
  priceMicrosPerMinute: options.priceMicrosPerMinute,
  reserveMinMicros: talkCost(0, options.priceMicrosPerMinute),
  reserveMaxMicros: talkCost(settings.max_duration, options.priceMicrosPerMinute),
  parallelMax: await options.parallelMax(accountId),
  dialling: options.dialling,
});
export type CallTerms = Awaited<ReturnType<typeof termsOf>>;

/** How long the reserved money lasts. */
const secondsFor = (reservedMicros: Micros, perMinute: Micros): number =>
  perMinute === 0 ? FOREVER_S : Math.floor((reservedMicros * 60) / perMinute);

function tooFast(waitMicros: number): Fault {
  const retryAfterS = Math.max(1, Math.ceil(waitMicros / 1_000_000));
  const message = `Too many calls were placed in a minute. Try again in ${retryAfterS} seconds.`;
  return new Fault(429, message, { retryAfterS, extra: { retry_after: retryAfterS } });
}

/** The call of an earlier request. Throws Fault 422 when that request was for another call. */
function repeated(call: Call, { assistant, customerPhone }: NewCallArgs): BegunCall {
  const isSame = call.assistantId === assistant.id && call.customerPhone === customerPhone;
  if (isSame) return { call, secondsMax: 0, replayed: true };
  throw fieldFault("idempotency_key", "The Idempotency-Key was used for another call.");
}

/** Throws Fault 422 or 429. */
function createBegin(options: CallsOptions) {
  const { store, bus, system, priceMicrosPerMinute: perMinute } = options;
  return async (args: NewCallArgs): Promise<BegunCall> => {
    const { assistant, idempotencyKey = null, ...rest } = args;
    const outcome = await store.create({
      ...rest,
      idempotencyKey,
      accountId: assistant.accountId,
      assistant: { id: assistant.id, uuid: assistant.uuid },
      ...await termsOf(options, assistant),
      now: system.now(),
    });
    if (outcome.kind === "repeated") return repeated(outcome.call, args);
    if (outcome.kind === "balance_too_low") {
      throw new Fault(422, "Insufficient balance to make call. Please top up your account.", {
        code: "INSUFFICIENT_BALANCE",
      });
    }
    if (outcome.kind === "blocked") {
      throw new Fault(422, "The phone number is on the do-not-call list.");
    }
    if (outcome.kind === "barred") throw new Fault(422, outcome.reason);
    if (outcome.kind === "too_fast") throw tooFast(outcome.until - system.now());
    if (outcome.kind === "too_many_calls") {
      throw new Fault(429, "The account has too many live calls.", { retryAfterS: 10 });
    }
    bus.publishCommitted(outcome.events);
    const secondsMax = secondsFor(outcome.reservedMicros, perMinute);
    return { call: outcome.call, secondsMax, replayed: false };
  };
}

const named = ({ id, accountId }: CallRef) => ({ callId: id, accountId });
type Named = keyof ReturnType<typeof named>;

type TransferStep = Parameters<CallStore["stepTransfer"]>[0];

/** Warm transfers, from reserving what they may cost to their outcome. */
function createWarmTransfers({ store, bus, dialling, system }: CallsOptions) {
  return {
    beginTransfer: async (
      call: CallRef,
      asked: Pick<BeginTransfer, "type" | "to" | "carrierMicrosPerMinute"> & { at?: Instant },
    ): Promise<BeginTransferOutcome> => {
      const secondsMax = LIMITS.warmTalkS;
      const now = system.now();
      const outcome = await store.beginTransfer({
        at: now, ...named(call), ...asked, dialling, secondsMax, now,
      });
      if (outcome.kind !== "over") bus.publishCommitted(outcome.events);
      return outcome;
    },
    stepTransfer: async (
      call: CallRef,
      { at = system.now(), ...step }: Omit<TransferStep, Named | "now"> & { at?: Instant },
    ): Promise<void> => {
      bus.publishCommitted(await store.stepTransfer({ ...named(call), ...step, now: at }));
    },
  };
}

/** Who has a call (assistant or person), and what is whispered to its assistant. */
function createDesk({ store, bus, system }: CallsOptions) {
  return {
    moveDesk: async (
      call: CallRef, move: Omit<Parameters<CallStore["moveDesk"]>[0], Named | "now">,
    ): Promise<CallDeskOutcome> => {
      const outcome = await store.moveDesk({ ...named(call), ...move, now: system.now() });
      if (outcome.kind !== "moved") return outcome;
      bus.publishCommitted(outcome.events);
      return { kind: "moved", desk: outcome.desk };
    },
    /** False: the call is not in progress. */
    whisper: async (call: CallRef, by: Author, text: string): Promise<boolean> => {
      const events = await store.whisper({ ...named(call), by, text, now: system.now() });
      if (events) bus.publishCommitted(events);
      return events !== null;
    },
  };
}

/** Changes of the record that publish no event. */
function createNotes({ store, system }: CallsOptions) {
  return {
    setVariables: (call: CallRef, variables: Record<string, string>): Promise<void> =>
      store.setVariables({ ...named(call), variables }),
    addTransfer: (
      call: CallRef, transfer: Omit<Transfer, "createdAt" | "finishedAt">, at = system.now(),
    ): Promise<void> => {
      const finishedAt = transfer.status === "in-progress" ? null : at;
      return store.addTransfer({
        ...named(call), transfer: { ...transfer, createdAt: at, finishedAt },
      });
    },
    failTransfer: (call: CallRef, failureReason: string, at = system.now()): Promise<void> =>
      store.failTransfer({ ...named(call), failureReason, now: at }),
  };
}

export function createCalls(options: CallsOptions) {
  const { store, bus, system, recordings } = options;
  return {
    ...createReads(store),
    begin: createBegin(options),
    ...createNotes(options),
    ...createWarmTransfers(options),
    ...createDesk(options),
    terms: (assistant: Assistant): Promise<CallTerms> => termsOf(options, assistant),
    secondsFor: (micros: Micros): number => secondsFor(micros, options.priceMicrosPerMinute),
    /** Why a call may not be transferred to the number, as a sentence; null: it may. */
    whyBarred: (to: string): string | null =>
      to.startsWith("+") ? barredReason(to, options.dialling.countries) : null,
    change: async (call: CallRef, to: CallStatus, known: {
      answeredBy?: AnsweredBy; reason?: EndReason; failureReason?: string | null;
      recordingFile?: string | null; hearing?: Hearing; warnings?: readonly Warning[];
      carrierMicrosPerMinute?: Micros;
    }): Promise<void> => {
      bus.publishCommitted(await store.change({ ...named(call), to, ...known, now: system.now() }));
    },
    addTranscript: async (call: CallRef, entry: Omit<TranscriptEntry, "number">): Promise<void> => {
      const now = system.now();
      bus.publishCommitted(await store.addTranscript({ ...named(call), entry, now }));
    },
    /** Publishes what is being said at the moment; not stored in the event log. */
    transcriptDelta: (
      { id, accountId }: CallRef,
      { speaker, text }: Pick<TranscriptEntry, "speaker" | "text">,
    ): void => {
      const sender = senderOf({ speaker });
      const notice = {
        kind: "passing", accountId, type: "transcript_delta",
        members: { call_id: id, sender, text },
      } as const;
      bus.publish(callTopic(id), notice);
      bus.publish(accountTopic(accountId), notice);
    },
    end: async (
      call: CallRef, how: Omit<Parameters<CallStore["end"]>[0], Named | "now">,
    ): Promise<void> => {
      bus.publishCommitted(await store.end({ ...named(call), ...how, now: system.now() }));
    },
    finish: async (
      call: CallRef, result: Omit<Parameters<CallStore["finish"]>[0], Named | "now">,
    ): Promise<void> => {
      bus.publishCommitted(await store.finish({ ...named(call), ...result, now: system.now() }));
    },
    beat: (calls: readonly CallBeat[]): Promise<void> => store.beat({ calls, now: system.now() }),
    /** Closes calls that gone processes left; ended ones become this node's to finish. */
    recover: async (): Promise<void> => {
      const cut = await store.cutRecordings();
      const haveSound = await Promise.all(cut.map(recordings.mend));
      const silent = cut.filter((_, at) => !haveSound[at]);
      bus.publishCommitted(await store.recover({ silent, now: system.now() }));
    },
    ...createRemovals(options),
  };
}

function createRemovals({ store, bus, system, recordings, costs }: CallsOptions) {
  return {
    /** Throws Fault 404, or 409 while the call is live. */
    remove: async (accountId: number, callId: number): Promise<void> => {
      await costs.catchUp(accountId);
      const outcome = await store.delete({ accountId, callId, now: system.now() });
      if (outcome.kind === "not_found") {
        throw new Fault(404, "Call not found or does not belong to the authenticated user");
      }
      if (outcome.kind === "live") throw new Fault(409, "The call has not ended yet.");
      bus.publishCommitted(outcome.events);
      for (const file of outcome.recordings) await recordings.remove(file);
    },
    /** Deletes several, each as `remove` would, and resolves to what became of them. */
    removeMany: async (
      accountId: number, callIds: number[], by: By,
    ): Promise<Pick<DeletedCalls, "deleted" | "live">> => {
      await costs.catchUp(accountId);
      const done = await store.deleteMany({ accountId, callIds, by, now: system.now() });
      bus.publishCommitted(done.events);
      if (done.deleted.length > 0) publishNoted(bus, accountId);
      for (const file of done.recordings) await recordings.remove(file);
      return done;
    },
    /** Removes recordings past their retention; resolves to how many. */
    expireRecordings: async (before: number, rows: number): Promise<number> => {
      const files = await store.expireRecordings({ before, rows, now: system.now() });
      for (const file of files) await recordings.remove(file);
      return files.length;
    },
  };
}
