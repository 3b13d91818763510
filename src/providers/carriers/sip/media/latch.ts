// From where a call's audio is taken, and so whereto ours is sent: symmetric RTP (RFC 4961). Pure.
// Used by rtp-session.ts.

/** Packets of one stream from one place until it is believed to be the far end. */
const LATCH_PACKETS = 3;
/** Until another place may take over. */
const LATCH_SILENT_MS = 2000;

export interface Place {
  address: string;
  port: number;
}

export const isSame = (one: Place, other: Place): boolean =>
  one.port === other.port && one.address === other.address;

/**
 * Where the far end really sends from, which behind a NAT is not what its SDP says. Whoever can
 * send packets here can try to be believed: so the place the SDP names is believed at once and
 * always wins, any other only after some packets of one stream, and nobody while the one believed
 * sends.
 */
export class Latch {
  current: Place | null = null;
  readonly #isAllowed: (place: Place) => boolean;
  #named: Place | null = null;
  #lastMs = 0;
  #candidate: { place: Place; ssrc: number; packets: number } | null = null;

  /** `isAllowed`: sound may be sent to this place at all, and so be taken from it. */
  constructor(isAllowed: (place: Place) => boolean) {
    this.#isAllowed = isAllowed;
  }

  /** The SDP's place, null where it names none that is allowed; the same again changes nothing. */
  name(place: Place | null): void {
    if (this.#named && place && isSame(this.#named, place)) return;
    this.#named = place;
    this.current = null;
    this.#candidate = null;
  }

  /** Asked before anything else is looked at: a flood from elsewhere costs next to nothing. */
  mayBe(place: Place, nowMs: number): boolean {
    return !this.current || isSame(this.current, place) || this.#isNamed(place)
      || nowMs - this.#lastMs >= LATCH_SILENT_MS;
  }

  /** For a packet that is valid and was let through by `mayBe`: whether it is the far end's. */
  believes(place: Place, ssrc: number, nowMs: number): boolean {
    if (!(this.current && isSame(this.current, place)) && !this.#isNamed(place)) {
      if (!this.#isAllowed(place)) return false;
      const known = this.#candidate;
      const packets = known && known.ssrc === ssrc && isSame(known.place, place)
        ? known.packets + 1
        : 1;
      this.#candidate = { place, ssrc, packets };
      if (packets < LATCH_PACKETS) return false;
    }
    this.#lastMs = nowMs;
    this.#candidate = null;
    this.current = place;
    return true;
  }

  #isNamed(place: Place): boolean {
    return this.#named !== null && isSame(this.#named, place);
  }
}
