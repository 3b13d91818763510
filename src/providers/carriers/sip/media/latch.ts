// From where a call's audio is taken, and so whereto ours is sent: symmetric RTP (RFC 4961). Pure.
// Used by rtp-session.ts.
import { sequenceDistance } from "./rtp.ts";

/** Packets of one stream from one place until it is believed to be the far end. */
const LATCH_PACKETS = 3;
/** Until another place may take over. */
const LATCH_SILENT_MS = 2000;
/** Until the same stream may go on from another place: packets are late or lost for less. */
const REBIND_SILENT_MS = 200;
/** So far a stream may be on by then: another place may take over anyway after that. */
const REBIND_SEQUENCE_MAX = 100;
/** How far its timestamps may be from where its clock would be by now. */
const REBIND_SLACK_MS = 250;

export interface Place {
  address: string;
  port: number;
}

/** A packet as the next of its stream. */
interface StreamPoint {
  ssrc: number;
  sequence: number;
  timestamp: number;
}

export const isSame = (one: Place, other: Place): boolean =>
  one.port === other.port && one.address === other.address;

/**
 * Where the far end really sends from, which behind a NAT is not what its SDP says. Whoever can
 * send packets here can try to be believed: so the place the SDP names is believed at once and
 * always wins, any other only after some packets of one stream, and nobody while the one believed
 * sends. A NAT that forgets its binding moves a far end in the middle of its stream: packets that
 * go on where that stream was, in number and in time, need not wait long.
 */
export class Latch {
  current: Place | null = null;
  /** Ticks of the timestamps in a second. */
  clockRate = 8000;
  readonly #isAllowed: (place: Place) => boolean;
  #named: Place | null = null;
  #lastMs = 0;
  /** The stream as it was last, and when its timestamp was new: those of a held key stay. */
  #newest: { point: StreamPoint; atMs: number } | null = null;
  #candidate: { place: Place; point: StreamPoint; packets: number } | null = null;

  /** `isAllowed`: sound may be sent to this place at all, and so be taken from it. */
  constructor(isAllowed: (place: Place) => boolean) {
    this.#isAllowed = isAllowed;
  }

  /** The SDP's place, null where it names none that is allowed; the same again changes nothing. */
  name(place: Place | null): void {
    if (this.#named && place && isSame(this.#named, place)) return;
    this.#named = place;
    this.current = null;
    this.#newest = null;
    this.#candidate = null;
  }

  /** Asked before anything else is looked at: a flood from elsewhere costs next to nothing. */
  mayBe(place: Place, nowMs: number): boolean {
    return !this.current || isSame(this.current, place) || this.#isNamed(place)
      || nowMs - this.#lastMs >= REBIND_SILENT_MS;
  }

  /** For a packet that is valid and was let through by `mayBe`: whether it is the far end's. */
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

  /** Whether the packet is what the stream that was believed would have sent by now. */
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
