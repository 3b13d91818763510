// Detects DTMF keys as tones in the audio (ITU-T Q.23, Q.24), for far ends that send them in no
// other way. It runs the Goertzel filter over windows of 12.75 ms that overlap by half: a key is
// two steady tones, a row and a column, and next to nothing else, for four windows, which the 40 ms
// of the shortest key always fill and speech never should. Pure. Used by keys-in.ts.
import { filterFor, powerAt } from "#audio/goertzel.ts";

const ROWS = [697, 770, 852, 941];
const COLUMNS = [1209, 1336, 1477, 1633];
const KEYPAD = ["123A", "456B", "789C", "*0#D"];
const WINDOW_SECONDS = 0.01275;
/** Windows in a row that make a key. */
const WINDOWS_MIN = 4;
/** Windows without the key that end it. A break of 10 ms has fewer, a pause of 40 ms more. */
const MISSES_MAX = 5;
/** Amplitude of the weaker tone: -31 dBm0. */
const AMPLITUDE_MIN = 600;
/** Power ratios: rows over columns 8 dB, columns over rows 4 dB, plus the error of a window. */
const ROW_TWIST_MAX = 11;
const COLUMN_TWIST_MAX = 3.5;
/** Power ratio of a tone over the rest of its group, where both tones leak in: 6 dB. */
const PEAK_MIN = 4;
/** Share of the window's power in the two tones; tones that are 1.5 % off keep this much. */
const SHARE_MIN = 0.72;
/** A key's level stays within 4 dB from window to window. */
const STEADY_MAX = 2.5;

export class ToneKeys {
  readonly #onKey: (key: string) => void;
  readonly #window: Float64Array;
  readonly #filters: readonly number[];
  readonly #powers = new Float64Array(ROWS.length + COLUMNS.length);
  #filled = 0;
  /** The key of the newest windows, and how many windows in a row had it. */
  #seen = "";
  #windows = 0;
  #power = 0;
  #held = "";
  #misses = 0;

  /** `rate`: samples per second. Every key is published once, 40 ms after its beginning. */
  constructor(rate: number, onKey: (key: string) => void) {
    this.#onKey = onKey;
    this.#window = new Float64Array(2 * Math.round((rate * WINDOW_SECONDS) / 2));
    this.#filters = [...ROWS, ...COLUMNS].map((hertz) => filterFor(hertz, rate));
  }

  /** Whether a key is being held at the end of the samples. */
  push(pcm: Int16Array): boolean {
    const window = this.#window;
    const half = window.length / 2;
    for (const sample of pcm) {
      window[this.#filled] = sample;
      this.#filled += 1;
      if (this.#filled < window.length) continue;
      this.#judge(this.#keyIn(window));
      window.copyWithin(0, half);
      this.#filled = half;
    }
    return this.#held !== "";
  }

  #judge(key: string): void {
    if (key === "" || key !== this.#seen) this.#windows = 0;
    this.#seen = key;
    if (key !== "") this.#windows += 1;
    if (key === this.#held) this.#misses = 0;
    else if (this.#held !== "" && (this.#misses += 1) >= MISSES_MAX) this.#held = "";
    if (this.#windows < WINDOWS_MIN || key === this.#held) return;
    this.#held = key;
    this.#misses = 0;
    this.#onKey(key);
  }

  /** The key whose tones fill the window; empty: none. */
  #keyIn(window: Float64Array): string {
    const samples = window.length;
    let energy = 0;
    for (const sample of window) energy += sample * sample;
    const before = this.#power;
    this.#power = energy;
    const least = 2 * AMPLITUDE_MIN ** 2 * (samples / 2);
    if (energy < least || energy > before * STEADY_MAX || before > energy * STEADY_MAX) return "";
    const row = this.#strongest(window, 0, ROWS.length);
    const column = row === null ? null : this.#strongest(window, ROWS.length, this.#powers.length);
    if (row === null || column === null) return "";
    const [low = 0, high = 0] = [this.#powers[row], this.#powers[column]];
    const isFull = low + high >= SHARE_MIN * energy * (samples / 2);
    const isLoud = Math.min(low, high) >= (AMPLITUDE_MIN * (samples / 2)) ** 2;
    const isTwisted = low > high * ROW_TWIST_MAX || high > low * COLUMN_TWIST_MAX;
    if (!isFull || !isLoud || isTwisted) return "";
    return KEYPAD[row]?.[column - ROWS.length] ?? "";
  }

  /** The index of the one tone that stands out in its group; null when none does. */
  #strongest(window: Float64Array, from: number, to: number): number | null {
    const powers = this.#powers;
    let best = from;
    for (let at = from; at < to; at += 1) {
      powers[at] = powerAt(window, this.#filters[at] ?? 0);
      if ((powers[at] ?? 0) > (powers[best] ?? 0)) best = at;
    }
    for (let at = from; at < to; at += 1) {
      if (at !== best && (powers[best] ?? 0) < PEAK_MIN * (powers[at] ?? 0)) return null;
    }
    return best;
  }
}
