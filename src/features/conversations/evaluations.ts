// Evaluates conversations that have ended, in the background: a few at a time, each once per end.
// What is due is in the database, so a restart takes up what a crash left.
import { StorageFailure } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { createLooks } from "#core/looks.ts";
import type { Instant, System } from "#core/system.ts";
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
  /** One node evaluates for all, or each would pay the model for the same. */
  isOurs(): boolean;
  evaluate(due: DueEvaluation, signal: AbortSignal): Promise<Result>;
  /** Conversations evaluated at the same time. */
  atOnceMax: number;
  bus: EventBus;
  system: System;
  log: Logger;
}

export function createEvaluations(options: EvaluationOptions) {
  const { store, isOurs, evaluate, atOnceMax, bus, system, log } = options;
  const working = new Set<number>();
  /** Over since the look under way began, which may have read them as due all the same. */
  const over = new Set<number>();
  const closing = new AbortController();
  const underWay = new Set<Promise<void>>();
  const waiting = createWaiting();

  const work = async (due: DueEvaluation): Promise<void> => {
    const result = await evaluate(due, closing.signal);
    // What was cut short is due at the next start.
    if (closing.signal.aborted) return;
    bus.publishCommitted(await store.evaluated({ ...due, ...result, now: system.now() }));
  };
  const begin = (due: DueEvaluation): void => {
    working.add(due.id);
    const begun = work(due).then(
      () => {
        working.delete(due.id);
        over.add(due.id);
        wake();
      },
      (error: unknown) => {
        // The next look takes it up again; whatever else it is would be so again, at a price.
        if (error instanceof StorageFailure) working.delete(due.id);
        log.error({ err: error, conversation_id: due.uuid }, "a chat could not be evaluated");
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
    for (const due of await store.due(2 * atOnceMax)) {
      if (working.size >= atOnceMax || closing.signal.aborted || !isOurs()) return;
      if (!working.has(due.id) && !over.has(due.id)) begin(due);
    }
  }, (error) => log.error({ err: error }, "evaluations could not be looked up"));
  const wake = looks.ask;
  return {
    /** Takes up what waits from before. */
    start: wake,
    wake,
    /** The values, once none is due; null: the server stops first. */
    valuesOf: async (uuid: string): Promise<Record<string, unknown> | null> => {
      while (!closing.signal.aborted) {
        const before = waiting.told();
        const { isDue, values } = await store.find(uuid);
        if (!isDue) return values;
        // What was read may be from before the end that nobody here waited for yet.
        if (waiting.told() !== before) continue;
        const next = waiting.next();
        // What another node is at is asked for again with the next look.
        if (isOurs()) wake();
        await next;
      }
      return null;
    },
    /** Once they are no longer this node's to begin: resolves when it is at none any more. */
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

/** Those who look again when they are told to. */
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
    /** How often they were. */
    told: (): number => told,
    next: (): Promise<void> => new Promise((resolve) => void waiting.push(resolve)),
  };
}
