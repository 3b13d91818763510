// The ports calls come and go through. A carrier brings legs: one end of one call, as PCM frames of
// 20 ms and a few signals. Legs live in the media thread. Playout is the mixer's for every carrier:
// a leg only forwards frames in real time. Adaptors are in this folder.
import type { JitterOverTime } from "#audio/jitter.ts";
import type { Pcm } from "#providers/speech/port.ts";

export const FRAME_MS = 20;

export type LegEvent =
  | { kind: "ringing" }
  | { kind: "answered" }
  /** Mono, any number of samples at the leg's rate, in order. */
  | { kind: "audio"; pcm: Pcm }
  /** What the far end is saying, where its words are known; final closes the piece. */
  | { kind: "words"; text: string; isFinal: boolean }
  | { kind: "dtmf"; digit: string }
  /** Answers `clear`: how much of what was sent will never be heard. */
  | { kind: "cleared"; droppedMs: number }
  /** What the carrier's own detection says. */
  | { kind: "answered_by"; by: "human" | "machine" | "unknown" }
  /** Nobody took the call that was handed on: it goes on here. `detail`: why, as a sentence. */
  | { kind: "transfer_failed"; detail?: string }
  /** The far end has put the call on hold, or taken it up again: meanwhile nobody is there. */
  | { kind: "held"; isHeld: boolean }
  /** Whether the far end's sound comes; it does until it has not for some seconds. */
  | { kind: "sound"; isComing: boolean }
  /**
   * Nothing follows. `far` hung up: the person at the other end did. `detail`: why it failed.
   * `silentMs`: since when nothing was heard, where it ended because the far end is gone.
   */
  | { kind: "ended"; cause: LegEndCause; detail?: string; silentMs?: number };

/** How the sound of a leg came through; null: the carrier cannot know. */
export interface LegQuality {
  codec: string;
  /** Interarrival jitter (RFC 3550): on average, and at its worst. */
  jitterMs: number | null;
  jitterMaxMs: number | null;
  /** Absent: nothing was measured, or nobody kept it then. */
  jitterOverTime?: JitterOverTime;
  /** Each counted once; late ones came, too late to be heard. */
  packetsReceived: number | null;
  packetsLost: number | null;
  packetsLate: number | null;
  packetsDuplicate: number | null;
  /** Those not heard in time among those sent to us. */
  lossPercent: number | null;
  /** Frames of 20 ms made up in place of sound that was not there. */
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
  /** Drops what was sent and is not heard yet; answered by `cleared` (0 when nothing can be). */
  clear(): void;
  sendDtmf(digits: string): void;
  /** Asks for an event when what was sent before is heard; absent: the carrier cannot know. */
  mark?(): void;
  /** Null when the carrier cannot; else `ended` as `transferred`, or `transfer_failed`, follows. */
  transfer: ((to: string) => void) | null;
  /** Idempotent; `ended` follows. */
  hangUp(): void;
  /** Up to now, also after the end. Absent or null: nothing is known of it. */
  quality?(): LegQuality | null;
}

/** The carriers whose legs live in the media thread. */
const CARRIER_NAMES = ["loopback", "sip"] as const;
export type CarrierName = (typeof CARRIER_NAMES)[number];

export interface DialRequest {
  /** The leg's, whatever it is connected with. */
  rate: Leg["rate"];
  /** As the carrier wants it spelt. */
  to: string;
  from: string | null;
  /** Where the carrier has several ways out: the one to take. */
  trunkId?: number | undefined;
  /** Until an unanswered call is given up as `no_answer`. */
  ringingMs: number;
  /** Where the server itself plays the far end: what it says; absent: as the number does. */
  lines?: string[] | undefined;
}

/** A call that comes in. It rings until it is answered or refused, or goes away by itself. */
export interface Offer {
  id: string;
  /** The rate of the leg that answers it. */
  rate: Leg["rate"];
  /** As it was dialled. */
  to: string;
  /** Null: it is withheld. */
  from: string | null;
  /** The trunk whose credentials the caller's side has shown; null: none were. */
  trunkId: number | null;
  sourceAddress: string;
}

/** `overloaded`: the server has no room for one more just now. */
export type RefusalCause = "unknown_number" | "not_allowed" | "unavailable" | "busy" | "overloaded";

export interface Carrier {
  readonly name: CarrierName;
  /** Never throws: a call that cannot be placed ends as `failed`. */
  dial(request: DialRequest, publish: (event: LegEvent) => void): Leg;
  /** Null: nothing comes in through it. */
  readonly inbound: {
    /** An offer that has gone away ends at once, as `far_hung_up`. */
    answer(offerId: string, publish: (event: LegEvent) => void): Leg;
    /** Does nothing for an offer that has gone away. */
    refuse(offerId: string, cause: RefusalCause): void;
  } | null;
}
