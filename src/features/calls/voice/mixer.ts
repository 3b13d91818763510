// What the caller hears, frame by frame: the utterance being played, the ambience under it, the
// voices of others who have joined. Owns the position of playout, the recording of both sides and
// the tap for listeners. One per leg, driven by clock.ts.
import { soundBeginsMs } from "#audio/audible.ts";
import { mixInto } from "#audio/mix.ts";
import { FRAME_MS, type Leg } from "#providers/carriers/port.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { createFraming } from "./frames.ts";
import type { Utterance } from "./utterance.ts";
import { Voices } from "./voices.ts";

/** How long a carrier is waited for that does not say what it dropped. */
export const CLEARED_WAIT_MS = 300;
/** How many frames of the customer's sound are kept when they arrive early. */
const INPUT_FRAMES_MAX = 15;
/** At most this much of a stall is recorded as silence, since it is written in one go. */
const STALL_FRAMES_MAX = 500;
/** An interrupted utterance fades out over this time, because a hard cut clicks. */
const FADE_MS = 8;
/** Ambience under the assistant's voice. */
const DUCKED = 0.5;

interface MixerOptions {
  leg: Leg;
  ambience: { next(samples: number): Pcm; gain: number } | null;
  /** Comfort noise, sent when there is nothing to hear, and not recorded. Null: silence is sent. */
  comfort: (() => Pcm) | null;
  /** Both sides of one frame; the arrays are not kept. */
  record: ((customer: Pcm, assistant: Pcm) => void) | null;
  /** An utterance is at its end: everything was handed to the carrier. */
  onPlayedOut(utterance: Utterance): void;
  /** The frame now being sent makes an utterance audible, `intoFrameMs` after its beginning. */
  onHeard(utterance: Utterance, intoFrameMs: number): void;
}

export class Mixer {
  /** The assistant is not heard: what it says passes in silence. */
  muted = false;
  /** Set while somebody listens in. */
  tap: ((customer: Pcm, assistant: Pcm) => void) | null = null;
  /** The voices beside the assistant; they are recorded on its side. */
  readonly voices = new Voices();
  readonly #options: MixerOptions;
  readonly #silence: Pcm;
  readonly #samples: number;
  #speaking: Utterance | null = null;
  #held = false;
  /** The fading end of an interrupted utterance: sent with the next frame, counted as played. */
  #tail: Pcm | null = null;
  /** Nobody hears what is sent, so speech waits. */
  #isOnHold = false;
  #input: Pcm[] = [];
  readonly #cut: (pcm: Pcm) => void;
  #awaitsCleared: { utterance: Utterance | null; then: () => void }[] = [];

  constructor(options: MixerOptions) {
    this.#options = options;
    this.#samples = (options.leg.rate * FRAME_MS) / 1000;
    this.#silence = new Int16Array(this.#samples);
    this.#cut = createFraming(this.#samples, (frame) => this.#keep(frame));
  }

  get speaking(): Utterance | null {
    return this.#speaking;
  }

  /** Plays this from the next frame on, instead of whatever was being played. */
  play(utterance: Utterance): void {
    this.#breakOff();
    this.#speaking = utterance;
    this.#held = false;
  }

