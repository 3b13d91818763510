// Which nodes serve the database: this process' row among the others', its heartbeat, and what
// becomes of nodes that no longer beat. Over SQLite there is only one, so nothing beats and no
// lease runs out; what an earlier process left is recovered by the same code. Started by app.ts.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { createRecurring } from "#core/recurring.ts";
import { aheadMs, wait, type Instant, type System } from "#core/system.ts";
import type { Cluster, NodeView, Owned, Waiting } from "./cluster.ts";
import { WireFault, type Wire } from "./wire.ts";

export type NodeState = "live" | "draining" | "gone";

/** What a process says about itself when it starts. */
export interface NewNode {
  name: string;
  url: string | null;
  /** The version of the protocol between nodes. */
  protocol: number;
  /** A node known to be gone: it ran in the data folder that this process has now. */
  before?: number;
}

export interface NodeRecord extends Pick<NewNode, "name" | "url"> {
  id: number;
  state: NodeState;
  startedAt: Instant;
  beatAt: Instant;
  /** Null: it needs no lease, because it holds the folder's lock for as long as it lives. */
  leaseUntil: Instant | null;
  version: string;
  /** Live calls as of the last beat; `streams` counts the open ones as of then. */
  calls: number;
  streams: number;
  goneAt: Instant | null;
}

/** Instants are by the database's clock. Each write is one transaction, made as this node. */
export interface NodeStore {
  clock(): Promise<Instant>;
  /** Resolves to this node's id. Over SQLite every other node is gone: this one has the lock. */
  join(self: NewNode): Promise<number>;
  /** Whether no other node can serve the database. */
  readonly isAlone: boolean;
  /** Nodes whose work has not been fully recovered, living ones included; ordered by id. */
  list(): Promise<NodeRecord[]>;
  leases(): Promise<{ name: string; nodeId: number }[]>;
  owned(): Promise<Owned[]>;
  waiting(): Promise<Waiting>;
  /** False: this node was given up. */
  beat(args: {
    leaseUntil: Instant | null; state: NodeState; calls: number; streams: number; now: Instant;
  }): Promise<boolean>;
  /** True: this node has the lease, since now or before. */
  takeLease(name: LeaseName): Promise<boolean>;
  giveLeaseBack(name: LeaseName): Promise<void>;
  /** Marks a node as gone unless it has beaten since; false: it has, or another node was first. */
  bury(args: { deadId: number; beatAt: Instant; now: Instant }): Promise<boolean>;
  leave(args: { now: Instant }): Promise<void>;
  recovered(args: { deadIds: number[]; now: Instant }): Promise<void>;
}

/** `clock`: the periodic work that one node does for all. */
export type LeaseName = "clock";

interface NodesOptions {
  nodeId: number;
  store: NodeStore;
  /** Null: other nodes cannot be asked, so each is given up when its lease has run out. */
  wire: Wire | null;
  self: Pick<NewNode, "url">;
  system: System;
  log: Logger;
}

/** What this node has under way, and what it does for nodes that are gone. */
export interface NodeWork {
  /** Live calls. */
  calls(): number;
  /** Open streams. */
  streams(): number;
  /** Ends the work that gone nodes left behind; may run again over the same work. */
  recover(): Promise<void>;
}

export interface Nodes extends Cluster {
  /** Whether this node does the periodic work for all. */
  hasClock(): boolean;
  /** How long the lease still holds. Infinity over SQLite, where no other node can take over. */
  holdsForSeconds(): number;
  /** Recovers what others left behind; from here on this node beats. */
  start(work: NodeWork): Promise<void>;
  /** This node starts nothing new; other nodes learn it from its next beat. */
  drain(): Promise<void>;
  /** Lets others take the clock. Called after `drain`, once what the clock began here is over. */
  giveClock(): Promise<void>;
  /** Called when this node owns nothing any more. Idempotent. */
  leave(): Promise<void>;
}

/** What is logged as failed, and as working again. */
const BEATING = "renewing this node's lease";
const SEEING = "checking the other nodes";

const subjectOf = (nodeId: number): string => `there.${nodeId}`;
const EMPTY = new Uint8Array();
/** The answer of a node cut off from the database: once back, it waits a lease before it buries. */
const AWAY = Uint8Array.of(1);

