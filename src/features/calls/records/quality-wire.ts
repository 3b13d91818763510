// The schema of how a call sounded.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, named, Nullable } from "#core/schema.ts";

const Figure = (description: string, example: number) =>
  Nullable(Type.Number(about(`${description}; null if not known.`, example)));
const Count = (description: string, example: number) =>
  Nullable(Type.Integer(about(`${description}; null if not known.`, example)));

const JitterSchema = Type.Object({
  from_ms: Type.Integer(about(
    "Start of the first interval, in milliseconds since the call was answered; negative if before.",
    20)),
  step_ms: Type.Integer(about(
    "Length of an interval: 5 seconds, doubled as often as needed to keep at most "
    + `${LIMITS.jitterStretchesMax} intervals.`, 5000)),
  values: Type.Array(Nullable(Type.Number()), about(
    "Mean jitter of each interval, in milliseconds; null if no audio arrived.", [1.7, 1.9])),
}, named("JitterOverTime", "A call's jitter over time."));

export const QualitySchema = Type.Object({
  mos: Figure("Mean opinion score from 1 (bad) to 4.5 (best), computed from loss and delay by the "
    + "E-model (ITU-T G.107)",
    4.38),
  r_factor: Figure("The E-model rating the MOS is derived from, up to 93.2", 91.4),
  codec: Type.String(about("pcmu, pcma, g722 or opus; pcm over a WebSocket.", "pcmu")),
  jitter_ms: Figure("Mean interarrival jitter (RFC 3550) of the caller's audio", 1.8),
  jitter_max_ms: Figure("The highest jitter", 6.2),
  jitter_over_time: Nullable(JitterSchema, about(
    "Jitter over time; null: not known, or the call is older than this measurement.")),
  loss_percent: Figure("Share of packets sent to this server that were lost or arrived too late",
    0.2),
  packets_received: Count("Packets received, without duplicates", 3184),
  packets_lost: Count("Packets lost", 5),
  packets_late: Count("Packets that arrived too late to be played", 1),
  packets_duplicate: Count("Duplicate packets received", 0),
  packets_sent: Count("Packets sent", 3190),
  frames_concealed: Count("20 ms frames concealed because audio did not arrive in time", 6),
  delay_ms: Figure("Mouth-to-ear delay from the other side to this server: packet, buffer and, if "
    + "known, half the round trip",
    52),
  round_trip_ms: Figure("Round-trip time, from the other side's RTCP reports", 24.5),
  remote_jitter_ms: Figure("Jitter of this server's audio, as reported by the other side", 2.1),
  remote_packets_lost: Count("Packets from this server that the other side lost", 2),
  remote_loss_percent: Figure("Lost packets as a share of those sent", 0.06),
}, named("CallQuality", "The audio quality of a call."));
