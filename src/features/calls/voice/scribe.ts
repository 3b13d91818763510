// Records what is said in a call: entries in the words really heard, what is being said at the
// moment, and how long each stage of each reply took. Held by channel.ts.
import type { TurnLatency } from "#features/calls/records/records.ts";
import type { Brain } from "./brain.ts";
import { pressedKeys, type TimerSettings, type TimerState } from "./turns/call-timers.ts";
import type { SpeechKind } from "./speech.ts";
import type { Utterance } from "./utterance.ts";

const DELTA_EVERY_MS = 200;
const NO_LATENCY: TurnLatency = {
  endpointMs: null, finalTranscriptMs: null, firstTokenMs: null, firstAudioMs: null, heardMs: null,
};

type Stage = Exclude<keyof TurnLatency, "atMs" | "endpointMs" | "finalTranscriptMs">;

/** What the scribe must know about something that is said. */
export interface Spoken {
  kind: SpeechKind;
  turn: number | null;
  utterance: Utterance;
}

export class Scribe<Said extends Spoken = Spoken> {
  readonly latencies: TurnLatency[] = [];
  readonly #brain: Brain;
  /** Milliseconds on the session's clock, and what it showed at the answer. */
  readonly #nowMs: () => number;
  readonly #answeredAtMs: number;
  readonly #begun = new Map<Utterance, { speech: Said; startMs: number }>();
  /** Interrupted and not on record yet: the far end is asked how much of it was dropped. */
  #brokenOff: Said | null = null;
  #speechStartMs: number | null = null;
  /** The part of the customer's present turn that is on record already. */
  #recorded = "";
  #finalAtMs = -1;
  /** The reply under way; its times count from the customer's last sound. */
  #latency: { turn: TurnLatency; fromMs: number } | null = null;
  #deltaAtMs = 0;
  #deltaText = "";

  constructor(brain: Brain, nowMs: () => number) {
    this.#brain = brain;
    this.#nowMs = nowMs;
    this.#answeredAtMs = nowMs();
  }

  customerBegan(): void {
    this.#speechStartMs ??= this.callMs();
  }

  finalCame(): void {
    this.#finalAtMs = this.#nowMs();
  }

  /** `lastVoiceMs`: when the customer was last heard. The recorded part of a turn is left out. */
  customerSaid(text: string, lastVoiceMs: number): void {
    const fresh = this.unrecorded(text);
    this.#recorded = text;
    const endMs = this.callMs(lastVoiceMs);
    const startMs = Math.min(this.#speechStartMs ?? endMs, endMs);
    this.#speechStartMs = null;
    if (fresh === "") return;
    this.#recordBrokenOff();
    this.#brain.said({
      speaker: "customer", text: fresh, startMs, endMs, interrupted: false, turn: null, counts: true,
    });
  }

  /** Records pressed keys at the end of the call, when no further ones are waited for. */
  keysPressed(keypad: TimerSettings["keypad"], timers: TimerState): void {
    this.#recordBrokenOff();
    const text = pressedKeys(keypad, timers);
    if (text === null) return;
    this.turnIsOver();
    this.customerSaid(text, timers.digitMs);
  }

  /** The text without the part of the turn that is on record. */
  unrecorded(text: string): string {
    const isMore = this.#recorded !== "" && text.startsWith(this.#recorded);
    return (isMore ? text.slice(this.#recorded.length) : text).trim();
  }

  /** The turn is answered: what the customer says next is new. */
  turnIsOver(): void {
    this.#recorded = "";
  }

  assistantBegan(speech: Said): void {
    this.#begun.set(speech.utterance, { speech, startMs: this.callMs() });
  }

  /** `atMs`: when its first sound is sent; `lineMs`: the line's delay, as far as it is known. */
  assistantHeard(utterance: Utterance, atMs: number, lineMs: number): void {
    const entry = this.#begun.get(utterance);
    if (!entry) return;
    entry.startMs = this.callMs(atMs);
    if (entry.speech.kind === "reply") this.stage("heardMs", atMs + lineMs);
  }

  speechOf(utterance: Utterance): Said | null {
    return this.#begun.get(utterance)?.speech ?? null;
  }

  assistantBrokenOff(speech: Said): void {
    this.#brokenOff = speech;
  }

  /** Called before what is said next (keys: at once), which follows it for the model too. */
  #recordBrokenOff(): void {
    const speech = this.#brokenOff;
    this.#brokenOff = null;
    if (speech) this.assistantSaid(speech, true);
  }

  /** Once per speech, in the words that were played. */
  assistantSaid({ utterance, kind, turn }: Said, wasInterrupted: boolean): void {
    const entry = this.#begun.get(utterance);
    if (!entry) return;
    this.#begun.delete(utterance);
    this.#deltaText = "";
    const text = utterance.heardText();
    if (text === "" && turn === null) return;
    this.#brain.said({
      speaker: "assistant",
      text,
      startMs: entry.startMs,
      endMs: this.callMs(),
      // If only the silence after the last word was cut, nothing is missing.
      interrupted: wasInterrupted && !(utterance.ended && text === utterance.text.trim()),
      turn,
      counts: kind !== "filler",
    });
  }

  customerIsSaying(text: string): void {
    if (text !== "") this.#brain.delta("customer", text);
  }

  assistantIsSaying(utterance: Utterance | null): void {
    const nowMs = this.#nowMs();
    if (!utterance || nowMs - this.#deltaAtMs < DELTA_EVERY_MS) return;
    this.#deltaAtMs = nowMs;
    const text = utterance.heardText();
    if (text === "" || text === this.#deltaText) return;
    this.#deltaText = text;
    this.#brain.delta("assistant", text);
  }

  /** Begins to measure a reply; null: nobody asked for it, so nothing is measured. */
  replyBegins(lastVoiceMs: number | null): void {
    this.#latency = null;
    if (lastVoiceMs === null) return;
    const turn = {
      ...NO_LATENCY,
      atMs: this.callMs(lastVoiceMs), endpointMs: Math.round(this.#nowMs() - lastVoiceMs),
    };
    if (this.#finalAtMs >= lastVoiceMs) {
      turn.finalTranscriptMs = Math.round(this.#finalAtMs - lastVoiceMs);
    }
    this.#latency = { turn, fromMs: lastVoiceMs };
    this.latencies.push(turn);
  }

  /** Drops the measurement: the customer had not finished, so this was no turn. */
  replyIsOff(): void {
    const { turn } = this.#latency ?? {};
    this.#latency = null;
    if (turn && turn.heardMs === null && this.latencies.at(-1) === turn) this.latencies.pop();
  }

  /** Only the first time counts. */
  stage(stage: Stage, atMs = this.#nowMs()): void {
    const latency = this.#latency;
    if (latency?.turn[stage] !== null) return;
    latency.turn[stage] = Math.round(atMs - latency.fromMs);
  }

  /** Milliseconds since the answer. */
  callMs(atMs = this.#nowMs()): number {
    return Math.max(0, Math.round(atMs - this.#answeredAtMs));
  }
}
