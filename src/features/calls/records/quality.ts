// How a call sounded, as records and webhooks show it. Pure. The schema is in quality-wire.ts,
// because the writer's thread uses this file and loads no schemas.
import type { Instant } from "#core/system.ts";
import type { LegQuality } from "#providers/carriers/port.ts";

const wireJitter = (
  { at, stepMs, values }: NonNullable<LegQuality["jitterOverTime"]>, answeredAt: Instant | null,
) => ({
  from_ms: Math.round((at - (answeredAt ?? at)) / 1000), step_ms: stepMs, values,
});

export const wireQuality = (quality: LegQuality, answeredAt: Instant | null) => ({
  mos: quality.mos,
  r_factor: quality.rFactor,
  codec: quality.codec,
  jitter_ms: quality.jitterMs,
  jitter_max_ms: quality.jitterMaxMs,
  jitter_over_time: quality.jitterOverTime ? wireJitter(quality.jitterOverTime, answeredAt) : null,
  loss_percent: quality.lossPercent,
  packets_received: quality.packetsReceived,
  packets_lost: quality.packetsLost,
  packets_late: quality.packetsLate,
  packets_duplicate: quality.packetsDuplicate,
  packets_sent: quality.packetsSent,
  frames_concealed: quality.framesConcealed,
  delay_ms: quality.delayMs,
  round_trip_ms: quality.roundTripMs,
  remote_jitter_ms: quality.remoteJitterMs,
  remote_packets_lost: quality.remotePacketsLost,
  remote_loss_percent: quality.remoteLossPercent,
});
