// Turns packets that come early, late, twice or never into exactly one frame per 20 ms. Used by
// rtp-session.ts and web/peer.ts, one a session. Pure: it knows no clock.
//
// Frames are pulled, not pushed: the mixer sends one frame every 20 ms whatever happens, and that
// call is also when the far end's next frame is due. A timer of its own would be a second clock
// that drifts against the first, and pushing on arrival would hand the network's jitter to speech
// recognition. So a leg takes one frame and gives one frame, as the loopback carrier does, and a
// late tick catches up in both directions. While nobody pulls, the newest 100 ms are kept, so that
// the first pull already finds a frame.
//
// Depth is found by trial, not by estimation: a frame that is not there in time is concealed
// without advancing the play position, which makes the buffer 20 ms deeper; when it has been deeper
// than needed for two seconds, a frame is dropped. Clock drift either way is one of these cases.
import { sequenceDistance } from "./rtp.ts";

/** Durations are converted to samples with the codec's rate. */
const FRAME_MS = 20;
/** More than AHEAD_MS_MAX plus one packet, and a power of two in samples at every rate. */
const RING_MS = 1024;
const DEPTH_MS_MAX = 100;
/** May wait in addition to a burst of long packets (ffmpeg's are 256 ms). */
const BESIDES_MS_MAX = 40;
/** Playing starts at this depth, or after two frames of waiting for it. */
const START_DEPTH_MS = 40;
const START_FRAMES_MAX = 2;
/** The longest concealment; silence follows. */
const CONCEAL_MS_MAX = 60;
/** Timestamps further off belong to another stream. */
const AHEAD_MS_MAX = 512;
const BEHIND_MS_MAX = 1000;
/** A sequence number further back than this is a restart of the sender, not a late packet. */
const MISORDER_MAX = 100;
const WINDOW_FRAMES = 100;
/** The surplus throughout a window that makes frames be dropped, and what is kept of it. */
const SPARE_MS_MIN = 30;
const RESERVE_MS = 10;

export class JitterBuffer {
  /** Packets that came too late to be heard. */
  late = 0;
  /** Frames in which samples were concealed because a packet was lost or late. */
  concealed = 0;
  /** Frames played, and the sum of the buffer's depth at each of them. */
  played = 0;
  depthMsSum = 0;
  /** Samples by timestamp, and which of them are there. */
  readonly #ring: Int16Array;
  readonly #isThere: Uint8Array;
  readonly #mask: number;
  readonly #perMs: number;
  readonly #frame: number;
  readonly #concealMax: number;
  /** Timestamp played next, and the end of the newest packet: `#newest - #next` is the depth. */
  #next = 0;
  #newest = 0;
  #isEmpty = true;
  /** Samples of the longest packet of this stream. */
  #longest = 0;
  /** Nothing has been played since `reset` or a jump in the timestamps. */
  #isFresh = true;
  #isPlaying = false;
  #startFrames = 0;
  /** Samples concealed without advancing `#next`, since the last packet that came in time. */
  #owed = 0;
  #sequence = 0;
  /** The last received samples played, for concealment; the oldest is at `#heardAt`. */
  readonly #heard: Int16Array;
  #heardAt = 0;
  #concealed: number;
  /** Samples concealed in this frame. */
  #madeUp = 0;
  /** Frames concealed since the buffer ran dry: the next packet tells loss from a pause. */
  #doubtful = 0;
  #windowFrames = 0;
  #spare = Number.POSITIVE_INFINITY;
  #surplus = 0;

  /** Samples per second: 8000 or a multiple of it that is a power of two. */
  constructor(rate = 8000) {
    this.#perMs = rate / 1000;
    this.#frame = FRAME_MS * this.#perMs;
    this.#concealMax = this.#concealed = CONCEAL_MS_MAX * this.#perMs;
    const ring = RING_MS * this.#perMs;
    this.#mask = ring - 1;
    this.#ring = new Int16Array(ring);
    this.#isThere = new Uint8Array(ring);
    this.#heard = new Int16Array(this.#frame);
  }

