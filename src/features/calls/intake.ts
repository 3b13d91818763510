// Sound that a page sends over a socket, and its jitter. Used by web-call.ts for the caller and by
// desk-routes.ts for a person of the account.
import { Jitter } from "#audio/jitter.ts";
import { steadyClock, type System } from "#core/system.ts";
import type { LegQuality } from "#providers/carriers/port.ts";
import type { Pcm } from "#providers/speech/port.ts";

/** Audio further ahead of real time than this is dropped: nobody speaks that fast. */
const AUDIO_AHEAD_MS = 3000;

/** TCP loses no packets, and how many frames the page conceals is known only to the page. */
const UNKNOWN: Omit<LegQuality, "jitterMs" | "jitterMaxMs"> = {
  codec: "pcm", packetsReceived: null, packetsLost: null, packetsLate: null,
  packetsDuplicate: null, lossPercent: null, framesConcealed: null, packetsSent: null,
  delayMs: null, roundTripMs: null, remoteJitterMs: null, remotePacketsLost: null,
  remoteLossPercent: null, rFactor: null, mos: null,
};

/** Turns binary frames into samples, no faster than real time. */
export function createIntake(system: System, rate: number) {
  let rest: Buffer = Buffer.alloc(0);
  let startedMs = 0;
  let heardMs = 0;
  let transitMs = Number.NaN;
  const jitter = new Jitter();
  const callNow = steadyClock(system);
  /** Measures jitter as RFC 3550 does for packets. */
  const measure = (nowMs: number): void => {
    const differenceMs = Math.abs(nowMs - heardMs - transitMs);
    transitMs = nowMs - heardMs;
    if (!Number.isNaN(differenceMs)) jitter.push(differenceMs, nowMs);
  };
  const tenth = (ms: number): number => Math.round(10 * ms) / 10;
  return {
    quality: (): LegQuality | null => {
      const { meanMs, maxMs } = jitter;
      const jitterOverTime = jitter.overTime(system.monotonicMs(), callNow());
      return meanMs === null || jitterOverTime === null
        ? null
        : { ...UNKNOWN, jitterMs: tenth(meanMs), jitterMaxMs: tenth(maxMs), jitterOverTime };
    },
    start: (): void => {
      startedMs = system.monotonicMs();
      heardMs = 0;
      transitMs = Number.NaN;
    },
    receive: (bytes: Buffer): Pcm | null => {
      // A sloppy client may split a sample between two frames.
      const all = rest.length > 0 ? Buffer.concat([rest, bytes]) : bytes;
      const even = all.length - (all.length % 2);
      rest = all.subarray(even);
      const lengthMs = (even / 2 / rate) * 1000;
      const nowMs = system.monotonicMs();
      if (heardMs + lengthMs > nowMs - startedMs + AUDIO_AHEAD_MS) return null;
      heardMs += lengthMs;
      measure(nowMs);
      const pcm = new Int16Array(even / 2);
      Buffer.from(pcm.buffer).set(all.subarray(0, even));
      return pcm;
    },
  };
}