/** The state this node keeps between one beat and the next. */
interface Life {
  state: NodeState;
  /** When the last stored beat began, by both clocks. */
  beatMs: number;
  beatAt: Instant;
  /** Since when every beat was stored; null: the last one was not. */
  steadyMs: number | null;
  /** Whether this node was ever cut off from the database, or was itself paused. */
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
    log.fatal({ node_id: nodeId }, "this node lost its lease: other nodes have taken over its work");
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
/** The clock that advanced more counts: the other may have stood still. */
const silentMs = (life: Life, system: System): number =>
  Math.max(sinceBeatMs(life, system), (system.now() - life.beatAt) / 1000);
/** How long this node still holds; it runs out sooner than the lease in the database. */
const leftMs = (life: Life, system: System): number =>
  LIMITS.nodeHoldMs - silentMs(life, system);
/** A node whose beat is this late is asked whether it still answers. */
const LATE_MS = LIMITS.nodeBeatsMissed * LIMITS.nodeBeatMs;
/** Cut off for so long that none of its earlier statements can still be running in the database. */
const isAway = (life: Life, system: System): boolean =>
  life.steadyMs === null && sinceBeatMs(life, system) >= LIMITS.nodeAwayMs;
const isFresh = (life: Life, system: System): boolean => leftMs(life, system) > 0;

type Round = ReturnType<typeof createRound>;

/**
 * Whether another node may give this one up while it cannot beat. Not if all answer that they are
 * cut off too: the first to reach the database again waits for a lease, and is asked until then.
 */
async function mayBeGivenUp({ wire }: NodesOptions, { others }: Life): Promise<boolean> {
  const living = others.filter(isLiving);
  if (!wire) return living.length > 0;
  const answers = await Promise.allSettled(living.map(({ id }) =>
    wire.request(subjectOf(id), EMPTY, LIMITS.nodeAnswerMs)));
  return answers.some((answer) => answer.status === "rejected" || answer.value[0] !== AWAY[0]);
}

/**
 * Runs one beat at a time, then one look at the others. Beats do not wait for a look: what a dead
 * node left may be much. Every due beat also checks whether this node still holds its lease.
 */
function createRound({ options, life, holds, lose, look }: {
  options: NodesOptions; life: Life; holds(): boolean; lose(): void; look: Look;
}) {
  let beating: Promise<void> | null = null;
  let seeing: Promise<void> | null = null;
  const recurring = createRecurring(options.log);
  const failed = (what: string) => (error: unknown): void => {
    life.steadyMs = null;
    life.wasAway = true;
    recurring.failed(what, error);
  };
  const see = (now: Instant): Promise<void> => look.see(now)
    .then(() => recurring.succeeded(SEEING), failed(SEEING))
    .finally(() => (seeing = null));
  const beatAndSee = async (): Promise<void> => {
    const now = await look.beat();
    recurring.succeeded(BEATING);
    if (now !== null) seeing ??= see(now);
  };
  const endIfOthersMay = async (): Promise<void> => {
    // A process that was paused learns from its own beat, not from others that may be as late.
    await Promise.race([beating, wait(options.system, LIMITS.nodeAnswerMs)]);
    // Only the wall clock says it is late: it was set, or the machine slept. The beat tells which.
    if (life.steadyMs !== null && sinceBeatMs(life, options.system) < LIMITS.nodeHoldMs) return;
    if (await mayBeGivenUp(options, life) && !holds()) lose();
  };
  return {
    begin: (): void => {
      if (life.isLost) return;
      beating ??= beatAndSee().catch(failed(BEATING)).finally(() => (beating = null));
      if (!holds()) void endIfOthersMay();
    },
    settled: async (): Promise<void> => {
      await beating;
      await seeing;
    },
  };
}

interface Look {
  /** Resolves to the database's time of the beat; null: this node was given up. */
  beat(): Promise<Instant | null>;
  /** Looks at the other nodes: marks dead ones as gone, and recovers what they left. */
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
      // Nodes on the same machine may have been paused with it, and come back a moment later.
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

/** Warns when this machine's clock and the database's differ, and not again until they agreed. */
function createClockWatch({ log, system }: NodesOptions) {
  let isApart = false;
  return (before: Instant, theirs: Instant): void => {
    const offMs = aheadMs(before, theirs, system.now());
    const wasApart = isApart;
    isApart = Math.abs(offMs) > LIMITS.clockOffMsTold;
    if (!isApart || wasApart) return;
    log.warn({ ahead_ms: Math.round(offMs) }, "this machine's clock differs from the database's: synchronise"
      + " both by NTP; a node whose clock is more than a minute off does not start");
  };
}

/** Takes the lease unless a living node has it. */
async function hasLease(
  { nodeId, store }: NodesOptions, { others }: Life, name: LeaseName,
): Promise<boolean> {
  const holder = (await store.leases()).find((lease) => lease.name === name)?.nodeId;
  if (holder === nodeId) return true;
  const lives = others.some((other) => other.id === holder && isLiving(other));
  return !lives && await store.takeLease(name);
}

/**
 * Ends whatever gone nodes own, at every look until none of them can still be writing: a node that
 * was given up knows it within a lease.
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
      // That this node's own wire is down is no proof that another node is dead.
      if (error instanceof WireFault) return error.reason === "down";
      throw error;
    }
  };
  const isSilent = async (other: NodeRecord): Promise<boolean> =>
    !await answers(other) && !await answers(other);
  /** At how many looks in a row each node has shown the same beat. */
  const stale = new Map<number, Pick<NodeRecord, "beatAt"> & { looks: number }>();
  const looksAt = ({ id, beatAt }: NodeRecord): number => {
    const before = stale.get(id);
    const looks = before?.beatAt === beatAt ? before.looks + 1 : 1;
    stale.set(id, { beatAt, looks });
    return looks;
  };
  /**
   * After this node was cut off from the database, it gives the others one lease to come back, or
   * as many looks as fit into a lease if its own beats keep failing.
   */
  const mayJudge = (looks: number): boolean => !life.wasAway
    || (life.steadyMs !== null && system.monotonicMs() - life.steadyMs >= LIMITS.nodeLeaseMs)
    || looks * LIMITS.nodeBeatMs > LIMITS.nodeLeaseMs;
  const startedMs = system.monotonicMs();
  /** A node that has just started cannot tell whether the database was out of reach. */
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
    log.warn({ node_id: deadId, name: other.name }, "a node stopped responding: its work is taken over");
    Object.assign(other, { state: "gone", goneAt: now } satisfies Partial<NodeRecord>);
  };
}
