// What is known of the customer's speech in a call whose model hears by itself: whether they talk,
// when they were last audible, and which of their words are still to come. Held by
// realtime-session.ts.
import { createSoundEnd } from "#audio/audible.ts";
import type { Pcm, SpeechToSpeechEvent, TranscriptEvent } from "#providers/speech/port.ts";
import { awaitLastWords, type Heard, type LastWordsOptions } from "./last-words.ts";
import type { TimerSettings } from "./turns/call-timers.ts";
import { FINAL_LATEST_MS } from "./turns/turn-draft.ts";

interface LastWords
  extends Pick<LastWordsOptions, "reason" | "then" | "scribe" | "input" | "system"> {
  timers: Heard["timers"];
  keypad: TimerSettings["keypad"];
}

export class ModelEars {
  isTalking = false;
  /** As `#lastSoundMs`, at the last start or end of speech that the model reported. */
  lastVoiceMs = 0;
  readonly #rate: number;
  readonly #sound: ReturnType<typeof createSoundEnd>;
  /** When the customer was last audible, as `#sound` detects it. */
  #lastSoundMs = 0;
  #endedMs = 0;
  /** How many speeches have ended whose words have not come. */
  #finalsDue = 0;
  #partial = "";
  #onLastWords: (event: TranscriptEvent) => void = () => undefined;

  constructor(rate: number) {
    this.#rate = rate;
    this.#sound = createSoundEnd(rate);
  }

  hear(pcm: Pcm, nowMs: number): void {
    const quietMs = this.#sound.quietMs(pcm);
    if (quietMs < (pcm.length * 1000) / this.#rate) this.#lastSoundMs = nowMs - quietMs;
  }

  speechBegan(nowMs: number): void {
    this.isTalking = true;
    this.lastVoiceMs = nowMs;
  }

  speechEnded(nowMs: number): void {
    if (this.isTalking) this.#finalsDue += 1;
    this.isTalking = false;
    this.lastVoiceMs = Math.max(this.lastVoiceMs, this.#lastSoundMs);
    this.#endedMs = nowMs;
  }

  words({ text, isFinal }: Extract<SpeechToSpeechEvent, { kind: "user_text" }>): void {
    this.#partial = isFinal ? "" : text;
    if (isFinal) this.#finalsDue = Math.max(0, this.#finalsDue - 1);
  }

  /** Words that have not come for long are not expected any more. */
  awaitLastWords({ keypad, timers, ...options }: LastWords): void {
    const nowMs = options.system.monotonicMs();
    const isLate = nowMs - this.#endedMs >= FINAL_LATEST_MS;
    awaitLastWords({
      ...options,
      settings: { keypad, wordsAreTold: false },
      state: {
        isTalking: this.isTalking, timers,
        lastVoiceMs: Math.max(this.lastVoiceMs, this.isTalking ? this.#lastSoundMs : 0),
        finals: "", partial: this.#partial, finalsDue: isLate ? 0 : this.#finalsDue,
        // Only what the model says of speech and words counts.
        hasVoice: false, finalMs: 0, spentWords: 0,
      },
      listen: (receive) => (this.#onLastWords = receive),
    });
  }

  /** What the model reports once the call is over. */
  lateEvent(event: SpeechToSpeechEvent): void {
    if (event.kind === "failed") this.#onLastWords(event);
    if (event.kind !== "user_text") return;
    this.#onLastWords({ kind: event.isFinal ? "final" : "partial", text: event.text });
  }
}
