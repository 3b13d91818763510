// The connection of one live call, whatever takes its turns: the leg, what is played over it, the
// frames of the clock, the transcript, and the end. Each kind of session holds one and decides
// everything else (voice-session.ts, realtime-session.ts).
import type { Timer } from "#core/system.ts";
import { FRAME_MS, type Leg, type LegEvent } from "#providers/carriers/port.ts";
import type { Pcm } from "#providers/speech/port.ts";
import type { AnsweredBy, EndReason } from "#features/calls/records/records.ts";
import type { SessionOptions, VoiceState } from "./brain.ts";
import { reasonOf } from "./end-reason.ts";
import { CLEARED_WAIT_MS, Mixer } from "./mixer.ts";
import { Scribe, type Spoken } from "./scribe.ts";
import type { Utterance } from "./utterance.ts";
import type { Voice } from "./voices.ts";

type ChannelOptions = Pick<
  SessionOptions,
  "ambience" | "beeps" | "brain" | "clock" | "comfort" | "connect" | "record" | "system"
>;

/** What happens on the channel, for the session. Nothing follows `ended` but `lastWords`. */
interface ChannelHandlers {
  /** The transcript has begun; frames and audio follow. */
  answered(): void;
  /** Audio of the customer, any number of samples. */
  audio(pcm: Pcm): void;
  /** Whether a machine may have answered, so that beeps have to be listened for. */
  mayBeMachine(): boolean;
  beep(): void;
  dtmf(digit: string): void;
  answeredBy(by: AnsweredBy): void;
  /** The customer has put the call on hold, or resumed it. */
  held(isHeld: boolean): void;
  transferFailed(): void;
  /** The frame of this tick has been sent. */
  frame(): void;
  playedOut(utterance: Utterance): void;
  /** The assistant is silent from now on; without `lastWords` this closes all engines. */
  ended(): void;
  /** After `ended`: `then` is called, at once or soon, when the customer's last words are known. */
  lastWords?(reason: EndReason, then: () => void): void;
}

export class Channel<Said extends Spoken = Spoken> {
  readonly mixer: Mixer;
  readonly #options: ChannelOptions;
  readonly #handlers: ChannelHandlers;
  readonly #leg: Leg;
  #scribe: Scribe<Said> | null = null;
  #beeps: { push(pcm: Pcm): void } | null = null;
  #tick: Timer | null = null;
  #isOver = false;
  /** The carrier was asked to transfer the call, and has not reported the outcome. */
  #isTransferring = false;
  /** When the carrier was asked what it dropped; null: no answer is due. */
  #clearSinceMs: number | null = null;
  #state: VoiceState | null = null;

  constructor(options: ChannelOptions, handlers: ChannelHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#leg = options.connect((event) => this.#receive(event));
    this.mixer = new Mixer({
      leg: this.#leg,
      ambience: options.ambience,
      comfort: options.comfort,
      record: options.record,
      onHeard: (utterance, intoFrameMs) =>
        this.#scribe?.assistantHeard(
          utterance, this.nowMs() + intoFrameMs, this.#waitedMs()),
      onPlayedOut: (utterance) => handlers.playedOut(utterance),
    });
  }

