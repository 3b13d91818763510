// DTMF keys: as RTP events (RFC 4733) in both directions, and as tones we send in the audio when
// the far end has agreed to no events. Pure. Used by rtp-session.ts, with one receiver and one
// sender per session, and by calls/hosted/media.ts.

export const DIGITS = "0123456789*#ABCD";
export const EVENT_BYTES = 4;

/** Samples at 8 kHz. */
const FRAME = 160;
const TONE_FRAMES = 8;
const PAUSE_FRAMES = 4;
/** The end is sent three times (RFC 4733, 2.5.1.4), a frame apart, to survive a burst of loss. */
const ENDS = 3;
const WAITING_MAX = 128;
/** -10 dBm0, as RFC 4733's examples. */
const VOLUME = 10;
const DURATION_MAX = 0xffff;
/** Late copies of an end arrive soon; they are recognised this many keys back. */
const REMEMBERED = 16;

const RATE = 8000;
const ROWS = [697, 770, 852, 941];
const COLUMNS = [1209, 1336, 1477, 1633];
const KEYPAD = ["123A", "456B", "789C", "*0#D"];
/** The higher tone is 2 dB stronger, because lines weaken it more. */
const LOW_LEVEL = 6000;
const HIGH_LEVEL = 7550;

interface TelephoneEvent {
  event: number;
  isEnd: boolean;
  volume: number;
  duration: number;
}

export function parseTelephoneEvent(payload: Buffer): TelephoneEvent | null {
  if (payload.length < EVENT_BYTES) return null;
  const flags = payload[1] ?? 0;
  return {
    event: payload[0] ?? 0,
    isEnd: flags >= 0x80,
    volume: flags & 0x3f,
    duration: payload.readUInt16BE(2),
  };
}

/** `duration` is in samples at 8 kHz, and is written in ticks of `clockRate`. */
export function writeTelephoneEvent(
  target: Buffer, at: number, event: TelephoneEvent, clockRate = RATE,
): void {
  const ticks = (event.duration * clockRate) / RATE;
  target[at] = event.event;
  target[at + 1] = (event.isEnd ? 0x80 : 0) | event.volume;
  target.writeUInt16BE(Math.min(ticks, DURATION_MAX), at + 2);
}

/**
 * Publishes every key once, with the first of its packets to arrive: timestamp and event identify
 * the key, so neither a lost beginning or end nor the same key pressed twice matters. Some relays
 * give each packet of a key a new timestamp: a packet is then of the same key when it begins before
 * that key can have ended, or when its duration has grown by as much as its timestamp.
 */
export function createDtmfReceiver(
  onDigit: (digit: string) => void,
): { push(timestamp: number, payload: Buffer): void } {
  const known: string[] = [];
  /**
   * `extent`: the next key begins at least so many ticks after this one. `before`: timestamp minus
   * duration, which a key's packets have in common when each has a timestamp of its own.
   */
  const keys: { event: number; timestamp: number; extent: number; before: number }[] = [];
  return {
    push: (timestamp, payload) => {
      const parsed = parseTelephoneEvent(payload);
      const digit = parsed ? DIGITS.charAt(parsed.event) : "";
      if (!parsed || digit === "") return;
      const { event, duration, isEnd } = parsed;
      const before = (timestamp - duration) >>> 0;
      // The key it may belong to: it did not begin later, but other keys may have come since.
      const last = keys.findLast((one) => one.event === event
        && (before === one.before || (timestamp - one.timestamp | 0) >= 0));
      const since = last ? (timestamp - last.timestamp) >>> 0 : Infinity;
      // A key held for more than 8 s continues under a new timestamp (RFC 4733, 2.5.1.3).
      const isNext = since === DURATION_MAX;
      const same = !isNext && last && (since < last.extent || before === last.before) ? last : null;
      const extent = isEnd ? duration : Math.max(same?.extent ?? 0, duration + 1);
      if (same) same.extent = extent;
      const name = `${timestamp} ${event}`;
      if (known.includes(name)) return;
      known.push(name);
      if (known.length > REMEMBERED) known.shift();
      if (same) return;
      keys.push({ event, timestamp, extent, before });
      if (keys.length > REMEMBERED) keys.shift();
      if (!isNext) onDigit(digit);
    },
  };
}

/** What goes out instead of a frame of audio: an event, a tone, or nothing (a pause). */
export interface DtmfFrame {
  digit: string;
  /** Samples since the key began, this frame's included; the pause after it counts, too. */
  duration: number;
  /** The event to send in this frame; null in the pause once the end has been sent three times. */
  event: TelephoneEvent | null;
  isFirst: boolean;
  isTone: boolean;
}

export class DtmfSender {
  #waiting: string[] = [];
  #frame = 0;

  /** Ignores characters that are no keys, and keys beyond the bound of the queue. */
  add(digits: string): void {
    const keys = [...digits.toUpperCase()].filter((digit) => DIGITS.includes(digit));
    this.#waiting.push(...keys.slice(0, WAITING_MAX - this.#waiting.length));
  }

  /** The next 20 ms, or null when audio may go on. */
  next(): DtmfFrame | null {
    const digit = this.#waiting[0];
    if (digit === undefined) return null;
    this.#frame += 1;
    const frame = this.#frame;
    if (frame === TONE_FRAMES + PAUSE_FRAMES) {
      this.#waiting.shift();
      this.#frame = 0;
    }
    const event = frame >= TONE_FRAMES + ENDS ? null : {
      event: DIGITS.indexOf(digit),
      isEnd: frame >= TONE_FRAMES,
      volume: VOLUME,
      duration: Math.min(frame, TONE_FRAMES) * FRAME,
    };
    return {
      digit, event, duration: frame * FRAME, isFirst: frame === 1, isTone: frame <= TONE_FRAMES,
    };
  }
}

/** The frame of a key's two tones that ends `duration` samples (at 8 kHz) after their beginning. */
export function dtmfTone(
  { digit, duration }: Pick<DtmfFrame, "digit" | "duration">, rate = RATE,
): Int16Array {
  const row = KEYPAD.findIndex((keys) => keys.includes(digit));
  const column = KEYPAD[row]?.indexOf(digit) ?? 0;
  const low = (2 * Math.PI * (ROWS[row] ?? 0)) / rate;
  const high = (2 * Math.PI * (COLUMNS[column] ?? 0)) / rate;
  const scale = rate / RATE;
  const pcm = new Int16Array(FRAME * scale);
  for (let at = 0; at < pcm.length; at += 1) {
    const time = duration * scale - pcm.length + at;
    pcm[at] = Math.round(LOW_LEVEL * Math.sin(low * time) + HIGH_LEVEL * Math.sin(high * time));
  }
  return pcm;
}
