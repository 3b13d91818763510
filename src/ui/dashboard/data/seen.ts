// A cache of what this browser has loaded from the server, by key, for every place that shows it.
// Used by use-data.ts and rows.ts; the account's stream (live.tsx) and changes made here
// (session.tsx) mark entries as stale.

const SEEN_MAX = 100;
/** An answer that takes longer than this may never come. */
export const PATIENCE_MS = 30_000;

class Entry {
  value: unknown = null;
  error: unknown = null;
  isLoading = false;
  /** Types of events that change it. */
  changedBy: readonly string[] = [];
  /** Each redraws a place that shows it. */
  readonly shownBy = new Set<() => void>();
  #load: () => Promise<unknown> = () => Promise.resolve(null);
  #run = 0;
  /** The newest load that was answered. */
  #answered = 0;
  /** It has changed since it was last requested. */
  #isSpoilt = false;
  #loadedAt = -Infinity;
  #askedAt = -Infinity;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Loads it, unless a current load is in flight or the last one is recent enough. */
  show(load: () => Promise<unknown>, freshMs: number): void {
    this.#load = load;
    const isComing = this.isLoading && !this.#isSpoilt;
    if (!isComing && !(performance.now() - this.#loadedAt < freshMs)) void this.reload();
  }

  /**
   * It has changed: reloads once for a burst of events, and one at a time while events keep coming.
   */
  hear(gatherMs: number): void {
    this.spoil();
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (this.shownBy.size === 0) return;
      const isAsked = this.isLoading && performance.now() - this.#askedAt < PATIENCE_MS;
      if (isAsked) this.hear(gatherMs);
      else void this.reload();
    }, gatherMs);
  }

  /** Marks it as stale: the next place that shows it loads it again. */
  spoil(): void {
    this.#loadedAt = -Infinity;
    this.#isSpoilt = true;
  }

  /** Drops it where no place shows it; what is in flight is discarded as too old. */
  forget(): void {
    if (this.shownBy.size > 0) return;
    this.spoil();
    this.#answered = this.#run;
    Object.assign(this, { value: null, error: null, isLoading: false });
  }

  /** An earlier load's answer is shown when it arrives, until this one's is there. */
  reload(load = this.#load): Promise<void> {
    const run = (this.#run += 1);
    this.#load = load;
    this.#askedAt = performance.now();
    this.isLoading = true;
    this.#isSpoilt = false;
    this.#notify();
    return load().then(
      (value) => {
        if (run > this.#answered) this.#take(value, run);
      },
      (error: unknown) => {
        if (this.#run !== run) return;
        this.#answered = run;
        this.error = error;
        this.isLoading = false;
        this.#notify();
      },
    );
  }

  set(value: unknown): void {
    this.#isSpoilt = false;
    this.#take(value, this.#run += 1);
  }

  #take(value: unknown, run: number): void {
    const isNewest = run === this.#run;
    this.#answered = run;
    if (isNewest && !this.#isSpoilt) this.#loadedAt = performance.now();
    Object.assign(this, { value, error: null, isLoading: !isNewest });
    this.#notify();
  }

  #notify(): void {
    for (const draw of this.shownBy) draw();
  }
}

const seen = new Map<string, Entry>();

export function entryOf(key: string): Entry {
  const entry = seen.get(key) ?? new Entry();
  seen.delete(key);
  seen.set(key, entry);
  for (const [name, { shownBy }] of seen) {
    if (seen.size <= SEEN_MAX) break;
    if (shownBy.size === 0 && name !== key) seen.delete(name);
  }
  return entry;
}

/** When somebody else signs in. */
export const forgetSeen = (): void => seen.clear();

/** Something was deleted here, which any entry may contain. */
export function forgetUnshown(): void {
  for (const entry of seen.values()) entry.forget();
}

/** `type` of an event; null: anything may have changed. */
export function spoilSeen(type: string | null): void {
  for (const entry of seen.values()) {
    if (type === null || entry.changedBy.includes(type)) entry.spoil();
  }
}