  /** How much is waiting, gaps included. */
  get depthMs(): number {
    return this.#isEmpty ? 0 : Math.max(0, this.#ahead(this.#newest)) / this.#perMs;
  }

  /** The next packet is the beginning of another stream. */
  reset(): void {
    this.#isEmpty = true;
  }

  /** `timestamp` in samples. */
  push({ sequence, timestamp }: { sequence: number; timestamp: number }, pcm: Int16Array): void {
    const { length } = pcm;
    if (length === 0) return;
    const aheadMax = AHEAD_MS_MAX * this.#perMs;
    const behindMax = BEHIND_MS_MAX * this.#perMs;
    const from = this.#ahead(timestamp);
    const distance = sequenceDistance(sequence, this.#sequence);
    const isNewer = this.#isEmpty || distance > 0 || distance < -MISORDER_MAX;
    this.#judgeDoubtful(distance);
    if (this.#isEmpty || from > aheadMax || from < -behindMax) this.#anchor(timestamp);
    else if (from + length <= 0 && !this.#isFresh) {
      if (!isNewer) {
        this.late += 1;
        return;
      }
      // It was sent later than what was played, with an earlier timestamp: the far end's clock was
      // set back.
      this.#anchor(timestamp);
    } else if (from < 0 && this.#isFresh) {
      // Reordered at the very beginning.
      this.#next = timestamp;
    }
    if (isNewer) this.#sequence = sequence;
    this.#settle(timestamp);
    this.#write(timestamp, pcm);
    // What did not fit into a packet comes at once in a shorter one.
    const whole = length < this.#longest ? this.#longest + length : length;
    this.#longest = Math.max(this.#longest, length);
    const depthMax = Math.max(DEPTH_MS_MAX * this.#perMs, whole + BESIDES_MS_MAX * this.#perMs);
    this.#cut(this.#ahead(this.#newest) - depthMax);
  }

  /** The next 20 ms; always a frame, and always a new array. */
  pull(): Int16Array {
    const frame = new Int16Array(this.#frame);
    if (!this.#mayPlay()) {
      this.#conceal(frame, 0);
      return frame;
    }
    const depth = this.#ahead(this.#newest);
    const take = Math.min(this.#frame, Math.max(0, depth));
    this.#isFresh = false;
    this.#madeUp = 0;
    this.#read(frame, take);
    this.played += 1;
    this.depthMsSum += depth / this.#perMs;
    if (take === this.#frame && this.#madeUp > 0) this.concealed += 1;
    if (take < this.#frame) {
      if (this.#madeUp > 0) this.#doubtful += 1;
      this.#owed += this.#frame - take;
      // After a pause this long, what comes next starts the buffer anew.
      if (this.#owed >= this.#concealMax) this.#stop();
    } else if (this.#surplus > 0 && depth >= 2 * this.#frame) {
      this.#surplus -= 1;
      this.#blend(frame);
    }
    this.#watch(Math.max(0, depth - this.#frame));
    return frame;
  }

  #ahead(timestamp: number): number {
    return (timestamp - this.#next) | 0;
  }

  #anchor(timestamp: number): void {
    this.#isThere.fill(0);
    this.#next = timestamp;
    this.#newest = timestamp;
    this.#longest = 0;
    this.#isEmpty = false;
    this.#isFresh = true;
    this.#owed = 0;
    this.#stop();
  }

  #stop(): void {
    this.#isPlaying = false;
    this.#startFrames = 0;
    this.#windowFrames = 0;
    this.#spare = Number.POSITIVE_INFINITY;
    this.#surplus = 0;
  }

  #mayPlay(): boolean {
    if (this.#isPlaying) return true;
    const depth = this.#isEmpty ? 0 : this.#ahead(this.#newest);
    if (depth <= 0) return false;
    this.#startFrames += 1;
    this.#isPlaying = depth >= START_DEPTH_MS * this.#perMs || this.#startFrames > START_FRAMES_MAX;
    return this.#isPlaying;
  }

  /**
   * Audio concealed while the buffer was empty has already taken up playing time, so a gap before
   * this packet (lost, or never sent in silence) is shortened by it.
   */
  #settle(timestamp: number): void {
    if (this.#ahead(this.#newest) > 0) return;
    const gap = Math.max(0, this.#ahead(timestamp));
    if (this.#owed > 0) {
      this.#next += this.#owed >= this.#concealMax ? gap : Math.min(gap, this.#owed);
    }
    this.#owed = 0;
  }

  /** A sender that paused resumes with the next sequence number, and not at once. */
  #judgeDoubtful(distance: number): void {
    const isPause = this.#isEmpty || (distance === 1 && this.#owed >= this.#concealMax);
    if (!isPause) this.concealed += this.#doubtful;
    this.#doubtful = 0;
  }

  #write(timestamp: number, pcm: Int16Array): void {
    const from = Math.max(0, -this.#ahead(timestamp));
    for (let at = from; at < pcm.length; at += 1) {
      const place = (timestamp + at) & this.#mask;
      this.#ring[place] = pcm[at] ?? 0;
      this.#isThere[place] = 1;
    }
    const end = timestamp + pcm.length;
    if (this.#ahead(end) > this.#ahead(this.#newest)) this.#newest = end;
  }

  /** Too deep by `cut` samples: drops the oldest, and any gap that would then come first. */
  #cut(cut: number): void {
    if (cut <= 0) return;
    for (let at = 0; at < cut; at += 1) this.#isThere[(this.#next + at) & this.#mask] = 0;
    this.#next += cut;
    while (this.#isThere[this.#next & this.#mask] === 0) this.#next += 1;
  }

  /** Takes `take` samples from the buffer; missing ones and the rest of the frame are concealed. */
  #read(frame: Int16Array, take: number): void {
    for (let at = 0; at < take; at += 1) {
      const place = (this.#next + at) & this.#mask;
      if (this.#isThere[place] === 0) {
        this.#concealOne(frame, at);
        continue;
      }
      this.#isThere[place] = 0;
      const sample = this.#ring[place] ?? 0;
      frame[at] = sample;
      this.#heard[this.#heardAt] = sample;
      this.#heardAt = this.#heardAt + 1 === this.#frame ? 0 : this.#heardAt + 1;
      this.#concealed = 0;
    }
    this.#next = (this.#next + take) | 0;
    this.#conceal(frame, take);
  }

  #conceal(frame: Int16Array, from: number): void {
    for (let at = from; at < this.#frame; at += 1) this.#concealOne(frame, at);
  }

  /**
   * Plays the last 20 ms backwards, then forwards, and so on, fading out: that starts without a
   * discontinuity and needs no pitch search.
   */
  #concealOne(frame: Int16Array, at: number): void {
    const done = this.#concealed;
    if (done >= this.#concealMax) return;
    this.#concealed += 1;
    this.#madeUp += 1;
    const step = done % (2 * this.#frame);
    const back = step < this.#frame ? step + 1 : 2 * this.#frame - step;
    const sample = this.#heard[(this.#heardAt - back + this.#frame) % this.#frame] ?? 0;
    frame[at] = Math.round(sample * (1 - done / this.#concealMax));
  }

  /** Drops a frame by cross-fading it into the one after it. */
  #blend(frame: Int16Array): void {
    const after = new Int16Array(this.#frame);
    this.#read(after, this.#frame);
    for (let at = 0; at < this.#frame; at += 1) {
      const before = frame[at] ?? 0;
      frame[at] = before + (((after[at] ?? 0) - before) * at) / this.#frame;
    }
  }

  /** Finds out over a window whether the buffer is deeper than it needs to be. */
  #watch(spare: number): void {
    this.#spare = Math.min(this.#spare, spare);
    this.#windowFrames += 1;
    if (this.#windowFrames < WINDOW_FRAMES) return;
    if (this.#spare >= SPARE_MS_MIN * this.#perMs) {
      this.#surplus = Math.floor((this.#spare - RESERVE_MS * this.#perMs) / this.#frame);
    }
    this.#windowFrames = 0;
    this.#spare = Number.POSITIVE_INFINITY;
  }
}
