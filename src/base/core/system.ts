// The only place that reads clocks, starts timers or draws random values, so that tests can own
// time.
import { randomBytes, randomUUID } from "node:crypto";
import { LIMITS } from "./limits.ts";

/** Integer microseconds since the epoch, UTC. */
export type Instant = number;

export interface Timer {
  /** Idempotent. */
  cancel(): void;
}

export interface System {
  /**
   * Wall clock. Goes back within one process only where the machine's clock was set back by more
   * than a second; what is less is not followed, so that stored order is arrival order.
   */
  now(): Instant;
  /** Milliseconds on a clock that only measures durations. */
  monotonicMs(): number;
  /** One-shot timer; does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer;
  /** Repeating timer; does not keep the process alive. */
  every(intervalMs: number, run: () => void): Timer;
  /** Version 4, 122 random bits: may serve as a bearer capability. */
  uuid(): string;
  randomBytes(count: number): Buffer;
}

/** When the two clocks differ by more, the machine's was set. */
const STEP_MICROS = 1_000_000;

/** A timer this late means that the process stood still: frozen, moved, or without a core. */
const STOOD_STILL_MS = 1000;
/** Input that arrived meanwhile is handled first: an answer that was not read yet is no silence. */
const TAKING_IN_MS = 250;
/** When this thread's last standstill ended; timers that came due by then wait, in their order. */
let stoodStillUntilMs = -Infinity;

function after(delayMs: number, run: () => void): Timer {
  const dueMs = performance.now() + Math.max(0, delayMs);
  let handle = setTimeout(() => {
    const nowMs = performance.now();
    if (nowMs - dueMs >= STOOD_STILL_MS) stoodStillUntilMs = nowMs;
    if (dueMs > stoodStillUntilMs) return run();
    handle = setTimeout(run, TAKING_IN_MS).unref();
  }, delayMs).unref();
  return { cancel: () => clearTimeout(handle) };
}

/** Like `AbortSignal.timeout`, which would miss answers that came while the thread stood still. */
export function timeLimit(delayMs: number): Timer & { signal: AbortSignal } {
  const limit = new AbortController();
  const { cancel } = after(delayMs, () =>
    limit.abort(new DOMException("too long", "TimeoutError")));
  return { signal: limit.signal, cancel };
}

/** Milliseconds on one clock for all threads of this process, which only measures durations. */
export const sharedMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);

export function createSystem(): System {
  /** How far the machine's clock was set since the process began. */
  let setBy = 0;
  return {
    now: () => {
      const reading = Math.round((performance.timeOrigin + performance.now()) * 1000) + setBy;
      const off = Date.now() * 1000 - reading;
      if (Math.abs(off) <= STEP_MICROS) return reading;
      setBy += off;
      return reading + off;
    },
    monotonicMs: () => performance.now(),
    after,
    every(intervalMs, run) {
      const again = (): void => {
        timer = after(intervalMs, () => {
          again();
          run();
        });
      };
      let timer: Timer;
      again();
      return { cancel: () => timer.cancel() };
    },
    uuid: () => randomUUID(),
    randomBytes: (count) => randomBytes(count),
  };
}

/** A clock that goes on from what the wall clock shows at this moment, whatever that is set to. */
export function steadyClock({ now, monotonicMs }: System): () => Instant {
  const at = now();
  const sinceMs = monotonicMs();
  return () => at + Math.round((monotonicMs() - sinceMs) * 1000);
}

/**
 * Polled now and then; true unless the wall clock was set lately: one that jumped ahead may be set
 * back in a moment, and what was deleted by it does not come back.
 */
export function evenClock(system: System): () => boolean {
  let steady = steadyClock(system);
  let setMs = -Infinity;
  return () => {
    if (Math.abs(system.now() - steady()) > LIMITS.clockJumpMs * 1000) {
      steady = steadyClock(system);
      setMs = system.monotonicMs();
    }
    return system.monotonicMs() - setMs >= LIMITS.clockBelievedMs;
  };
}

const AWAKE_MS = 2 ** 30;

/** Keeps the process alive while what it waits for does not, such as the timers of a system. */
export function keepAwake(): Timer {
  const handle = setInterval(() => undefined, AWAKE_MS);
  return { cancel: () => clearInterval(handle) };
}

/** Resolves when everything else that is due has run: between the pieces of a long work. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Resolves after the delay, or at once when the signal aborts. */
export function wait(system: System, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = system.after(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}

const MICROS = 1_000_000;

/** The second formatted last: most instants of a busy server share it. */
const written = { second: 0, text: "1970-01-01T00:00:00" };

/** `YYYY-MM-DDTHH:MM:SS.ffffffZ` */
export function isoMicros(instant: Instant): string {
  const second = Math.floor(instant / MICROS);
  if (second !== written.second) {
    written.text = new Date(second * 1000).toISOString().slice(0, -".000Z".length);
    written.second = second;
  }
  return `${written.text}.${String(instant - second * MICROS).padStart(6, "0")}Z`;
}

export const isoOrNull = (instant: Instant | null): string | null =>
  instant === null ? null : isoMicros(instant);

/** `YYYY-MM-DD HH:MM:SS`, UTC. */
export function plainSeconds(instant: Instant): string {
  return new Date(Math.floor(instant / 1000)).toISOString().slice(0, 19).replace("T", " ");
}

const DAY_SECONDS = 86_400;

/** Until the next day of UTC begins; at least one. */
export function secondsToNextDay(instant: Instant): number {
  return DAY_SECONDS - Math.floor(instant / 1_000_000) % DAY_SECONDS;
}

/** `YYYY-MM-DD`, UTC. */
export function utcDay(instant: Instant): string {
  return new Date(Math.floor(instant / 1000)).toISOString().slice(0, 10);
}

/** How far a clock is ahead of another that showed `theirs` between these two times of its own. */
export function aheadMs(before: Instant, theirs: Instant, after: Instant): number {
  if (before > theirs) return (before - theirs) / 1000;
  return after < theirs ? (after - theirs) / 1000 : 0;
}
