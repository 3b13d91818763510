// A person of the account who takes part in a call with a microphone: heard by the customer at the
// loudness of every voice, hears everybody else, and what they say goes on record, in words where a
// recogniser understands them. Made by host.ts, in the media thread.
import { createResampler } from "#audio/resampler.ts";
import type { System, Timer } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import { FRAME_MS } from "#providers/carriers/port.ts";
import type { Pcm, Transcriber, TranscriptEvent, Vad } from "#providers/speech/port.ts";
import type { Said } from "./brain.ts";
import type { Channel } from "./channel.ts";
import { createVoiceQueue } from "./frames.ts";
import { PERSON_RATE } from "./protocol.ts";
import type { VoiceSettings } from "./settings.ts";
import { openSpeechInput, type SpeechInput } from "./speech-input.ts";

/** The jitter buffer of a browser's sound: frames waited for, and frames kept at most. */
const LEAD_FRAMES = 3;
const FRAMES_MAX = 25;
const VOICED = 0.5;
const CONFIRM_MS = 60;
const WORD_GAP_MS = 100;
const FINALIZE_AFTER_MS = 200;
/** When nothing has come for this long, that is silence: a page may stop sending in mid-word. */
const SOUND_LATEST_MS = 500;
/** A silence this long ends an entry of the record. */
const ENTRY_GAP_MS = 700;
/** How long the final words of what was said are waited for. */
const FINAL_WAIT_MS = 2000;
/** Below this, sound is no voice and is not made louder; about -50 dBFS. */
const QUIET_RMS = 100;

interface PersonOptions {
  author: Author;
  channel: Pick<Channel, "callMs" | "join" | "rate">;
  settings: Pick<VoiceSettings, "language" | "languages" | "hints">;
  vad: Vad;
  /** Null: nothing understands them. */
  transcriber: Transcriber | null;
  /** Brings what is given to it to the loudness of all voices. */
  level(key: string, rate: number): (pcm: Pcm) => Pcm;
  /** Receives what they hear, at PERSON_RATE; the array may be kept. */
  onHears(pcm: Pcm): void;
  onSaid(said: Said): void;
  onTalking(isTalking: boolean): void;
  system: System;
}

export interface Person {
  /** At PERSON_RATE, any number of samples. */
  write(pcm: Pcm): void;
  /** They are no longer heard; `then` runs once their last words are on record. */
  leave(then: () => void): void;
  /** The same at once, with the words recognised so far. */
  close(): void;
}

const DEAF: Transcriber = {
  name: "none",
  detectsTurns: false,
  open: () => ({ write: () => undefined, finalize: () => undefined, close: () => undefined }),
};

const isQuiet = (pcm: Pcm): boolean =>
  pcm.reduce((sum, sample) => sum + sample * sample, 0) < pcm.length * QUIET_RMS ** 2;

export function openPerson(options: PersonOptions): Person {
  const { author, channel, level, onHears } = options;
  const { rate } = channel;
  const down = createResampler(PERSON_RATE, rate);
  const up = createResampler(rate, PERSON_RATE);
  const queue = createVoiceQueue(
    (rate * FRAME_MS) / 1000, { leadFrames: LEAD_FRAMES, framesMax: FRAMES_MAX });
  const loud = level(`person ${author.id}`, rate);
  const leaveMixer = channel.join({
    gain: 1,
    next: () => {
      const frame = queue.next();
      if (frame === null) words.passSilence();
      return frame && !isQuiet(frame) ? loud(frame) : frame;
    },
    hears: (frame) => onHears(up.process(frame)),
  });
  const words = new PersonsWords(options);
  return {
    write: (pcm) => {
      queue.write(down.process(pcm));
      words.hear(pcm);
    },
    leave: (then) => {
      leaveMixer();
      words.finish(then);
    },
    close: () => {
      leaveMixer();
      words.close();
    },
  };
}

/** What they say, cut into entries by their pauses. */
class PersonsWords {
  readonly #options: PersonOptions;
  readonly #input: SpeechInput;
  #isUnderstood: boolean;
  #isTalking = false;
  #voicedMs = 0;
  #unvoicedMs = 0;
  /** When the entry under way began; null: there is none. */
  #startMs: number | null = null;
  #endMs = 0;
  #finals = "";
  #partial = "";
  /** How many final texts that were requested have not come. */
  #finalsDue = 0;
  /** They have left: what runs once their last words are on record. */
  #finishing: { thens: (() => void)[]; timer: Timer } | null = null;
  #isClosed = false;
  /** When the microphone's sound came last, in milliseconds of the call. */
  #heardMs = 0;

