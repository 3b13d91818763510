// The ports of carriers and their legs. A leg is one end of one call, as PCM frames of 20 ms and a
// few signals. Legs live in the media thread. The mixer does the playout for every carrier: a leg
// only forwards frames in real time. The adaptors are in this folder.
import type { JitterOverTime } from "#audio/jitter.ts";
import type { Pcm } from "#providers/speech/port.ts";

export const FRAME_MS = 20;

export type LegEvent =
  | { kind: "ringing" }
  | { kind: "answered" }
  /** Mono, any number of samples at the leg's rate, in order. */
  | { kind: "audio"; pcm: Pcm }
  /** The far end's words so far, from a carrier that knows them; `isFinal` ends the utterance. */
  | { kind: "words"; text: string; isFinal: boolean }
  | { kind: "dtmf"; digit: string }
  /** The reply to `clear`: how much of the audio sent will never be heard. */
  | { kind: "cleared"; droppedMs: number }
  /** The result of the carrier's own answering-machine detection. */
  | { kind: "answered_by"; by: "human" | "machine" | "unknown" }
  /** A transfer failed, so the call continues here. `detail`: why, as a sentence. */
  | { kind: "transfer_failed"; detail?: string }
  /** The far end has put the call on hold, or resumed it; on hold, nobody is there. */
  | { kind: "held"; isHeld: boolean }
  /** Whether audio arrives from the far end; false after some seconds without any. */
  | { kind: "sound"; isComing: boolean }
  /**
   * The last event. `far_hung_up`: the person at the other end did. `detail`: why it failed.
   * `silentMs`: how long nothing had arrived, when the call ended because the far end is gone.
   */
  | { kind: "ended"; cause: LegEndCause; detail?: string; silentMs?: number };

/** The quality of a leg's audio; a field is null when the carrier cannot know it. */
export interface LegQuality {
  codec: string;
  /** Interarrival jitter (RFC 3550): on average, and at its worst. */
  jitterMs: number | null;
  jitterMaxMs: number | null;
  /** Absent when nothing was measured, or in records from before it was kept. */
  jitterOverTime?: JitterOverTime;
  /** Without duplicates; late packets were received, but too late to be played. */
  packetsReceived: number | null;
  packetsLost: number | null;
  packetsLate: number | null;
  packetsDuplicate: number | null;
  /** The share of packets sent to us that were lost or late. */
  lossPercent: number | null;
  /** Frames of 20 ms that were concealed. */
  framesConcealed: number | null;
  packetsSent: number | null;
  /** One way, as far as it is known: packet, network and buffer. */
  delayMs: number | null;
  roundTripMs: number | null;
  /** What the far end reports of our sound. */
  remoteJitterMs: number | null;
  remotePacketsLost: number | null;
  remoteLossPercent: number | null;
  /** The rating of the E-model, and the mean opinion score from it. */
  rFactor: number | null;
  mos: number | null;
}

export type LegEndCause =
  | "far_hung_up" | "we_hung_up" | "transferred" | "busy" | "no_answer" | "rejected" | "failed"
  /** Nothing was heard of the far end for as long as a call may be silent. */
  | "media_timeout";

export interface Leg {
  /** Samples per second of both directions. */
  readonly rate: 8000 | 16000 | 24000;
  /**
   * Sends a frame of 20 ms; the array may be shared and must not be changed. A leg may bring audio,
   * as an event, before this returns.
   */
  send(frame: Pcm): void;
  /** Drops audio sent but not heard yet; `cleared` follows (with 0 when nothing can be dropped). */
  clear(): void;
  sendDtmf(digits: string): void;
  /** Marks the end of the audio sent so far, to learn when it is heard; absent if it cannot. */
  mark?(): void;
  /** Null when the carrier cannot; else `ended` as `transferred`, or `transfer_failed`, follows. */
  transfer: ((to: string) => void) | null;
  /** Idempotent; `ended` follows. */
  hangUp(): void;
  /** The quality so far, also after the end; absent or null when nothing is known. */
  quality?(): LegQuality | null;
}

/** The carriers whose legs live in the media thread. */
export type CarrierName = "loopback" | "sip";

export interface DialRequest {
  /** Samples per second of the leg, whatever it is connected to. */
  rate: Leg["rate"];
  /** In the carrier's format. */
  to: string;
  from: string | null;
  /** The trunk to use, for a carrier that has several. */
  trunkId?: number | undefined;
  /** How long an unanswered call rings before it ends as `no_answer`. */
  ringingMs: number;
  /** What the far end says when the server itself plays it; absent for the script of the number. */
  lines?: string[] | undefined;
}

/** An incoming call. It rings until it is answered or refused, or the caller gives up. */
export interface Offer {
  id: string;
  /** Samples per second of the leg that answers it. */
  rate: Leg["rate"];
  /** As it was dialled. */
  to: string;
  /** Null when withheld. */
  from: string | null;
  /** The trunk that the sender is known to be (registration or password); null if not. */
  trunkId: number | null;
  sourceAddress: string;
}

/** `overloaded`: the server has no room for one more just now. */
export type RefusalCause = "unknown_number" | "not_allowed" | "unavailable" | "busy" | "overloaded";

export interface Carrier {
  readonly name: CarrierName;
  /** Never throws: a call that cannot be placed ends as `failed`. */
  dial(request: DialRequest, publish: (event: LegEvent) => void): Leg;
  /** Null when the carrier has no incoming calls. */
  readonly inbound: {
    /** If the offer is gone, the leg ends at once as `far_hung_up`. */
    answer(offerId: string, publish: (event: LegEvent) => void): Leg;
    /** Has no effect if the offer is gone. */
    refuse(offerId: string, cause: RefusalCause): void;
  } | null;
}
