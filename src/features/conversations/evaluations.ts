// Evaluates conversations that have ended, in the background: a few at a time, each once per end.
// What is due is in the database, so a restart takes up what a crash left.
import type { Logger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import { nextTurn, type Instant, type System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";

interface DueEvaluation {
  id: number;
  uuid: string;
  accountId: number;
  assistantId: number;
  /** Tells this end from a later one. */
  endedAt: Instant;
}

interface Result {
  values: Record<string, unknown>;
  error: string | null;
}

export type Evaluated = DueEvaluation & Result & { now: Instant };

export interface EvaluationStore {
  /** At most `rows`, oldest conversation first. */
  due(rows: number): Promise<DueEvaluation[]>;
  find(uuid: string): Promise<{ isDue: boolean; values: Record<string, unknown> }>;
  /** No events: the conversation has ended again, and waits for another. */
  evaluated(args: Evaluated): Promise<CommittedEvent[]>;
}

export interface EvaluationOptions {
  store: EvaluationStore;
  evaluate(due: DueEvaluation, signal: AbortSignal): Promise<Result>;
  bus: EventBus;
  system: System;
  log: Logger;
}

export function createEvaluations({ store, evaluate, bus, system, log }: EvaluationOptions) {
  const working = new Set<number>();
  const closing = new AbortController();
  let waiting: (() => void)[] = [];
  let isAwake = false;
  let looking: Promise<void> | null = null;

  const tellWaiting = (): void => {
    const notified = waiting;
    waiting = [];
    for (const notify of notified) notify();
  };
  const work = async (due: DueEvaluation): Promise<void> => {
    const result = await evaluate(due, closing.signal);
    // What was cut short is due at the next start.
    if (closing.signal.aborted) return;
    bus.publishCommitted(await store.evaluated({ ...due, ...result, now: system.now() }));
  };
  const begin = (due: DueEvaluation): void => {
    working.add(due.id);
    work(due).then(
      () => {
        working.delete(due.id);
        wake();
      },
      // It stays with those at work: the disk has failed, and would at once again.
      (error: unknown) => log.error(
        { err: error, conversation_id: due.uuid }, "an evaluation could not be stored"),
    ).finally(tellWaiting);
  };
  /** One look at a time, and another for what is asked meanwhile. */
  const look = async (): Promise<void> => {
    // Once for everything one turn of the loop brought.
    await nextTurn();
    while (isAwake && !closing.signal.aborted) {
      isAwake = false;
      for (const due of await store.due(2 * LIMITS.evaluationsAtOnceMax)) {
        if (working.size >= LIMITS.evaluationsAtOnceMax || closing.signal.aborted) break;
        if (!working.has(due.id)) begin(due);
      }
    }
  };
  const wake = (): void => {
    isAwake = true;
    if (looking || closing.signal.aborted) return;
    looking = look()
      .catch((error: unknown) => log.error({ err: error }, "evaluations could not be looked up"))
      .finally(() => {
        looking = null;
        // Asked for after the last look and before this line.
        if (isAwake) wake();
      });
  };
  return {
    /** Takes up what waits from before. */
    start: wake,
    wake,
    /** The values, once none is due; null: the server stops first. */
    valuesOf: async (uuid: string): Promise<Record<string, unknown> | null> => {
      while (!closing.signal.aborted) {
        const { isDue, values } = await store.find(uuid);
        if (!isDue) return values;
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          wake();
        });
      }
      return null;
    },
    close: async (): Promise<void> => {
      closing.abort(new Error("the server is stopping"));
      tellWaiting();
      await looking;
    },
  };
}