  constructor(options: PersonOptions) {
    this.#options = options;
    this.#isUnderstood = options.transcriber !== null;
    this.#input = openSpeechInput({
      ...options.settings,
      rate: PERSON_RATE,
      transcriber: options.transcriber ?? DEAF,
      vad: options.vad,
      noiseFilter: null,
      turnEnds: null,
      onTranscript: (event) => this.#recognised(event),
      onVoice: (frame) => this.#voice(frame),
    });
  }

  hear(pcm: Pcm): void {
    this.#heardMs = this.#options.channel.callMs();
    if (!this.#isClosed) this.#input.write(pcm);
  }

  passSilence(): void {
    const nowMs = this.#options.channel.callMs();
    const frameMs = nowMs - this.#heardMs;
    if (frameMs < SOUND_LATEST_MS) return;
    this.#heardMs = nowMs;
    this.#voice({ probability: 0, frameMs });
  }

  finish(then: () => void): void {
    this.#stopTalking();
    if (this.#isClosed || this.#finalsDue === 0) {
      this.close();
      return then();
    }
    this.#finishing ??= {
      thens: [], timer: this.#options.system.after(FINAL_WAIT_MS, () => this.close()),
    };
    this.#finishing.thens.push(then);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#input.close();
    this.#note();
    this.#finishing?.timer.cancel();
    for (const then of this.#finishing?.thens ?? []) then();
  }

  #voice({ probability, frameMs }: { probability: number; frameMs: number }): void {
    if (this.#isClosed) return;
    const nowMs = this.#options.channel.callMs();
    if (probability >= VOICED) {
      this.#voicedMs += frameMs;
      this.#unvoicedMs = 0;
      if (!this.#isTalking && this.#voicedMs >= CONFIRM_MS) this.#startTalking(nowMs);
      if (this.#isTalking) this.#endMs = nowMs;
      return;
    }
    this.#unvoicedMs += frameMs;
    if (this.#unvoicedMs >= WORD_GAP_MS) this.#voicedMs = 0;
    if (this.#unvoicedMs >= FINALIZE_AFTER_MS) this.#stopTalking();
    const waitMs = this.#finalsDue > 0 ? FINAL_WAIT_MS : ENTRY_GAP_MS;
    if (this.#isUnderstood && !this.#isTalking && this.#unvoicedMs >= waitMs) this.#note();
  }

  #startTalking(nowMs: number): void {
    this.#isTalking = true;
    this.#startMs ??= Math.max(0, Math.round(nowMs - this.#voicedMs));
    this.#options.onTalking(true);
  }

  #stopTalking(): void {
    if (!this.#isTalking) return;
    this.#isTalking = false;
    if (this.#isUnderstood) this.#finalsDue += 1;
    this.#options.onTalking(false);
    this.#input.finalize();
  }

  #recognised(event: TranscriptEvent): void {
    if (this.#isClosed) return;
    switch (event.kind) {
      case "partial":
        this.#partial = event.text;
        return;
      case "final":
        this.#finals = `${this.#finals} ${event.text}`.trim();
        this.#partial = "";
        this.#finalsDue = Math.max(0, this.#finalsDue - 1);
        if (this.#finishing && this.#finalsDue === 0) this.close();
        return;
      case "failed":
        this.#isUnderstood = false;
        this.#finalsDue = 0;
        if (this.#finishing) this.close();
        return;
      case "end_of_turn":
      case "end_of_turn_likely":
      case "replaced":
        return;
    }
  }

  /** Records the words; a voice that nothing understood is recorded once, when they stop. */
  #note(): void {
    const text = `${this.#finals} ${this.#partial}`.trim();
    const startMs = this.#startMs;
    this.#finals = "";
    this.#partial = "";
    this.#startMs = null;
    this.#finalsDue = 0;
    const nowMs = this.#options.channel.callMs();
    if (text === "" && (this.#isUnderstood || startMs === null)) return;
    const endMs = Math.round(startMs === null ? nowMs : this.#endMs);
    this.#options.onSaid({
      speaker: "operator", author: this.#options.author, text, startMs: startMs ?? endMs, endMs,
      interrupted: false, turn: null, counts: true,
    });
  }
}
