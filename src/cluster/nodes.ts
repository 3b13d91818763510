// Who serves the database: this process' row among the others', its beat, and what becomes of those
// that do not beat any more. Over SQLite nobody else can serve it, so nothing beats and nothing
// runs out; what an earlier process left is recovered by the same code. Started by app.ts.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { aheadMs, wait, type Instant, type System } from "#core/system.ts";
import type { Cluster, NodeView, Owned, Waiting } from "./cluster.ts";
import { WireFault, type Wire } from "./wire.ts";

export type NodeState = "live" | "draining" | "gone";

/** What a process says about itself when it starts. */
export interface NewNode {
  name: string;
  url: string | null;
  /** The version of what travels between nodes. */
  protocol: number;
  /** One that is known to be gone: it ran in the data folder that is this one's now. */
  before?: number;
}

export interface NodeRecord extends Pick<NewNode, "name" | "url"> {
  id: number;
  state: NodeState;
  startedAt: Instant;
  beatAt: Instant;
  /** Null: it holds the folder's lock for as long as it lives. */
  leaseUntil: Instant | null;
  version: string;
  /** Live ones, as of the last beat; so of open streams. */
  calls: number;
  streams: number;
  goneAt: Instant | null;
}

/** Instants are of the database's clock. Writes are one transaction each, made as this node. */
export interface NodeStore {
  clock(): Promise<Instant>;
  /** Over SQLite every other node is gone: this one has the folder's lock. Resolves to its id. */
  join(self: NewNode): Promise<number>;
  /** Whether no other node can serve the database. */
  readonly isAlone: boolean;
  /** Those whose work nobody has taken up to the end, the living among them; by id. */
  list(): Promise<NodeRecord[]>;
  leases(): Promise<{ name: string; nodeId: number }[]>;
  owned(): Promise<Owned[]>;
  waiting(): Promise<Waiting>;
  /** False: this node was given up. */
  beat(args: {
    leaseUntil: Instant | null; state: NodeState; calls: number; streams: number; now: Instant;
  }): Promise<boolean>;
  /** True: it is this node's, now or before. */
  takeLease(name: LeaseName): Promise<boolean>;
  giveLeaseBack(name: LeaseName): Promise<void>;
  /** Gives a node up unless it has beaten since; false: it has, or somebody else was first. */
  bury(args: { deadId: number; beatAt: Instant; now: Instant }): Promise<boolean>;
  leave(args: { now: Instant }): Promise<void>;
  recovered(args: { deadIds: number[]; now: Instant }): Promise<void>;
}

/** `clock`: the work that comes round by itself. */
export type LeaseName = "clock";

interface NodesOptions {
  nodeId: number;
  store: NodeStore;
  /** Null: others cannot be asked, so a node is given up when its lease is over. */
  wire: Wire | null;
  self: Pick<NewNode, "url">;
  system: System;
  log: Logger;
}

/** What this node has under way, and does for those that are gone. */
export interface NodeWork {
  /** Live ones. */
  calls(): number;
  /** Open ones. */
  streams(): number;
  /** Ends what nodes that are gone have left; may run again over the same. */
  recover(): Promise<void>;
}

export interface Nodes extends Cluster {
  /** Whether this node does the work that comes round by itself. */
  hasClock(): boolean;
  /** Over a file for ever: nobody else can take it. */
  holdsForSeconds(): number;
  /** The first look: takes up what is left behind. From here on this node beats. */
  start(work: NodeWork): Promise<void>;
  /** Nothing new is begun here; others know with the next beat. */
  drain(): Promise<void>;
  /** Others may have the clock: after `drain`, once what it began here is over. */
  giveClock(): Promise<void>;
  /** Nothing is owned any more. Idempotent. */
  leave(): Promise<void>;
}

const subjectOf = (nodeId: number): string => `there.${nodeId}`;
const EMPTY = new Uint8Array();
/** The answer of who cannot give anybody up before a lease after it reaches the database again. */
const AWAY = Uint8Array.of(1);

