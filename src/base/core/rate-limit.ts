// Exact sliding-window rate limits: a key may pass `count` times in any `windowMs`. Memory is
// bounded by the number of keys kept; the least recently seen key is forgotten first.
import type { System } from "./system.ts";

export interface RateLimit {
  count: number;
  windowMs: number;
}

export interface RateDecision {
  allowed: boolean;
  /** Count, rest and end of the window that refused, else of the one with the least left. */
  limit: number;
  remaining: number;
  resetMs: number;
  /** How long to wait when refused; 0 when allowed. */
  retryAfterMs: number;
}

/** A rate limiter whose windows another process may hold. */
export interface SharedRateLimiter {
  /** As that of RateLimiter. */
  take(key: string): RateDecision | Promise<RateDecision>;
  /** The key's newest passage does not count: nothing was done for it. Never rejects. */
  giveBack(key: string): void | Promise<void>;
}

export interface RateLimiter extends SharedRateLimiter {
  /** Counts one passage of the key when it is allowed. A refused attempt does not count. */
  take(key: string): RateDecision;
  giveBack(key: string): void;
  /** What `take` would say before it counts. */
  look(key: string): RateDecision;
}

/** Times of past passages, newest last, never more than the largest count. */
interface Window {
  times: number[];
}

/** Index of the first time after this one; times are in order, and as many as limits allow. */
function firstAfter(times: number[], instant: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) > instant) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function createRateLimiter(
  limits: [RateLimit, ...RateLimit[]],
  { system, keysMax }: { system: System; keysMax: number },
): RateLimiter {
  const windows = new Map<string, Window>();
  const keepMs = Math.max(...limits.map((limit) => limit.windowMs));

  const touch = (key: string): Window => {
    const window = windows.get(key) ?? { times: [] };
    windows.delete(key);
    windows.set(key, window);
    if (windows.size > keysMax) {
      const oldest = windows.keys().next();
      if (!oldest.done) windows.delete(oldest.value);
    }
    return window;
  };

  /** When one more fits into the window of this limit, and what is left of it. */
  const stateOf = (times: number[], { count, windowMs }: RateLimit, now: number): RateDecision => {
    const first = firstAfter(times, now - windowMs);
    const passages = times.length - first;
    // The passage that has to leave the window before one more fits.
    const blocking = passages < count ? undefined : times[times.length - count];
    const retryAfterMs = blocking === undefined ? 0 : blocking + windowMs - now;
    return {
      allowed: retryAfterMs === 0,
      limit: count,
      remaining: Math.max(0, count - passages),
      resetMs: (times[first] ?? now) + windowMs - now,
      retryAfterMs,
    };
  };
  const tightest = (times: number[], now: number): RateDecision => limits
    .map((limit) => stateOf(times, limit, now))
    .reduce((tight, one) => {
      const isTighter = one.retryAfterMs > tight.retryAfterMs
        || (one.retryAfterMs === tight.retryAfterMs && one.remaining < tight.remaining);
      return isTighter ? one : tight;
    });

  return {
    take: (key) => {
      const now = system.monotonicMs();
      const { times } = touch(key);
      while (times[0] !== undefined && times[0] <= now - keepMs) times.shift();
      const before = tightest(times, now);
      if (!before.allowed) return before;
      times.push(now);
      return { ...tightest(times, now), allowed: true, retryAfterMs: 0 };
    },
    giveBack: (key) => void windows.get(key)?.times.pop(),
    look: (key) => tightest(windows.get(key)?.times ?? [], system.monotonicMs()),
  };
}
