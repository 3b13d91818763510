// Which engine takes over when one has failed: in the order of preference, those that have failed
// lately last. Used by the two fallbacks beside it, for all calls of the media thread.
import type { System } from "#core/system.ts";

/** For this long after a failure, an engine is nobody's first choice. */
export const REST_MS = 30_000;
/** A stream waits this long before it retries an engine that failed it. */
const AGAIN_MS = 10_000;
const RESTING_MAX = 1000;

export interface Candidate<Engine> {
  /** The engine's code in the catalogs. */
  code: string;
  engine: Engine;
}

/** Which engines rest; `key` is whatever failed, e.g. an engine and its voice. */
export interface Resting {
  failed(key: string): void;
  rests(key: string): boolean;
}

export function createResting(system: System): Resting {
  const failedMs = new Map<string, number>();
  return {
    failed: (key) => {
      // The first entry is the oldest, because each is inserted anew.
      failedMs.delete(key);
      failedMs.set(key, system.monotonicMs());
      const [oldest] = failedMs.keys();
      if (failedMs.size > RESTING_MAX && oldest !== undefined) failedMs.delete(oldest);
    },
    rests: (key) => system.monotonicMs() - (failedMs.get(key) ?? -Infinity) < REST_MS,
  };
}

/** The engines that one stream has tried. */
export class Attempts<Engine> {
  readonly #candidates: readonly Candidate<Engine>[];
  readonly #rests: (code: string) => boolean;
  readonly #nowMs: () => number;
  readonly #failedMs = new Map<string, number>();

  constructor(
    candidates: readonly Candidate<Engine>[], rests: (code: string) => boolean,
    nowMs: () => number,
  ) {
    this.#candidates = candidates;
    this.#rests = rests;
    this.#nowMs = nowMs;
  }

  first(): Candidate<Engine> | null {
    return this.#candidates.find(({ code }) => !this.#rests(code)) ?? this.#candidates[0] ?? null;
  }

  /**
   * The engine to try next; null: all have failed. `hadWorked`: the failed one is retried before
   * any other; `mayPass`: it is retried if there is no other.
   */
  after(
    failed: Candidate<Engine>, { hadWorked, mayPass }: { hadWorked: boolean; mayPass: boolean },
  ): Candidate<Engine> | null {
    const isDue = this.#isDue(failed.code);
    this.#failedMs.set(failed.code, this.#nowMs());
    if (isDue && hadWorked) return failed;
    const due = this.#candidates.filter(({ code }) => this.#isDue(code));
    const last = isDue && mayPass ? failed : null;
    return due.find(({ code }) => !this.#rests(code)) ?? due[0] ?? last;
  }

  #isDue(code: string): boolean {
    return this.#nowMs() - (this.#failedMs.get(code) ?? -Infinity) >= AGAIN_MS;
  }
}