/** What is remembered between one beat and the next. */
interface Life {
  state: NodeState;
  /** When the last beat that was stored had been begun, by both clocks. */
  beatMs: number;
  beatAt: Instant;
  /** Since when every beat was stored; null: the last was not. */
  steadyMs: number | null;
  /** Whether it was ever out of touch with the database, or stood still itself. */
  wasAway: boolean;
  others: NodeRecord[];
  hasClock: boolean;
  isLost: boolean;
}

export function createNodes(options: NodesOptions): Nodes {
  const { nodeId, store, self, system, log } = options;
  const { isAlone } = store;
  const life: Life = {
    state: "live", beatMs: system.monotonicMs(), beatAt: system.now(), steadyMs: 0,
    wasAway: false, others: [], hasClock: false, isLost: false,
  };
  const handlers: (() => void)[] = [];
  const holds = (): boolean => !life.isLost && (isAlone || isFresh(life, system));
  const lose = (): void => {
    if (life.isLost) return;
    life.isLost = true;
    life.hasClock = false;
    log.fatal({ node_id: nodeId }, "this node was given up: its work is others' now");
    for (const handler of handlers) handler();
  };
  let round: Round | null = null;
  let stopListening = (): void => undefined;
  let timer = { cancel: (): void => undefined };
  return {
    nodeId,
    alive: () => [
      { id: nodeId, url: self.url, draining: life.state === "draining" },
      ...life.others.filter(isLiving).map(viewOf),
    ].toSorted((one, other) => one.id - other.id),
    holds,
    onLost: (handler) => void handlers.push(handler),
    hasClock: () => life.hasClock && life.state === "live" && holds(),
    holdsForSeconds: () => {
      if (!holds()) return 0;
      return isAlone ? Infinity : leftMs(life, system) / 1000;
    },
    start: async (work) => {
      const look = createLook({ ...options, ...work }, life, lose);
      const rounds = createRound({ options, life, holds, lose, look });
      stopListening = options.wire?.subscribe(subjectOf(nodeId), (_, reply) =>
        reply?.(isAway(life, system) ? AWAY : EMPTY)) ?? stopListening;
      const now = await look.beat();
      if (now !== null) await look.see(now);
      round = rounds;
      if (!isAlone) timer = system.every(LIMITS.nodeBeatMs, rounds.begin);
    },
    drain: async () => {
      if (life.state !== "live") return;
      Object.assign(life, { state: "draining", hasClock: false } satisfies Partial<Life>);
      if (isAlone || !round) return;
      round.begin();
      await round.settled();
    },
    giveClock: async () => {
      if (!isAlone && !life.isLost) await store.giveLeaseBack("clock");
    },
    leave: async () => {
      if (life.state === "gone") return;
      life.state = "gone";
      timer.cancel();
      await round?.settled();
      stopListening();
      if (life.isLost) return;
      const now = await store.clock();
      await Promise.all([store.giveLeaseBack("clock"), store.leave({ now })]);
    },
  };
}

const isLiving = ({ state }: NodeRecord): boolean => state !== "gone";

const viewOf = ({ id, url, state }: NodeRecord): NodeView =>
  ({ id, url, draining: state === "draining" });

const sinceBeatMs = ({ beatMs }: Life, system: System): number => system.monotonicMs() - beatMs;
/** The faster of two clocks says it: one may have stood still. */
const silentMs = (life: Life, system: System): number =>
  Math.max(sinceBeatMs(life, system), (system.now() - life.beatAt) / 1000);
/** Sooner than its lease is over. */
const leftMs = (life: Life, system: System): number =>
  LIMITS.nodeHoldMs - silentMs(life, system);
/** Then it is looked at whether a node still answers. */
const LATE_MS = LIMITS.nodeBeatsMissed * LIMITS.nodeBeatMs;
/** Long enough for nothing it asked of the database before to be under way any more. */
const isAway = (life: Life, system: System): boolean =>
  life.steadyMs === null && sinceBeatMs(life, system) >= LIMITS.nodeAwayMs;
