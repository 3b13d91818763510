// Evaluates ended conversations in the background: a few at a time, each once per end. Due
// evaluations are in the database, so a restart resumes what a crash left.
import { StorageFailure } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { createLooks } from "#core/looks.ts";
import type { Instant, System } from "#core/system.ts";
import { createTurns } from "#core/turns.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";

interface DueEvaluation {
  id: number;
  uuid: string;
  accountId: number;
  assistantId: number;
  /** Distinguishes this end from a later one. */
  endedAt: Instant;
}

interface Result {
  values: Record<string, unknown>;
  error: string | null;
}

export type Evaluated = DueEvaluation & Result & { now: Instant };

export interface EvaluationStore {
  /** At most `rows`: the oldest conversation of each account, then the second of each, and on. */
  due(rows: number): Promise<DueEvaluation[]>;
  find(uuid: string): Promise<{ isDue: boolean; values: Record<string, unknown> }>;
  /** No events: the conversation has ended again since, and needs another evaluation. */
  evaluated(args: Evaluated): Promise<CommittedEvent[]>;
}

export interface EvaluationOptions {
  store: EvaluationStore;
  /** True on the one node that evaluates for all; otherwise each would pay the model. */
  isOurs(): boolean;
  evaluate(due: DueEvaluation, signal: AbortSignal): Promise<Result>;
  /** Conversations evaluated at the same time. */
  atOnceMax: number;
  bus: EventBus;
  system: System;
  log: Logger;
}

/** Evaluates one and stores the result; a defect would recur, at a price, and is its result. */
async function work(
  { store, evaluate, bus, system, log }: EvaluationOptions, due: DueEvaluation,
  stopping: AbortSignal,
): Promise<void> {
  const keep = async (result: Result): Promise<void> =>
    bus.publishCommitted(await store.evaluated({ ...due, ...result, now: system.now() }));
  try {
    const result = await evaluate(due, stopping);
    // An aborted evaluation stays due, for the next start.
    if (!stopping.aborted) await keep(result);
  } catch (error) {
    if (error instanceof StorageFailure || stopping.aborted) throw error;
    log.error({ err: error, conversation_id: due.uuid }, "an evaluation failed");
    await keep({ values: {}, error: "The evaluation failed." });
  }
}

/** How many accounts that wait are seen at a time, to take turns. */
const ACCOUNTS_SEEN = 50;

export function createEvaluations(options: EvaluationOptions) {
  const { store, isOurs, atOnceMax, log } = options;
  const working = new Set<number>();
  /** Finished since the current poll began, which may still have read them as due. */
  const over = new Set<number>();
  const closing = new AbortController();
  const underWay = new Set<Promise<void>>();
  const waiting = createWaiting();
  const choose = createTurns();

  const begin = (due: DueEvaluation): void => {
    working.add(due.id);
    const begun = work(options, due, closing.signal).then(
      () => {
        working.delete(due.id);
        over.add(due.id);
        wake();
      },
      (error: unknown) => {
        // Retried by the next poll.
        if (error instanceof StorageFailure) working.delete(due.id);
        log.error({ err: error, conversation_id: due.uuid }, "could not evaluate a chat");
      },
    ).finally(() => {
      underWay.delete(begun);
      waiting.tell();
    });
    underWay.add(begun);
  };
  const looks = createLooks(async () => {
    if (closing.signal.aborted) return;
    if (!isOurs()) return waiting.tell();
    over.clear();
    const found = await store.due(2 * atOnceMax + ACCOUNTS_SEEN);
    while (working.size < atOnceMax && !closing.signal.aborted && isOurs()) {
      const due = choose(found.filter(({ id }) => !working.has(id) && !over.has(id)));
      if (!due) return;
      begin(due);
    }
  }, log, "looking up evaluations");
  const wake = looks.ask;
  return {
    /** Resumes evaluations that were due before the start. */
    start: wake,
    wake,
    /** The values, once none is due; null: the server stops first. */
    valuesOf: async (uuid: string): Promise<Record<string, unknown> | null> => {
      while (!closing.signal.aborted) {
        const before = waiting.told();
        const { isDue, values } = await store.find(uuid);
        if (!isDue) return values;
        // An evaluation may have ended during the read, before this caller waited for it.
        if (waiting.told() !== before) continue;
        const next = waiting.next();
        // If another node evaluates, the next poll reads its result.
        if (isOurs()) wake();
        await next;
      }
      return null;
    },
    /** Resolves when none is running here; called once another node has taken over. */
    settled: async (): Promise<void> => {
      await looks.settled();
      await Promise.all(underWay);
    },
    close: async (): Promise<void> => {
      closing.abort(new Error("the server is stopping"));
      waiting.tell();
      await looks.settled();
    },
  };
}

/** Callers of `valuesOf` that wait until they are notified to read again. */
function createWaiting() {
  let waiting: (() => void)[] = [];
  let told = 0;
  return {
    tell: (): void => {
      told += 1;
      const notified = waiting;
      waiting = [];
      for (const notify of notified) notify();
    },
    /** How often they were notified. */
    told: (): number => told,
    next: (): Promise<void> => new Promise((resolve) => void waiting.push(resolve)),
  };
}
