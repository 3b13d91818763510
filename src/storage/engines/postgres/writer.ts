// The path of every write on PostgreSQL: commands queue by account while sessions are busy; a free
// session takes its share of the waiting accounts into one transaction. Opened by storage.ts.
//
// It runs on the caller's thread, where nothing waits for a disk. A thread of its own would save
// half of a charge's CPU and cost two hops.
import { Fault, StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wait, type System } from "#core/system.ts";
import { createBacklog } from "#storage/backlog.ts";
import { lockOf, type Lock } from "#storage/locks.ts";
import { PATIENT, type AllCommands } from "#storage/commands.ts";
import type { Writer } from "#storage/writer.ts";
import {
  failed, runBatch, wasCommitted, type Outcome, type Request, type Share,
} from "./batch.ts";
import { commandsOver } from "./commands.ts";
import { areAbsent, createLink, type Link, type Reach } from "./link.ts";
import type { Session, SessionOptions } from "./session.ts";

interface Waiting extends Request {
  sinceMs: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The queue under one lock; at most one transaction at a time has commands from it. */
interface Line {
  name: string;
  lock: Lock;
  waiting: Waiting[];
  /** Ends that the database refused, ahead of what waits. */
  held: Waiting[];
  isUnderWay: boolean;
}

interface Taken {
  line: Line;
  waiting: Waiting[];
}

/** How much longer it may wait for an unreachable database. */
const leftMs = ({ sinceMs }: Waiting, nowMs: number): number =>
  sinceMs + LIMITS.databaseGoneMs - nowMs;

const nameOf = (lock: Lock): string =>
  ("account" in lock ? `account ${lock.account}` : lock.global);

/** Lines by lock; those with commands waiting and no transaction are served in order of arrival. */
function createLines() {
  const lines = new Map<string, Line>();
  const due = new Set<Line>();
  const look = (line: Line): void => {
    if (line.waiting.length > 0 && !line.isUnderWay) due.add(line);
    else due.delete(line);
    const isEmpty = line.waiting.length === 0 && line.held.length === 0;
    if (isEmpty && !line.isUnderWay) lines.delete(line.name);
  };
  return {
    add: (lock: Lock, waiting: Waiting): void => {
      const name = nameOf(lock);
      const line = lines.get(name) ?? { name, lock, waiting: [], held: [], isUnderWay: false };
      lines.set(name, line);
      const isBehind = line.held.length > 0 && waiting.isPatient;
      (isBehind ? line.held : line.waiting).push(waiting);
      look(line);
    },
    due: (): number => due.size,
    take: (share: number): Taken[] => [...due].slice(0, share).map((line) => {
      const waiting = line.waiting.splice(0, LIMITS.databaseBatchCommands);
      line.isUnderWay = true;
      look(line);
      return { line, waiting };
    }),
    release: ({ line }: Taken): void => {
      line.isUnderWay = false;
      look(line);
    },
    /** Holds refused ends and the ends queued behind them; other commands do not wait for those. */
    hold: ({ line }: Taken, refused: Waiting[]): void => {
      if (refused.length === 0) return;
      line.held = [...refused, ...line.held, ...line.waiting.filter((one) => one.isPatient)];
      line.waiting = line.waiting.filter((one) => !one.isPatient);
    },
    isHolding: (): boolean => [...lines.values()].some(({ held }) => held.length > 0),
    /** Queues held ends again, as if they had just been asked for. */
    retry: (nowMs: number): void => {
      for (const line of lines.values()) {
        for (const one of line.held) one.sinceMs = nowMs;
        line.waiting.unshift(...line.held.splice(0));
        look(line);
      }
    },
    /** Takes out commands that have waited too long for the database and are in no transaction. */
    expire: (nowMs: number): Waiting[] => [...lines.values()]
      .flatMap((line) => {
        const over = line.waiting.filter((one) => !one.isPatient && leftMs(one, nowMs) <= 0);
        if (over.length > 0) line.waiting = line.waiting.filter((one) => !over.includes(one));
        look(line);
        return over;
      }),
  };
}

type Lines = ReturnType<typeof createLines>;

const failureOf = (error: unknown): StorageFailure => (error instanceof StorageFailure
  ? error
  : new StorageFailure("could not write to the database", error));

/** Answers what is over; refused ends are held, if that is allowed. */
function settle(lines: Lines, taken: Taken[], outcomes: Outcome[][], mayHold: boolean): void {
  for (const [share, one] of taken.entries()) {
    const held = one.waiting.filter((request, index) => {
      const outcome = outcomes[share]?.[index];
      if (outcome?.kind === "refused" && mayHold && request.isPatient) return true;
      if (!outcome) request.reject(new Error("the writer gave no outcome"));
      else if (outcome.kind === "done") request.resolve(outcome.value);
      else if (outcome.kind === "threw") request.reject(outcome.error);
      else request.reject(failureOf(outcome.error));
      return false;
    });
    lines.hold(one, held);
  }
}

/**
 * Polls until the database knows; null: the writer was closed before the database could be reached,
 * or while it hung. A commit that hangs may still happen, so it is neither repeated nor refused.
 */
async function whatBecameOf(
  link: Link, transaction: string, reach: Reach, system: System, isClosing: () => boolean,
): Promise<boolean | null> {
  const sinceMs = system.monotonicMs();
  let release: (() => void) | null = null;
  try {
    for (;;) {
      try {
        const session = await link.session(LIMITS.databaseGoneMs);
        const known = await wasCommitted(session, transaction);
        if (known !== null) return known;
        if (system.monotonicMs() - sinceMs >= LIMITS.databaseGoneMs) release ??= reach.hangs();
        if (release && isClosing()) return null;
      } catch {
        // The database will know later: a guess would repeat the transaction, or lose it.
        if (isClosing()) return null;
      }
      await wait(system, LIMITS.databaseRetryMs / 5);
    }
  } finally {
    release?.();
  }
}

/**
 * Waits for a session and rejects commands that have waited too long. Resolves to null once none is
 * left; rejects when only ends are left: those are held, so that they keep their order.
 */
async function waitFor(link: Link, taken: Taken[], system: System): Promise<Session | null> {
  for (;;) {
    const all = taken.flatMap(({ waiting }) => waiting);
    if (all.length === 0) return null;
    const left = Math.min(...all.map((one) => leftMs(one, system.monotonicMs())));
    try {
      return await link.session(Math.max(LIMITS.databaseRetryMs, left));
    } catch (error) {
      const nowMs = system.monotonicMs();
      for (const one of taken) {
        const mayWait = (request: Waiting): boolean =>
          request.isPatient || leftMs(request, nowMs) > 0;
        for (const request of one.waiting) if (!mayWait(request)) request.reject(error);
        one.waiting = one.waiting.filter(mayWait);
      }
      const isOfEnds = taken.every(({ waiting }) => waiting.every(({ isPatient }) => isPatient));
      if (isOfEnds) throw error;
    }
  }
}

/** Retries what was taken until it is committed, whatever happens to connections in between. */
async function commitTaken(
  taken: Taken[], link: Link, reach: Reach, system: System, isClosing: () => boolean,
): Promise<Outcome[][]> {
  let last: unknown;
  for (let tries = 0; tries < LIMITS.databaseTries; tries += 1) {
    const session = await waitFor(link, taken, system);
    if (!session) return [];
    const shares: Share[] = taken.map(({ line, waiting }) =>
      ({ lock: line.lock, requests: waiting }));
    const ended = await runBatch(session, commandsOver(session), shares);
    if (ended.kind === "committed") return ended.outcomes;
    if (ended.kind === "unknown") {
      const committed = await whatBecameOf(
        link, ended.transaction, reach, system, isClosing);
      if (committed) return ended.outcomes;
      if (committed === null) throw new StorageFailure("the database was closed");
    } else last = ended.error;
  }
  throw new StorageFailure("the database refused a change at every attempt", last);
}

/** Sessions that take their share of the lines; `work` never rejects. */
function createCrew(
  links: Link[], lines: Lines, work: (link: Link, taken: Taken[]) => Promise<void>,
) {
  const free = new Set(links);
  const underWay = new Set<Promise<void>>();
  const flush = (): void => {
    // Connected links if there are any: a link that cannot connect now may never do so.
    const isThere = links.some((link) => link.current() !== null);
    const order = [...free].filter((link) => !isThere || link.current() !== null);
    for (const [index, link] of order.entries()) {
      if (lines.due() === 0) return;
      const share = Math.ceil(lines.due() / (order.length - index));
      const taken = lines.take(Math.min(share, LIMITS.databaseBatchAccounts));
      free.delete(link);
      const worked = work(link, taken).then(() => {
        for (const one of taken) lines.release(one);
        underWay.delete(worked);
        free.add(link);
        flush();
      });
      underWay.add(worked);
    }
  };
  return {
    flush,
    settled: async (): Promise<void> => {
      while (underWay.size > 0 || lines.due() > 0) {
        flush();
        await Promise.all(underWay);
      }
    },
  };
}

/** Frees the command's room in the backlog, whichever way it is answered. */
function answersOf(
  resolve: (value: never) => void, reject: (error: unknown) => void, leave: () => void,
): Pick<Waiting, "resolve" | "reject"> {
  return {
    resolve: (value) => {
      leave();
      resolve(value as never);
    },
    reject: (error) => {
      leave();
      reject(error);
    },
  };
}

export function createWriter(
  options: Pick<SessionOptions, "url" | "system">, reach: Reach,
  { writers, writesMax }: { writers: number; writesMax: number },
): Writer<AllCommands> {
  const { system } = options;
  const links = Array.from({ length: writers }, () => createLink({
    ...options, purpose: "writes", statementMs: LIMITS.databaseAnswerMs,
    idleMs: LIMITS.databaseGoneMs,
  }, reach));
  const lines = createLines();
  const backlog = createBacklog(writesMax);
  let isScheduled = false;
  /** When the last batch was refused; null: it was not. */
  let refusedMs: number | null = null;
  let closing: Promise<void> | null = null;
  const crew = createCrew(links, lines, async (link, taken) => {
    const outcomes = await commitTaken(taken, link, reach, system, () => closing !== null)
      .catch((error: unknown) => taken.map(({ waiting }) => waiting.map(() => failed(error))));
    refusedMs = outcomes.flat().some(({ kind }) => kind === "refused")
      ? system.monotonicMs() : null;
    settle(lines, taken, outcomes, closing === null);
  });
  const retries = system.every(LIMITS.diskRetryMs, () => {
    lines.retry(system.monotonicMs());
    crew.flush();
  });
  const failureNow = (): StorageFailure | null => reach.failure() ?? (areAbsent(links)
    ? new StorageFailure("the database takes no connection for writes") : null);
  const impatience = system.every(LIMITS.databaseRetryMs, () => {
    const failure = failureNow();
    if (!failure) return;
    for (const { reject } of lines.expire(system.monotonicMs())) reject(failure);
  });
  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      crew.flush();
    });
  };
  const close = async (): Promise<void> => {
    retries.cancel();
    lines.retry(system.monotonicMs());
    await crew.settled();
    impatience.cancel();
    await Promise.all(links.map((link) => link.close()));
  };
  /** Where nobody writes any more, nothing would tell that the database takes writes again. */
  const wasRefused = (): boolean =>
    refusedMs !== null && system.monotonicMs() - refusedMs < LIMITS.databaseRefusalMs;
  return {
    write: (command, args) => new Promise((resolve, reject) => {
      const isPatient = PATIENT.has(command);
      if (closing) return reject(new StorageFailure("the database was closed"));
      const failure = failureNow();
      if (failure && !isPatient) return reject(failure);
      const lock = lockOf(command, args);
      if (!backlog.enter(lock, isPatient)) {
        return reject(new Fault(503, "The server is overloaded.", { retryAfterS: 1 }));
      }
      lines.add(lock, {
        command, args, isPatient, sinceMs: system.monotonicMs(),
        ...answersOf(resolve, reject, () => backlog.leave(lock)),
      });
      schedule();
    }),
    failure: failureNow,
    isRefusing: () => failureNow() !== null || wasRefused() || lines.isHolding(),
    close: () => (closing ??= close()),
  };
}
