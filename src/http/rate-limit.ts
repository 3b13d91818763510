// Exact sliding-window rate limits: a key may pass `count` times in any `windowMs`. Memory is
// bounded by the number of keys kept; the least recently seen key is forgotten first.
import type { System } from "../core/system.ts";

export interface RateLimit {
  count: number;
  windowMs: number;
}

export interface RateDecision {
  allowed: boolean;
  /** Of the first limit: its count, what is left of it, and when it is whole again. */
  limit: number;
  remaining: number;
  resetMs: number;
  /** How long to wait when refused; 0 when allowed. */
  retryAfterMs: number;
}

export interface RateLimiter {
  /** Counts one passage of the key when it is allowed. A refused attempt does not count. */
  take(key: string): RateDecision;
}

/** Times of past passages, newest last, never more than the largest count. */
interface Window {
  times: number[];
}

/** The first limit is the one reported in headers. */
export function createRateLimiter(
  limits: [RateLimit, ...RateLimit[]],
  { system, keysMax }: { system: System; keysMax: number },
): RateLimiter {
  const windows = new Map<string, Window>();
  const keepMax = Math.max(...limits.map((limit) => limit.count));
  const keepMs = Math.max(...limits.map((limit) => limit.windowMs));
  const [reported] = limits;

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

  return {
    take: (key) => {
      const now = system.monotonicMs();
      const { times } = touch(key);
      while (times[0] !== undefined && times[0] <= now - keepMs) times.shift();
      let retryAfterMs = 0;
      for (const limit of limits) {
        // The passage that has to leave the window before one more fits.
        const blocking = times[times.length - limit.count];
        if (blocking !== undefined) {
          retryAfterMs = Math.max(retryAfterMs, blocking + limit.windowMs - now);
        }
      }
      const allowed = retryAfterMs <= 0;
      if (allowed) times.push(now);
      if (times.length > keepMax) times.shift();
      const inWindow = times.filter((time) => time > now - reported.windowMs);
      return {
        allowed,
        limit: reported.count,
        remaining: Math.max(0, reported.count - inWindow.length),
        resetMs: (inWindow[0] ?? now) + reported.windowMs - now,
        retryAfterMs: Math.max(0, retryAfterMs),
      };
    },
  };
}
