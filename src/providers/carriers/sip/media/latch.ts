// Symmetric RTP (RFC 4961): decides which source address a call's audio is accepted from, and so
// where ours is sent. Pure. Used by rtp-session.ts.
import { sequenceDistance } from "./rtp.ts";

/** Packets of one stream that a place must send to be taken for the far end. */
const LATCH_PACKETS = 3;
/** How long the current place must be silent before another may take over. */
const LATCH_SILENT_MS = 2000;
/** The same for a place that continues the stream; longer than packets are merely late or lost. */
const REBIND_SILENT_MS = 200;
/** A continuation may be this many packets ahead: 2 s, when any place may take over anyway. */
const REBIND_SEQUENCE_MAX = 100;
/** How far a continuation's timestamps may be from where the stream's clock would be by now. */
const REBIND_SLACK_MS = 250;

export interface Place {
  address: string;
  port: number;
}

/** A packet's position in its stream. */
interface StreamPoint {
  ssrc: number;
  sequence: number;
  timestamp: number;
}

export const isSame = (one: Place, other: Place): boolean =>
  one.port === other.port && one.address === other.address;

/**
 * The place that the far end really sends from, which behind a NAT is not what its SDP says.
 * Anybody who can send packets here can try to take over, so the place that the SDP names is
 * accepted at once and always wins; any other is accepted only after some packets of one stream,
 * and not while the current place is sending. A NAT that loses its binding moves a far end in
 * mid-stream, so packets that continue that stream in sequence and time need not wait that long.
 */
export class Latch {
  current: Place | null = null;
  /** Ticks of the timestamps in a second. */
  clockRate = 8000;
  readonly #isAllowed: (place: Place) => boolean;
  #named: Place | null = null;
  #lastMs = 0;
  /** The newest packet, and when its timestamp was new: a held key's packets all have the same. */
  #newest: { point: StreamPoint; atMs: number } | null = null;
  #candidate: { place: Place; point: StreamPoint; packets: number } | null = null;

  /** `isAllowed`: whether audio may be sent to this place, and so accepted from it. */
  constructor(isAllowed: (place: Place) => boolean) {
    this.#isAllowed = isAllowed;
  }

  /** Sets the SDP's place, null when it names no valid one; naming the same again has no effect. */
  name(place: Place | null): void {
    if (this.#named && place && isSame(this.#named, place)) return;
    this.#named = place;
    this.current = null;
    this.#newest = null;
    this.#candidate = null;
  }

  /** Checked before the packet is parsed, so that a flood from elsewhere costs next to nothing. */
  mayBe(place: Place, nowMs: number): boolean {
    return !this.current || isSame(this.current, place) || this.#isNamed(place)
      || nowMs - this.#lastMs >= REBIND_SILENT_MS;
  }

  /** Whether a valid packet that `mayBe` let through comes from the far end. */
  believes(place: Place, point: StreamPoint, nowMs: number): boolean {
    const isKnown = (this.current && isSame(this.current, place)) || this.#isNamed(place);
    if (!isKnown && !this.#isProven(place, point, nowMs)) return false;
    this.#follow(point, nowMs);
    this.#lastMs = nowMs;
    this.#candidate = null;
    this.current = place;
    return true;
  }

  #follow(point: StreamPoint, nowMs: number): void {
    const before = this.#newest?.point;
    const isSameStream = before?.ssrc === point.ssrc;
    const ahead = isSameStream ? sequenceDistance(point.sequence, before.sequence) : 1;
    if (ahead <= 0 && ahead > -REBIND_SEQUENCE_MAX) return;
    const isHeld = isSameStream && before.timestamp === point.timestamp;
    this.#newest = { point, atMs: isHeld ? this.#newest?.atMs ?? nowMs : nowMs };
  }

  #isProven(place: Place, point: StreamPoint, nowMs: number): boolean {
    const isFree = !this.current || nowMs - this.#lastMs >= LATCH_SILENT_MS;
    if (!isFree && !this.#goesOn(point, nowMs)) return false;
    if (!this.#isAllowed(place)) return false;
    const known = this.#candidate;
    const packets = known && known.point.ssrc === point.ssrc && isSame(known.place, place)
      ? known.packets + 1
      : 1;
    this.#candidate = { place, point, packets };
    return packets >= LATCH_PACKETS;
  }

  /** Whether the packet continues the accepted stream, in sequence and in time. */
  #goesOn({ ssrc, sequence, timestamp }: StreamPoint, nowMs: number): boolean {
    if (this.#newest?.point.ssrc !== ssrc) return false;
    const { point, atMs } = this.#newest;
    const ahead = sequenceDistance(sequence, point.sequence);
    if (ahead <= 0 || ahead > REBIND_SEQUENCE_MAX) return false;
    const sentMs = (((timestamp - point.timestamp) | 0) * 1000) / this.clockRate;
    return Math.abs(sentMs - (nowMs - atMs)) <= REBIND_SLACK_MS;
  }

  #isNamed(place: Place): boolean {
    return this.#named !== null && isSame(this.#named, place);
  }
}