  /** Stops at once and finds out what was really heard; `then` runs when that is known. */
  hold(then: () => void): void {
    const utterance = this.#speaking;
    const tailMs = this.#breakOff();
    this.#held = true;
    this.#awaitsCleared.push({ utterance, then });
    if (this.#awaitsCleared.length > 1) return;
    this.#options.leg.clear();
    if (!this.awaitsCleared) return;
    // The far end itself cuts what is queued there, at a point before the one we have reached.
    this.#tail = null;
    utterance?.rewind(tailMs);
  }

  /** The carrier's answer to `clear`. */
  cleared(droppedMs: number): void {
    const waiting = this.#awaitsCleared.splice(0);
    waiting[0]?.utterance?.rewind(droppedMs);
    for (const { then } of waiting) then();
  }

  get awaitsCleared(): boolean {
    return this.#awaitsCleared.length > 0;
  }

  resume(): void {
    this.#speaking?.rewindToWord();
    this.#held = false;
  }

  /** The other end has put the call on hold, or resumed it. */
  onHold(isHeld: boolean): void {
    if (this.#isOnHold && !isHeld && this.#speaking?.wasHeard) this.#speaking.rewindToWord();
    this.#isOnHold = isHeld;
  }

  /** Nothing more of this one is played. */
  drop(utterance: Utterance): void {
    if (this.#speaking !== utterance) return;
    this.#breakOff();
    this.#speaking = null;
  }

  /** What the customer says, in pieces of any size. */
  receiveAudio(pcm: Pcm): void {
    if (this.#isHeard()) this.#cut(pcm);
  }

  /**
   * Frames that the clock dropped are recorded as silence, so that the recording keeps the
   * transcript's time. A leg may bring audio before this returns: it calls `receiveAudio` within.
   */
  tick(dropped: number): void {
    const { comfort, leg, record } = this.#options;
    for (let at = Math.min(dropped, STALL_FRAMES_MAX); record && at > 0; at -= 1) {
      record(this.#input.shift() ?? this.#silence, this.#silence);
    }
    const othersSpeak = this.voices.pull(this.#samples);
    const own = this.#frame(othersSpeak);
    const frame = this.voices.over(own);
    leg.send(frame === this.#silence && comfort ? comfort() : frame);
    if (!this.#isHeard()) return;
    const heard = this.#input.shift() ?? this.#silence;
    record?.(heard, frame);
    this.tap?.(heard, frame);
    this.voices.deliver(heard, own);
  }

  /** Whether anybody receives the customer's sound, or it is recorded. */
  #isHeard(): boolean {
    return this.#options.record !== null || this.tap !== null || this.voices.areListening;
  }

  #keep(frame: Pcm): void {
    this.#input.push(frame);
    if (this.#input.length > INPUT_FRAMES_MAX) this.#input.shift();
  }

  /** Takes the fading end of the current utterance; returns its length in milliseconds. */
  #breakOff(): number {
    const utterance = this.#speaking;
    if (!utterance?.wasHeard || this.#held || this.muted) return 0;
    const tail = new Int16Array((this.#samples * FADE_MS) / FRAME_MS);
    const count = utterance.read(tail);
    for (let at = 0; at < count; at += 1) {
      tail[at] = (tail[at] ?? 0) * (1 + Math.cos((Math.PI * (at + 1)) / (tail.length + 1))) / 2;
    }
    this.#tail = tail;
    return (count * 1000) / this.#options.leg.rate;
  }

  #nextSound(): Pcm | null {
    const tail = this.#tail;
    if (!tail) return this.#held ? null : this.#nextSpeech();
    this.#tail = null;
    const frame = new Int16Array(this.#samples);
    frame.set(tail);
    return frame;
  }

  #frame(othersSpeak: boolean): Pcm {
    const speech = this.#nextSound();
    const { ambience } = this.#options;
    if (!ambience) return speech ?? this.#silence;
    const frame = speech ?? new Int16Array(this.#samples);
    const gain = ambience.gain * (speech || othersSpeak ? DUCKED : 1);
    mixInto(frame, ambience.next(this.#samples), gain);
    return frame;
  }

  #nextSpeech(): Pcm | null {
    const utterance = this.#speaking;
    if (!utterance) return null;
    if (!utterance.hasAudio) {
      if (!utterance.ended) return null;
      this.#speaking = null;
      this.#options.leg.mark?.();
      this.#options.onPlayedOut(utterance);
      return null;
    }
    if (this.#isOnHold) return null;
    const frame = new Int16Array(this.#samples);
    utterance.read(frame);
    if (!utterance.isAudible) this.#listenFor(utterance, frame);
    return this.muted ? null : frame;
  }

  #listenFor(utterance: Utterance, frame: Pcm): void {
    const intoFrameMs = soundBeginsMs(frame, this.#options.leg.rate);
    if (intoFrameMs === null) return;
    utterance.isAudible = true;
    this.#options.onHeard(utterance, intoFrameMs);
  }
}