const isFresh = (life: Life, system: System): boolean => leftMs(life, system) > 0;

type Round = ReturnType<typeof createRound>;

/**
 * Whether somebody may give this node up while it cannot beat. Not where everybody answers to be
 * away as well: who reaches the database first waits for a lease, and is asked until then.
 */
async function mayBeGivenUp({ wire }: NodesOptions, { others }: Life): Promise<boolean> {
  const living = others.filter(isLiving);
  if (!wire) return living.length > 0;
  const answers = await Promise.allSettled(living.map(({ id }) =>
    wire.request(subjectOf(id), EMPTY, LIMITS.nodeAnswerMs)));
  return answers.some((answer) => answer.status === "rejected" || answer.value[0] !== AWAY[0]);
}

/**
 * One beat at a time, and one look at the others after it, which beats do not wait for: what a dead
 * node left may be much. Whether this node still holds is asked at every one that is due.
 */
function createRound({ options, life, holds, lose, look }: {
  options: NodesOptions; life: Life; holds(): boolean; lose(): void; look: Look;
}) {
  let beating: Promise<void> | null = null;
  let seeing: Promise<void> | null = null;
  const failed = (error: unknown): void => {
    life.steadyMs = null;
    life.wasAway = true;
    options.log.warn({ err: error }, "the beat of this node could not be stored");
  };
  const beatAndSee = async (): Promise<void> => {
    const now = await look.beat();
    if (now === null) return;
    seeing ??= look.see(now).catch(failed).finally(() => (seeing = null));
  };
  const endIfOthersMay = async (): Promise<void> => {
    // Who stood still learns from its beat, and not from others who may be as late.
    await Promise.race([beating, wait(options.system, LIMITS.nodeAnswerMs)]);
    // The wall clock alone says so: it was set, or the machine slept. The beat tells which.
    if (life.steadyMs !== null && sinceBeatMs(life, options.system) < LIMITS.nodeHoldMs) return;
    if (await mayBeGivenUp(options, life) && !holds()) lose();
  };
  return {
    begin: (): void => {
      if (life.isLost) return;
      beating ??= beatAndSee().catch(failed).finally(() => (beating = null));
      if (!holds()) void endIfOthersMay();
    },
    settled: async (): Promise<void> => {
      await beating;
      await seeing;
    },
  };
}

interface Look {
  /** The database's time of it; null: this node was given up. */
  beat(): Promise<Instant | null>;
  /** Sees to the others: gives up who is dead, takes up what they left. */
  see(now: Instant): Promise<void>;
}

function createLook(options: NodesOptions & NodeWork, life: Life, lose: () => void): Look {
  const { nodeId, store, system } = options;
  const { isAlone } = store;
  const bury = createBurial(options, life);
  const compare = createClockWatch(options);
  return {
    beat: async () => {
      const startedMs = system.monotonicMs();
      const startedAt = system.now();
      const stoodStill = silentMs(life, system) > LATE_MS;
      const now = await store.clock();
      compare(startedAt, now);
      const { state } = life;
      const leaseUntil = isAlone ? null : now + LIMITS.nodeLeaseMs * 1000;
      if (!isAlone && !await store.beat({
        leaseUntil, state, calls: options.calls(), streams: options.streams(), now,
      })) {
        lose();
        return null;
      }
      // Others may have stood still with it, on the same machine, and come back a moment later.
      if (stoodStill) Object.assign(life, { wasAway: true, steadyMs: null });
      Object.assign(life, { beatMs: startedMs, beatAt: startedAt });
      life.steadyMs ??= startedMs;
      return now;
    },
    see: async (now) => {
      life.others = (await store.list()).filter(({ id }) => id !== nodeId);
      for (const other of life.others) await bury(other, now);
      await takeUp(options, life, now);
      life.hasClock = life.state === "live" && await hasLease(options, life, "clock");
    },
  };
}

