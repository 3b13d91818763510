// Joins the bus of this process to those of other nodes and processes of the database. What is
// committed here is published on the wire; what others commit is published here, for the accounts
// somebody here watches. Sequences have no holes: a missing one makes this read the log; polling
// for the newest finds events whose notice was lost. Made in app/app.ts; every node has one.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { createRecurring } from "#core/recurring.ts";
import { OneOf } from "#core/schema.ts";
import type { System, Timer } from "#core/system.ts";
import { PASSING_TYPES, type EventBus, type Notice } from "#events/bus.ts";
import type { CommittedEvent, Topic } from "#events/events.ts";
import type { EventLog } from "#events/log.ts";
import { decoderOf, encode } from "./message.ts";
import type { Wire } from "./wire.ts";

interface NoticesOptions {
  bus: EventBus;
  events: Pick<EventLog, "heads" | "newestOfAccount" | "ofAccount">;
  /** Null: there is no other node; commits of the command line are found by polling. */
  wire: Wire | null;
  system: System;
  log: Logger;
}

export interface Notices {
  /** Resolves once no read of the log is in flight. Idempotent. */
  close(): Promise<void>;
}

const Committed = Type.Object({
  events: Type.Optional(Type.Array(Type.Object({
    id: Type.Number(),
    accountId: Type.Number(),
    accountSequence: Type.Number(),
    conversationId: Type.Union([Type.String(), Type.Null()]),
    callId: Type.Union([Type.Number(), Type.Null()]),
    sequence: Type.Number(),
    type: Type.String(),
    json: Type.String(),
    createdAt: Type.Number(),
  }))),
  /** Sent in place of events that are too large together: the highest of their sequences. */
  newest: Type.Optional(Type.Number()),
});
const Passing = Type.Object({
  topic: Type.String(),
  type: OneOf(PASSING_TYPES),
  members: Type.Object({}, { additionalProperties: true }),
});
const decodeCommitted = decoderOf(Committed);
const decodePassing = decoderOf(Passing);

/**
 * How far one account's events were published here. The account is followed until a poll finds
 * nobody watching, so that clients which stream one reply after another do not start it anew.
 */
class Followed {
  readonly topics = new Set<Topic>();
  /** All events up to this sequence were published; null: not known yet. */
  through: number | null = null;
  /** The highest sequence heard of. */
  newest = 0;
  timer: Timer | null = null;
  isReading = false;
  unsubscribe = (): void => undefined;
  /** Sequences that were published beyond a gap. */
  readonly #beyond = new Set<number>();

  published(sequence: number): void {
    this.newest = Math.max(this.newest, sequence);
    if (this.through !== null && sequence <= this.through) return;
    // Events mostly come in order, and then never enter the set.
    if (sequence - 1 === this.through) this.through = sequence;
    else this.#beyond.add(sequence);
    this.#join();
  }

