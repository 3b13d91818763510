// The jitter of incoming audio (RFC 3550): now, overall, and stretch by stretch for a chart. Used
// by both receivers: that of packets (rtcp.ts) and that of a page's socket (calls/intake.ts).
// Pure.
import { LIMITS } from "#core/limits.ts";
import type { Instant } from "#core/system.ts";

const STRETCH_MS = 5000;

/** Mean of each stretch, oldest first; null: nothing came then. */
export interface JitterOverTime {
  /** When the first stretch began. */
  at: Instant;
  stepMs: number;
  values: (number | null)[];
}

export class Jitter {
  ms = 0;
  maxMs = 0;
  #sumMs = 0;
  #count = 0;
  #fromMs = 0;
  #stepMs = STRETCH_MS;
  #last = -1;
  readonly #sums = new Float64Array(LIMITS.jitterStretchesMax);
  readonly #counts = new Float64Array(LIMITS.jitterStretchesMax);

  /** `differenceMs`: by how much it came earlier or later than its predecessor suggests. */
  push(differenceMs: number, nowMs: number): void {
    if (this.#count === 0) this.#fromMs = nowMs;
    this.ms += (differenceMs - this.ms) / 16;
    this.maxMs = Math.max(this.maxMs, this.ms);
    this.#sumMs += this.ms;
    this.#count += 1;
    const at = this.#stretchAt(nowMs);
    this.#sums[at] = (this.#sums[at] ?? 0) + this.ms;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#last = at;
  }

  /** On average; null: nothing was measured. */
  get meanMs(): number | null {
    return this.#count === 0 ? null : this.#sumMs / this.#count;
  }

  /** Null: nothing was measured. */
  overTime(nowMs: number, now: Instant): JitterOverTime | null {
    if (this.#count === 0) return null;
    return {
      at: Math.round(now - (nowMs - this.#fromMs) * 1000),
      stepMs: this.#stepMs,
      values: Array.from(this.#sums.subarray(0, this.#last + 1), (sum, at) => {
        const count = this.#counts[at] ?? 0;
        return count === 0 ? null : Math.round((10 * sum) / count) / 10;
      }),
    };
  }

  #stretchAt(nowMs: number): number {
    const stretch = (): number => Math.floor((nowMs - this.#fromMs) / this.#stepMs);
    while (stretch() >= LIMITS.jitterStretchesMax) this.#halve();
    return stretch();
  }

  /** Merges neighbouring stretches in pairs, each then twice as long. */
  #halve(): void {
    for (const figures of [this.#sums, this.#counts]) {
      const half = figures.length / 2;
      for (let at = 0; at < half; at += 1) {
        figures[at] = (figures[2 * at] ?? 0) + (figures[2 * at + 1] ?? 0);
      }
      figures.fill(0, half);
    }
    this.#stepMs *= 2;
  }
}
