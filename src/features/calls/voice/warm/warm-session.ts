// One warm transfer while it lasts, in the media thread: carries out what warm-transfer.ts decides
// with the session of the caller and the leg of the colleague. Made by warm-host.ts.
import { createHoldMusic } from "#audio/hold-music.ts";
import type { System, Timer } from "#core/system.ts";
import type { EndReason } from "#features/calls/records/records.ts";
import type { TransferOutcome, WarmStage } from "#features/calls/records/warm-stages.ts";
import type { SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";
import { Announcer } from "#features/calls/voice/announcer.ts";
import type { CallSession, Said } from "#features/calls/voice/brain.ts";
import { bridge } from "./bridge.ts";
import type { MediaClock } from "#features/calls/voice/clock.ts";
import { takesCall } from "./colleague-answer.ts";
import type { SecondLeg, SecondLegHandlers } from "./second-leg.ts";
import {
  beginWarm, reduceWarm, type WarmAction, type WarmEvent, type WarmSettings,
} from "./warm-transfer.ts";

interface WarmTexts {
  /** Said to the caller before they are put on hold. */
  hold: string;
  /** Said to the colleague first, and the question last; the summary comes between. */
  opening: string;
  question: string;
  /** Said to both. */
  connected: string;
  /** Said to the caller when nobody took the call. */
  notConnected: string;
}

export interface WarmSessionOptions {
  settings: WarmSettings;
  texts: WarmTexts;
  /** The gain of the music, 1 being its own loudness; null: none is played. */
  musicGain: number | null;
  /** How long the call may last from its answer when nobody took it. */
  afterwardsMs: number;
  /** The reason for ending a talk that has lasted as long as it may. */
  outOfTime: EndReason;
  caller: CallSession;
  synthesizer: Synthesizer;
  voice: Omit<SynthesisOptions, "rate">;
  openLeg(handlers: SecondLegHandlers): SecondLeg;
  onStep(stage: WarmStage, outcome: TransferOutcome | null): void;
  /** Something said on the colleague's leg; times count from the answer of the call. */
  onSaid(said: Said): void;
  clock: MediaClock;
  system: System;
}

export class WarmSession {
  readonly #options: WarmSessionOptions;
  readonly #tick: Timer;
  #state: ReturnType<typeof beginWarm>;
  #announcer: Announcer | null = null;
  #leg: SecondLeg | null = null;
  #summary = "";
  /** When the colleague answered, in milliseconds since the answer of the call. */
  #legAnsweredMs = 0;
  #stopMusic: (() => void) | null = null;
  #disconnect: (() => void) | null = null;

  constructor(options: WarmSessionOptions) {
    this.#options = options;
    this.#state = beginWarm(options.system.monotonicMs());
    this.#tick = options.clock.subscribe(() => this.#feed({ kind: "tick" }));
    options.caller.standAside(() => this.#announce());
  }

  get isOver(): boolean {
    return this.#state.stage === "over";
  }

  /** Empty: there is none. */
  summarised(text: string): void {
    this.#summary = text;
    this.#feed({ kind: "summarised" });
  }

  callerLeft(): void {
    this.#feed({ kind: "caller_left" });
  }

  /** The assistant, or a person, goes on with the caller at once. */
  cancel(): void {
    this.#feed({ kind: "cancelled" });
  }

  #announce(): void {
    const { caller: { channel }, synthesizer, texts, voice } = this.#options;
    this.#announcer = new Announcer({ channel, synthesizer, voice });
    // The assistant may have talked for longer than it was waited for.
    const text = this.#state.stage === "connected" ? texts.connected : texts.hold;
    this.#announcer.say(text, () => this.#feed({ kind: "announced" }));
  }

  #feed(event: WarmEvent): void {
    const { settings, system } = this.#options;
    const { state, actions } = reduceWarm(settings, this.#state, event, system.monotonicMs());
    this.#state = state;
    for (const action of actions) this.#carryOut(action);
    if (this.isOver) this.#close();
  }

  #carryOut(action: WarmAction): void {
    const { caller, texts, outOfTime } = this.#options;
    switch (action.kind) {
      case "stage":
        return this.#options.onStep(action.stage, action.outcome);
      case "music":
        return this.#playMusic(action.on);
      case "dial":
        return this.#dial();
      case "say":
        return this.#leg?.say(
          { opening: texts.opening, summary: this.#summary, question: texts.question }[action.what],
          () => this.#feed({ kind: "spoken" }));
      case "connect":
        return this.#connect();
      case "hang_up_leg":
        return this.#leg?.channel.hangUp("transferred");
      case "resume":
        caller.comeBack(this.#options.afterwardsMs);
        if (action.says) caller.say(texts.notConnected);
        return;
      case "end_call":
        return caller.channel.hangUp(action.isOutOfTime ? outOfTime : "transferred");
    }
  }

  #playMusic(isOn: boolean): void {
    this.#stopMusic?.();
    this.#stopMusic = null;
    const { musicGain: gain, caller: { channel } } = this.#options;
    if (!isOn || gain === null) return;
    this.#stopMusic = channel.join({ gain, next: createHoldMusic(channel.rate).next });
  }

  #dial(): void {
    this.#leg = this.#options.openLeg({
      ringing: () => this.#feed({ kind: "ringing" }),
      answered: () => {
        this.#legAnsweredMs = this.#options.caller.channel.callMs();
        this.#feed({ kind: "answered" });
      },
      machine: () => this.#feed({ kind: "machine" }),
      key: (digit) => this.#feed({ kind: "key", digit }),
      words: (text) => {
        const takes = takesCall(text);
        if (takes !== null) this.#feed({ kind: "answer", takes });
      },
      said: (said) => this.#options.onSaid({
        ...said,
        startMs: said.startMs + this.#legAnsweredMs, endMs: said.endMs + this.#legAnsweredMs,
      }),
      ended: (cause) => this.#feed({ kind: "leg_ended", cause }),
    });
  }

  #connect(): void {
    const leg = this.#leg;
    if (!leg) return;
    const { caller, texts } = this.#options;
    leg.connected();
    this.#disconnect = bridge(caller.channel, leg.channel);
    // Said on the caller's channel, it is heard by both.
    this.#announcer?.say(texts.connected, () => undefined);
  }

  /** Idempotent. */
  #close(): void {
    this.#tick.cancel();
    this.#disconnect?.();
    this.#announcer?.close();
  }
}