/** Says that this machine's clock and the database's are apart, once until they are together. */
function createClockWatch({ log, system }: NodesOptions) {
  let isApart = false;
  return (before: Instant, theirs: Instant): void => {
    const offMs = aheadMs(before, theirs, system.now());
    const wasApart = isApart;
    isApart = Math.abs(offMs) > LIMITS.clockOffMsTold;
    if (!isApart || wasApart) return;
    log.warn({ ahead_ms: Math.round(offMs) }, "this machine's clock is not the database's: have NTP"
      + " set it; a node does not start where it is more than a minute off");
  };
}

/** Taken where nobody who lives has it. */
async function hasLease(
  { nodeId, store }: NodesOptions, { others }: Life, name: LeaseName,
): Promise<boolean> {
  const holder = (await store.leases()).find((lease) => lease.name === name)?.nodeId;
  if (holder === nodeId) return true;
  const lives = others.some((other) => other.id === holder && isLiving(other));
  return !lives && await store.takeLease(name);
}

/**
 * Whatever is owned by who is gone is ended, again and again until nobody who was given up can
 * still be writing: such a one knows within a lease.
 */
async function takeUp(
  { store, recover }: NodesOptions & NodeWork, { others }: Life, now: Instant,
): Promise<void> {
  const gone = others.filter(({ goneAt }) => goneAt !== null);
  if (gone.length === 0 && !store.isAlone) return;
  await recover();
  const settleMicros = store.isAlone ? 0 : LIMITS.nodeLeaseMs * 1000;
  const over = gone.filter(({ goneAt }) => now - (goneAt ?? now) >= settleMicros);
  if (over.length > 0) await store.recovered({ deadIds: over.map(({ id }) => id), now });
}

/** Marks a node as gone: its lease is over, or it misses beats and nobody answers in its name. */
function createBurial({ store, wire, system, log }: NodesOptions, life: Life) {
  const answers = async ({ id }: NodeRecord): Promise<boolean> => {
    if (wire?.state() !== "up") return true;
    try {
      await wire.request(subjectOf(id), EMPTY, LIMITS.nodeAnswerMs);
      return true;
    } catch (error) {
      // What this node cannot know is no proof that another is dead.
      if (error instanceof WireFault) return error.reason === "down";
      throw error;
    }
  };
  const isSilent = async (other: NodeRecord): Promise<boolean> =>
    !await answers(other) && !await answers(other);
  /** At how many looks each has shown the same beat. */
  const stale = new Map<number, Pick<NodeRecord, "beatAt"> & { looks: number }>();
  const looksAt = ({ id, beatAt }: NodeRecord): number => {
    const before = stale.get(id);
    const looks = before?.beatAt === beatAt ? before.looks + 1 : 1;
    stale.set(id, { beatAt, looks });
    return looks;
  };
  /**
   * After it was away from the database, everybody has a lease's time to come back to that; or as
   * many looks as are in one, where this node is late again and again.
   */
  const mayJudge = (looks: number): boolean => !life.wasAway
    || (life.steadyMs !== null && system.monotonicMs() - life.steadyMs >= LIMITS.nodeLeaseMs)
    || looks * LIMITS.nodeBeatMs > LIMITS.nodeLeaseMs;
  const startedMs = system.monotonicMs();
  /** Who has just come cannot tell whether the database was away. */
  const isNew = (): boolean => system.monotonicMs() - startedMs < LIMITS.nodeLeaseMs;

  return async (other: NodeRecord, now: Instant): Promise<void> => {
    const { id: deadId, state, beatAt, leaseUntil } = other;
    if (state === "gone") return void stale.delete(deadId);
    if (!mayJudge(looksAt(other))) return;
    const isOver = leaseUntil === null || leaseUntil < now;
    const isLate = now - beatAt > LATE_MS * 1000;
    const isProof = isOver && !(wire && isNew());
    if (!isProof && !((isOver || isLate) && await isSilent(other))) return;
    if (!await store.bury({ deadId, beatAt, now })) return;
    log.warn({ node_id: deadId, name: other.name }, "a node was given up");
    Object.assign(other, { state: "gone", goneAt: now } satisfies Partial<NodeRecord>);
  };
}