  get rate(): Leg["rate"] {
    return this.#leg.rate;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Null until the call is answered. */
  get scribe(): Scribe<Said> | null {
    return this.#scribe;
  }

  nowMs(): number {
    return this.#options.system.monotonicMs();
  }

  /** Milliseconds since the answer. */
  callMs(): number {
    return this.#scribe?.callMs() ?? 0;
  }

  mute(on: boolean): void {
    this.mixer.muted = on;
  }

  /** `tap` receives both sides of every frame; null: nobody listens any more. */
  listen(tap: Mixer["tap"]): void {
    this.mixer.tap = tap;
  }

  /** Adds a voice that speaks and hears beside the assistant, until the result is called. */
  join(voice: Voice): () => void {
    return this.mixer.voices.join(voice);
  }

  sendDtmf(digits: string): void {
    if (!this.#isOver) this.#leg.sendDtmf(digits);
  }

  /** Stops what is played; `then` runs when it is known how much of it was heard. */
  hold(then: () => void): void {
    if (!this.mixer.awaitsCleared) this.#clearSinceMs = this.nowMs();
    this.mixer.hold(then);
  }

  /** Publishes every change once, however often it is called. */
  publishState(state: VoiceState): void {
    if (this.#isOver || state === this.#state) return;
    this.#state = state;
    this.#options.brain.state(state);
  }

  /** Transfers the call to that number, once, if the carrier can; else ends it. */
  leave(reason: EndReason, to: string | null): void {
    if (this.#isOver) return;
    if (to === null || !this.#leg.transfer) return this.hangUp(reason);
    if (this.#isTransferring) return;
    this.#isTransferring = true;
    this.#leg.transfer(to);
  }

  hangUp(reason: EndReason): void {
    if (this.#isOver) return;
    this.#end(reason);
    this.#leg.hangUp();
  }

  /**
   * How late the customer's sound is heard here: the delay of the line, less the length of a
   * packet, because the times of a turn count from the end of the packet.
   */
  #waitedMs(): number {
    const delayMs = this.#leg.quality?.()?.delayMs ?? 0;
    return Math.max(0, delayMs - FRAME_MS);
  }

  #receive(event: LegEvent): void {
    if (this.#isOver) return;
    switch (event.kind) {
      case "ringing":
        return this.#options.brain.ringing();
      case "answered":
        return this.#answered();
      case "audio":
        return this.#receiveAudio(event.pcm);
      case "dtmf":
        return this.#handlers.dtmf(event.digit);
      case "words":
      case "sound":
        return;
      case "cleared":
        return this.#cleared(event.droppedMs);
      case "answered_by":
        return this.#handlers.answeredBy(event.by);
      case "held":
        this.mixer.onHold(event.isHeld);
        return this.#handlers.held(event.isHeld);
      case "transfer_failed":
        this.#isTransferring = false;
        return this.#handlers.transferFailed();
      case "ended":
        return this.#end(reasonOf(event.cause), event);
    }
  }

  #answered(): void {
    if (this.#scribe) return;
    const { beeps, brain, clock } = this.#options;
    this.#scribe = new Scribe(brain, () => this.nowMs());
    this.#beeps = beeps?.(this.#leg.rate, () => {
      if (!this.#isOver) this.#handlers.beep();
    }) ?? null;
    this.#tick = clock.subscribe((dropped) => this.#frame(dropped));
    brain.answered();
    if (!this.#isOver) this.#handlers.answered();
  }

  #receiveAudio(pcm: Pcm): void {
    if (!this.#scribe) return;
    this.mixer.receiveAudio(pcm);
    if (this.#handlers.mayBeMachine()) this.#beeps?.push(pcm);
    this.#handlers.audio(pcm);
  }

  #cleared(droppedMs: number): void {
    this.#clearSinceMs = null;
    this.mixer.cleared(droppedMs);
  }

  #frame(dropped: number): void {
    this.mixer.tick(dropped);
    if (this.#isOver) return;
    const sinceMs = this.#clearSinceMs;
    if (sinceMs !== null && this.nowMs() - sinceMs >= CLEARED_WAIT_MS) this.#cleared(0);
    this.#handlers.frame();
    if (!this.#isOver) this.#scribe?.assistantIsSaying(this.mixer.speaking);
  }

  #end(reason: EndReason, leg?: Extract<LegEvent, { kind: "ended" }>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tick?.cancel();
    const atMs = this.nowMs();
    const quality = this.#scribe ? this.#leg.quality?.() ?? null : null;
    let waitsFor = 2;
    const over = (): void => {
      waitsFor -= 1;
      if (waitsFor > 0) return;
      const silentMs = (leg?.silentMs ?? 0) + this.nowMs() - atMs;
      this.#options.brain.over({
        reason, cause: leg?.cause ?? null, turns: this.#scribe?.latencies ?? [], quality,
        ...(silentMs === 0 ? {} : { silentMs }),
      });
    };
    this.#handlers.ended();
    this.#options.brain.ending(reason, over);
    if (this.#handlers.lastWords) this.#handlers.lastWords(reason, over);
    else over();
  }
}
