// The audio thread of the page: cuts the microphone into frames of 20 ms at 16 kHz, and plays what
// the server sends, which a `clear` stops within one fade. Sound never begins or ends in the
// middle of a wave, which would click: it fades.
import { createResampler } from "./resample.js";

const RATE = 16000;
const FRAME = 320;
/** Buffered before playback starts or resumes, against network jitter. */
const PREBUFFER_SECONDS = 0.06;
/** Beyond this, playback is late: silence is skipped until it has caught up. */
const LATENESS_SECONDS_MAX = 0.25;
/** A device that does not play (asleep, interrupted) keeps this much; what comes later is lost. */
const QUEUE_SECONDS_MAX = 60;
/** The most the server takes as dropped. */
const DROPPED_MS_MAX = 60_000;
const FADE = Math.round(0.005 * sampleRate);

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resample = createResampler(sampleRate, RATE);
    this.frame = new Int16Array(FRAME);
    this.filled = 0;
  }

  process([input]) {
    const samples = input?.[0];
    if (!samples) return true;
    for (const sample of this.resample(samples)) {
      this.frame[this.filled] = Math.max(-1, Math.min(1, sample)) * 32767;
      this.filled += 1;
      if (this.filled < FRAME) continue;
      this.port.postMessage(this.frame.buffer, [this.frame.buffer]);
      this.frame = new Int16Array(FRAME);
      this.filled = 0;
    }
    return true;
  }
}

class Playback extends AudioWorkletProcessor {
  constructor() {
    super();
    this.empty();
    /** The sound that still fades out after a `clear`. */
    this.tail = new Float32Array(0);
    this.isDraining = false;
    this.port.onmessage = ({ data }) => {
      if (data === "clear") this.clear();
      else if (data === "drain") this.isDraining = true;
      else if (data.mark !== undefined) this.marks.push({ name: data.mark, at: this.played + this.queued });
      else this.add(new Int16Array(data));
    };
  }

  empty() {
    this.resample = createResampler(RATE, sampleRate);
    this.chunks = [];
    this.offset = 0;
    this.queued = 0;
    this.played = 0;
    this.lost = 0;
    this.gain = 0;
    this.isBuffering = true;
    /** Marks, posted once `played` has reached them. */
    this.marks = [];
  }

  add(pcm) {
    const isSilent = pcm.every((sample) => sample === 0);
    if (isSilent && this.queued > LATENESS_SECONDS_MAX * sampleRate) return;
    if (this.queued >= QUEUE_SECONDS_MAX * sampleRate) {
      if (this.lost === 0) this.port.postMessage({ kind: "lost" });
      this.lost += (pcm.length * sampleRate) / RATE;
      return;
    }
    const samples = this.resample(Float32Array.from(pcm, (sample) => sample / 32768));
    if (samples.length === 0) return;
    this.chunks.push(samples);
    this.queued += samples.length;
  }

  clear() {
    const milliseconds = (samples) => Math.round((samples * 1000) / sampleRate);
    this.port.postMessage({
      kind: "cleared",
      played_ms: milliseconds(this.played),
      dropped_ms: Math.min(milliseconds(this.queued + this.lost), DROPPED_MS_MAX),
    });
    const tail = new Float32Array(this.isBuffering ? 0 : Math.min(FADE, this.queued));
    for (let at = 0; at < tail.length; at += 1) {
      tail[at] = this.next() * (1 - (at + 1) / tail.length);
    }
    this.tail = tail;
    this.empty();
  }

  /** One sample of a queue that is not empty. */
  next() {
    const sample = this.chunks[0][this.offset];
    this.offset += 1;
    this.queued -= 1;
    this.played += 1;
    if (this.offset === this.chunks[0].length) {
      this.chunks.shift();
      this.offset = 0;
    }
    // Fades out over the last samples in the queue, and in again when more have come.
    const step = this.queued < FADE ? -1 / FADE : 1 / FADE;
    this.gain = Math.max(0, Math.min(1, this.gain + step));
    return sample * this.gain;
  }

  process(_inputs, [output]) {
    const out = output[0];
    const isEnough = this.isDraining || this.queued >= PREBUFFER_SECONDS * sampleRate;
    if (this.isBuffering && isEnough) this.isBuffering = false;
    for (let at = 0; at < out.length && !this.isBuffering; at += 1) {
      if (this.queued > 0) out[at] = this.next();
      else this.ranOut();
    }
    this.postMarks();
    for (let at = 0; at < Math.min(out.length, this.tail.length); at += 1) out[at] += this.tail[at];
    this.tail = this.tail.subarray(out.length);
    for (let channel = 1; channel < output.length; channel += 1) output[channel].set(out);
    return true;
  }

  postMarks() {
    while (this.marks.length > 0 && this.marks[0].at <= this.played) {
      this.port.postMessage({ kind: "heard", name: this.marks.shift().name });
    }
  }

  ranOut() {
    this.isBuffering = true;
    this.gain = 0;
    this.lost = 0;
    if (this.isDraining) this.port.postMessage({ kind: "drained" });
    this.isDraining = false;
  }
}

registerProcessor("capture", Capture);
registerProcessor("playback", Playback);
