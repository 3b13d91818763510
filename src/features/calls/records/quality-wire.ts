// The schema of how a call sounded.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, named, Nullable } from "#core/schema.ts";

const Figure = (description: string, example: number) =>
  Nullable(Type.Number(about(`${description}; null: not known.`, example)));
const Count = (description: string, example: number) =>
  Nullable(Type.Integer(about(`${description}; null: not known.`, example)));

const JitterSchema = Type.Object({
  from_ms: Type.Integer(about(
    "When the first stretch began, in milliseconds since the answer; below 0: before it.", 20)),
  step_ms: Type.Integer(about(
    "How long a stretch is: 5 seconds, and twice that as often as it takes to keep them at "
      + `${LIMITS.jitterStretchesMax} at the most.`, 5000)),
  values: Type.Array(Nullable(Type.Number()), about(
    "The average of each stretch, in milliseconds; null: nothing came then.", [1.7, 1.9])),
}, named("JitterOverTime", "How the jitter of a call went."));

export const QualitySchema = Type.Object({
  mos: Figure("Mean opinion score, from 1 (bad) to 4.5 (best), by the E-model (ITU-T G.107) from "
    + "loss and delay", 4.38),
  r_factor: Figure("The rating of the E-model it comes from, up to 93.2", 91.4),
  codec: Type.String(about("pcmu, pcma, g722 or opus; pcm over a WebSocket.", "pcmu")),
  jitter_ms: Figure("Interarrival jitter (RFC 3550) of the caller's sound, on average", 1.8),
  jitter_max_ms: Figure("The same at its worst", 6.2),
  jitter_over_time: Nullable(JitterSchema, about(
    "The same stretch by stretch; null: not known, or a call of before it was kept.")),
  loss_percent: Figure("Share of the packets sent to us that were lost or came too late", 0.2),
  packets_received: Count("Packets that came, each counted once", 3184),
  packets_lost: Count("Packets that never came", 5),
  packets_late: Count("Packets that came too late to be heard", 1),
  packets_duplicate: Count("Packets that came once more", 0),
  packets_sent: Count("Packets sent", 3190),
  frames_concealed: Count("Frames of 20 ms made up for sound that was not there in time", 6),
  delay_ms: Figure("From the other side's mouth to this server's ear: packet, buffer and half the "
    + "round trip where that is known", 52),
  round_trip_ms: Figure("To the other side and back, by its reports (RTCP)", 24.5),
  remote_jitter_ms: Figure("Jitter of our sound, as the other side reports it", 2.1),
  remote_packets_lost: Count("Packets of ours it has lost", 2),
  remote_loss_percent: Figure("The same as a share of those sent", 0.06),
}, named("CallQuality", "How the sound of a call came through."));