  reached(sequence: number): void {
    this.through = Math.max(this.through ?? 0, sequence);
    for (const one of this.#beyond) if (one <= this.through) this.#beyond.delete(one);
    this.#join();
  }

  knows(sequence: number): boolean {
    return this.#beyond.has(sequence) || (this.through !== null && sequence <= this.through);
  }

  end(): void {
    this.timer?.cancel();
    this.unsubscribe();
  }

  get hasGap(): boolean {
    return this.through !== null && this.newest > this.through;
  }

  #join(): void {
    while (this.through !== null && this.#beyond.delete(this.through + 1)) this.through += 1;
  }
}

export function createNotices(options: NoticesOptions): Notices {
  const { bus, wire } = options;
  const following = new Map<number, Followed>();
  /** Notices that came from other nodes, and must not be sent back to them. */
  const foreign = new WeakSet<object>();
  const reader = createCatchUp(options);
  const ends = [
    bus.watch((events, own) => {
      for (const { accountId, accountSequence } of events) {
        const followed = following.get(accountId);
        if (!followed) continue;
        followed.published(accountSequence);
        if (followed.hasGap) reader.ask(accountId, followed);
      }
      if (wire) publish(wire, own);
    }),
    bus.onInterest(({ topic, accountId, isWatched }) => {
      if (accountId === null) return;
      const followed = following.get(accountId) ?? begin(accountId);
      if (isWatched) followed.topics.add(topic);
      else followed.topics.delete(topic);
    }),
    ...wire ? [sendPassing(bus, wire, foreign)] : [],
  ];
  const begin = (accountId: number): Followed => {
    const followed = new Followed();
    following.set(accountId, followed);
    if (wire) {
      const unsubscribe = [
        wire.subscribe(`events.${accountId}`, (data) => hear(accountId, followed, data)),
        wire.subscribe(`passing.${accountId}`, (data) => hearPassing(bus, foreign, accountId, data)),
      ];
      followed.unsubscribe = () => unsubscribe.forEach((end) => end());
    }
    reader.begin(accountId, followed, wire !== null);
    return followed;
  };
  const hear = (accountId: number, followed: Followed, data: Uint8Array): void => {
    const { events = [], newest = 0 } = decodeCommitted(data) ?? {};
    const fresh = (events as CommittedEvent[])
      .filter((event) => event.accountId === accountId && !followed.knows(event.accountSequence));
    bus.publishHeard(fresh);
    followed.newest = Math.max(followed.newest, newest);
    if (followed.hasGap) reader.ask(accountId, followed);
  };

  const look = createLook(options, following, reader);
  return {
    close: async () => {
      for (const end of ends) end();
      look.close();
      for (const followed of following.values()) followed.end();
      following.clear();
      await reader.settled();
    },
  };
}

type Reader = ReturnType<typeof createCatchUp>;

/** Publishes here, in order, events of the log that no notice brought. */
function createCatchUp({ bus, events, system, log }: NoticesOptions) {
  const working = new Set<Promise<void>>();
  const keep = (work: Promise<void>): void => {
    const kept = work
      .catch((error: unknown) => log.error({ err: error }, "could not read the event log"))
      .finally(() => working.delete(kept));
    working.add(kept);
  };
  const read = async (accountId: number, followed: Followed): Promise<void> => {
    const rows = LIMITS.eventsPageRowsMax;
    for (;;) {
      const { newest, through } = followed;
      if (through === null || newest <= through) return;
      const found = await events.ofAccount(accountId, through, rows);
      const missed = found.filter(({ accountSequence }) => !followed.knows(accountSequence));
      // Events past their retention are in no log: a short page closes the gap all the same.
      followed.reached(found.length < rows ? newest : through);
      for (const { accountSequence } of found) followed.published(accountSequence);
      followed.reached(found.at(-1)?.accountSequence ?? 0);
      bus.publishHeard(missed);
    }
  };
  return {
    /** Waits before it reads: notices of two nodes overtake one another, so the gap may close. */
    ask: (accountId: number, followed: Followed): void => {
      if (followed.isReading) return;
      followed.timer ??= system.after(LIMITS.noticeGapMs, () => {
        followed.timer = null;
        if (!followed.hasGap) return;
        followed.isReading = true;
        keep(read(accountId, followed).finally(() => (followed.isReading = false)));
      });
    },
    /** `isShared`: others commit too, perhaps between a watcher's read and this one. */
    begin: (accountId: number, followed: Followed, isShared: boolean): void =>
      keep(events.newestOfAccount(accountId).then((newest) => {
        followed.reached(newest);
        if (isShared) for (const topic of followed.topics) bus.publish(topic, { kind: "missed" });
      })),
    settled: async (): Promise<void> => void await Promise.all(working),
  };
}

/** What is logged as failed, and as working again. */
const LOOKING = "checking for commits of other nodes";

/** Polls for the newest sequences of all followed accounts. */
function createLook(
  { wire, events, system, log }: NoticesOptions,
  following: Map<number, Followed>,
  reader: Reader,
): { close(): void } {
  let timer: Timer | null = null;
  let isClosed = false;
  const recurring = createRecurring(log);
  const look = async (): Promise<void> => {
    for (const [accountId, followed] of following) {
      if (followed.topics.size > 0) continue;
      following.delete(accountId);
      followed.end();
    }
    if (following.size === 0) return;
    for (const [accountId, newest] of await events.heads([...following.keys()])) {
      const followed = following.get(accountId);
      if (!followed) continue;
      followed.newest = Math.max(followed.newest, newest);
      if (followed.through === null) reader.begin(accountId, followed, wire !== null);
      else if (followed.hasGap) reader.ask(accountId, followed);
    }
  };
  const again = (): void => {
    timer?.cancel();
    if (isClosed) return;
    const afterMs = wire?.state() === "down" ? LIMITS.wireDownPollMs : LIMITS.foreignCommitPollMs;
    timer = system.after(afterMs, now);
  };
  const now = (): void => {
    timer?.cancel();
    void recurring.follow(LOOKING, look()).finally(again);
  };
  const unlisten = wire?.onState(now);
  again();
  return {
    close: () => {
      isClosed = true;
      timer?.cancel();
      unlisten?.();
    },
  };
}

function publish(wire: Wire, events: readonly CommittedEvent[]): void {
  for (const [accountId, its] of Map.groupBy(events, (event) => event.accountId)) {
    const whole = encode({ events: its });
    wire.publish(`events.${accountId}`, whole.byteLength <= LIMITS.noticeBytesMax
      ? whole
      : encode({ newest: Math.max(...its.map(({ accountSequence }) => accountSequence)) }));
  }
}

/** Passing notices are in no log: only those who watch at the moment receive them. */
function sendPassing(bus: EventBus, wire: Wire, foreign: WeakSet<object>): () => void {
  return bus.tap((topic, notice) => {
    if (notice.kind !== "passing" || foreign.has(notice)) return;
    const { accountId, type, members } = notice;
    wire.publish(`passing.${accountId}`, encode({ topic, type, members }));
  });
}

function hearPassing(
  bus: EventBus, foreign: WeakSet<object>, accountId: number, data: Uint8Array,
): void {
  const passing = decodePassing(data);
  if (!passing) return;
  const { topic, type, members } = passing;
  const notice: Notice = { kind: "passing", accountId, type, members };
  foreign.add(notice);
  bus.publish(topic as Topic, notice);
}
