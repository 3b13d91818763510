// The audio thread of the page: cuts the microphone into frames of 20 ms at 16 kHz, and plays what
// the server sends, which a `clear` stops within one block.
import { createResampler } from "./resample.js";

const RATE = 16000;
const FRAME = 320;
/** Queued before playing begins or goes on, against the unevenness of networks. */
const PREBUFFER_SECONDS = 0.06;
/** More than this is lateness: silence is left out until it is gone. */
const QUEUE_SECONDS_MAX = 0.25;
const FADE_SECONDS = 0.005;

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
    this.resample = createResampler(RATE, sampleRate);
    this.chunks = [];
    this.queued = 0;
    this.offset = 0;
    this.played = 0;
    this.isBuffering = true;
    this.fade = 0;
    this.last = 0;
    this.port.onmessage = ({ data }) => {
      if (data === "clear") this.clear();
      else this.add(new Int16Array(data));
    };
  }

  add(pcm) {
    const isSilent = pcm.every((sample) => sample === 0);
    if (isSilent && this.queued > QUEUE_SECONDS_MAX * sampleRate) return;
    const samples = this.resample(Float32Array.from(pcm, (sample) => sample / 32768));
    if (samples.length === 0) return;
    this.chunks.push(samples);
    this.queued += samples.length;
  }

  clear() {
    const milliseconds = (samples) => Math.round((samples * 1000) / sampleRate);
    this.port.postMessage({
      cleared: { played_ms: milliseconds(this.played), dropped_ms: milliseconds(this.queued) },
    });
    this.chunks = [];
    this.queued = 0;
    this.offset = 0;
    this.played = 0;
    this.isBuffering = true;
    // What is cut off in the middle of a wave would click.
    this.fade = Math.round(FADE_SECONDS * sampleRate);
  }

  process(_inputs, [output]) {
    const out = output[0];
    if (this.isBuffering && this.queued >= PREBUFFER_SECONDS * sampleRate) this.isBuffering = false;
    let at = 0;
    if (!this.isBuffering) {
      while (at < out.length && this.chunks.length > 0) {
        const chunk = this.chunks[0];
        const take = Math.min(chunk.length - this.offset, out.length - at);
        out.set(chunk.subarray(this.offset, this.offset + take), at);
        at += take;
        this.offset += take;
        this.queued -= take;
        this.played += take;
        if (this.offset < chunk.length) continue;
        this.chunks.shift();
        this.offset = 0;
      }
      if (at < out.length) this.isBuffering = true;
      if (at > 0) this.last = out[at - 1];
    }
    for (; at < out.length && this.fade > 0; at += 1, this.fade -= 1) {
      this.last *= 0.9;
      out[at] = this.last;
    }
    for (let channel = 1; channel < output.length; channel += 1) output[channel].set(out);
    return true;
  }
}

registerProcessor("capture", Capture);
registerProcessor("playback", Playback);
