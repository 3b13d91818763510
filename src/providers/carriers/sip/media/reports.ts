// The RTCP reports of one call: writes ours, reads the far end's, and derives the call's quality
// from both. Used by rtp-session.ts and by web/peer.ts for web calls.
import { steadyClock, type Instant, type System } from "#core/system.ts";
import type { LegQuality } from "#providers/carriers/port.ts";
import { mosOf, rFactorOf } from "./e-model.ts";
import type { JitterBuffer } from "./jitter-buffer.ts";
import type { PacketOrder } from "./packet-order.ts";
import {
  buildRtcp, ntpMiddleOf, Reception, type ReportBlock, type RtcpPart,
} from "./rtcp.ts";

/** A longer round trip or jitter is an error in the far end's report, or forged. */
const ROUND_TRIP_MS_MAX = 10_000;
const JITTER_MS_MAX = 10_000;
const NTP_UNITS_PER_MS = 65.536;
const PACKET_MS = 20;

/** What PacketOrder and JitterBuffer made of the packets. */
interface Playout {
  late: number;
  concealedFrames: number;
  /** Frames played, and the sum of the buffer's depth at each of them. */
  frames: number;
  depthMsSum: number;
}

export const NO_PLAYOUT: Playout = { late: 0, concealedFrames: 0, frames: 0, depthMsSum: 0 };

/** Added to `before`, the figures of the codecs used earlier in the call. */
export const playoutOf = (
  { jitter, order }: { jitter: JitterBuffer; order: PacketOrder }, before = NO_PLAYOUT,
): Playout => ({
  late: before.late + jitter.late + order.late,
  concealedFrames: before.concealedFrames + jitter.concealed + order.concealedMs / PACKET_MS,
  frames: before.frames + jitter.played,
  depthMsSum: before.depthMsSum + jitter.depthMsSum,
});

interface Sent {
  timestamp: number;
  packets: number;
  octets: number;
}

export class Reports {
  readonly reception = new Reception();
  readonly #system: System;
  readonly #callNow: () => Instant;
  readonly #ssrc: number;
  readonly #cname: string;
  /** The far end's last sender report. */
  #last: { ntpMiddle: number; atMs: number } | null = null;
  #remote: { jitterMs: number | null; lost: number } | null = null;
  #roundTrips = { count: 0, sumMs: 0 };

  constructor(system: System, ssrc: number, cname: string = system.uuid()) {
    this.#system = system;
    this.#callNow = steadyClock(system);
    this.#ssrc = ssrc;
    this.#cname = cname;
  }

  /** The far end has begun another stream. */
  streamBegan(): void {
    this.#last = null;
  }

  build(sent: Sent | null, isGoodbye: boolean): Buffer {
    const block = this.reception.block();
    const last = this.#last;
    const sinceMs = last ? this.#system.monotonicMs() - last.atMs : 0;
    return buildRtcp({
      ssrc: this.#ssrc,
      cname: this.#cname,
      now: this.#system.now(),
      sent,
      block: block && {
        ...block,
        lastReport: last?.ntpMiddle ?? 0,
        sinceLastReport: Math.round(sinceMs * NTP_UNITS_PER_MS),
      },
      isGoodbye,
    });
  }

  /** `streamIn`: SSRC of the stream that is played. */
  receive(parts: readonly RtcpPart[], streamIn: number | null): void {
    for (const part of parts) {
      for (const block of part.blocks) {
        if (block.ssrc === this.#ssrc) this.#receiveBlock(block);
      }
      if (part.kind !== "sender_report" || part.ssrc !== streamIn) continue;
      this.#last = { ntpMiddle: part.ntpMiddle, atMs: this.#system.monotonicMs() };
    }
  }

  quality(codec: string, playout: Playout, sent: number): LegQuality {
    const { late, concealedFrames, frames, depthMsSum } = playout;
    const { received, duplicate, lost, jitter } = this.reception;
    const jitterMs = rounded(jitter.meanMs, 1);
    const overTime = jitter.overTime(this.#system.monotonicMs(), this.#callNow());
    const came = received - duplicate;
    const unheard = came + lost > 0 ? (100 * (lost + late)) / (came + lost) : null;
    const roundTripMs = this.#roundTripMs();
    // The depth includes the packet that is played next, so it is never under one packet.
    const delayMs = frames === 0
      ? null : Math.max(PACKET_MS, depthMsSum / frames) + (roundTripMs ?? 0) / 2;
    const rFactor = unheard === null || delayMs === null
      ? null : rFactorOf({ lossPercent: unheard, delayMs });
    const remote = this.#remote;
    return {
      codec,
      jitterMs,
      jitterMaxMs: jitterMs === null ? null : rounded(jitter.maxMs, 1),
      ...(overTime ? { jitterOverTime: overTime } : {}),
      packetsReceived: came,
      packetsLost: lost,
      packetsLate: late,
      packetsDuplicate: duplicate,
      lossPercent: rounded(unheard, 2),
      framesConcealed: Math.round(concealedFrames),
      packetsSent: sent,
      delayMs: rounded(delayMs, 0),
      roundTripMs: rounded(roundTripMs, 1),
      remoteJitterMs: rounded(remote?.jitterMs ?? null, 1),
      remotePacketsLost: remote && Math.min(remote.lost, sent),
      remoteLossPercent: remote && sent > 0
        ? rounded((100 * Math.min(remote.lost, sent)) / sent, 2) : null,
      rFactor: rounded(rFactor, 1),
      mos: rFactor === null ? null : rounded(mosOf(rFactor), 2),
    };
  }

  #receiveBlock({ lost, jitter, lastReport, sinceLastReport }: ReportBlock): void {
    const jitterMs = (jitter * 1000) / this.reception.clockRate;
    // Duplicate packets can make the count negative.
    this.#remote = {
      lost: Math.max(0, lost), jitterMs: jitterMs > JITTER_MS_MAX ? null : jitterMs,
    };
    if (lastReport === 0) return;
    const units = (ntpMiddleOf(this.#system.now()) - lastReport - sinceLastReport) | 0;
    const tripMs = units / NTP_UNITS_PER_MS;
    if (tripMs < 0 || tripMs > ROUND_TRIP_MS_MAX) return;
    this.#roundTrips = {
      count: this.#roundTrips.count + 1, sumMs: this.#roundTrips.sumMs + tripMs,
    };
  }

  #roundTripMs(): number | null {
    const { count, sumMs } = this.#roundTrips;
    return count === 0 ? null : sumMs / count;
  }
}

function rounded(value: number, places: number): number;
function rounded(value: number | null, places: number): number | null;
function rounded(value: number | null, places: number): number | null {
  return value === null ? null : Math.round(value * 10 ** places) / 10 ** places;
}
