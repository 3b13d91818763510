// The live leg to the colleague of a warm transfer: what is said to the colleague, what they say
// and which keys they press, until the two are connected. Made by warm-host.ts for warm-session.ts,
// which decides.
import type {
  NoiseFilter, SynthesisOptions, Synthesizer, Transcriber, TranscriptEvent, Vad,
} from "#providers/speech/port.ts";
import type { Leg, LegEndCause, LegEvent } from "#providers/carriers/port.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { Announcer } from "#features/calls/voice/announcer.ts";
import type { Said, SessionOptions } from "#features/calls/voice/brain.ts";
import { Channel } from "#features/calls/voice/channel.ts";
import type { MediaClock } from "#features/calls/voice/clock.ts";
import { openSpeechInput, type SpeechInput } from "#features/calls/voice/speech-input.ts";
import type { VoiceSettings } from "#features/calls/voice/settings.ts";
import { soundsLikeMachine } from "#features/calls/voice/turns/wording.ts";

export interface SecondLegOptions {
  connect(publish: (event: LegEvent) => void): Leg;
  settings: Pick<VoiceSettings, "language" | "languages" | "hints">
    & { voice: Omit<SynthesisOptions, "rate"> };
  synthesizer: Synthesizer;
  /** Null: nobody understands what the colleague says. */
  transcriber: Transcriber | null;
  vad: Vad;
  noiseFilter: NoiseFilter | null;
  beeps: SessionOptions["beeps"];
  comfort: SessionOptions["comfort"];
  record: SessionOptions["record"];
  clock: MediaClock;
  system: System;
  log: Logger;
}

/** What happens on the leg. Nothing follows `ended`. */
export interface SecondLegHandlers {
  ringing(): void;
  answered(): void;
  /** A beep was heard, or words of an answering machine. */
  machine(): void;
  key(digit: string): void;
  /** A piece of what the colleague says was recognised. */
  words(text: string): void;
  /** On record; times count from the answer of this leg. */
  said(said: Said): void;
  ended(cause: LegEndCause): void;
}

const VOICED = 0.5;
/** How long a voice must last to count as one. */
const CONFIRM_MS = 60;
/** The pause that ends what was said: short, so that a yes waits no longer than it has to. */
const PAUSE_MS = 450;

export class SecondLeg {
  readonly channel: Channel;
  readonly #options: SecondLegOptions;
  readonly #handlers: SecondLegHandlers;
  #announcer: Announcer | null = null;
  #input: SpeechInput | null = null;
  #isConnected = false;
  #voicedMs = 0;
  #unvoicedMs = 0;
  #isTalking = false;
  #lastVoiceMs = 0;

  constructor(options: SecondLegOptions, handlers: SecondLegHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    const { clock, comfort, connect, record, system, beeps } = options;
    this.channel = new Channel({
      ambience: null, beeps, clock, comfort, connect, record, system,
      brain: {
        ringing: () => handlers.ringing(),
        said: (said) => handlers.said(said),
        over: ({ cause }) => handlers.ended(cause ?? "we_hung_up"),
        ...NO_TURNS,
      },
    }, {
      answered: () => this.#answered(),
      audio: (pcm) => this.#input?.write(pcm),
      mayBeMachine: () => !this.#isConnected,
      beep: () => handlers.machine(),
      dtmf: (digit) => handlers.key(digit),
      answeredBy: (by) => by === "machine" && !this.#isConnected && handlers.machine(),
      held: () => undefined,
      transferFailed: () => undefined,
      frame: () => undefined,
      playedOut: () => undefined,
      ended: () => this.#ended(),
    });
  }

  /** Says the text to the colleague, in place of what is being said to them. */
  say(text: string, then: () => void): void {
    if (this.#announcer) this.#announcer.say(text, then);
  }

  /** The colleague hears the caller from now on, and nothing else is said to them. */
  connected(): void {
    this.#isConnected = true;
    this.#announcer?.hush();
  }

  #answered(): void {
    const { log, settings, synthesizer } = this.#options;
    this.#announcer = new Announcer({ channel: this.channel, synthesizer, voice: settings.voice });
    this.#lastVoiceMs = this.channel.nowMs();
    try {
      this.#input = this.#openInput();
    } catch (error) {
      // The colleague can still answer by keys.
      log.warn({ err: error }, "could not start speech recognition for a colleague");
    }
    this.#handlers.answered();
  }

  #openInput(): SpeechInput | null {
    const { settings, transcriber, vad, noiseFilter } = this.#options;
    if (!transcriber) return null;
    const { language, languages, hints } = settings;
    return openSpeechInput({
      rate: this.channel.rate, language, languages, hints, transcriber, vad, noiseFilter,
      turnEnds: null,
      onTranscript: (event) => this.#recognised(event),
      onVoice: ({ probability, frameMs, quietMs }) =>
        this.#heard(probability >= VOICED, frameMs, quietMs),
    });
  }

  #heard(isVoice: boolean, frameMs: number, quietMs: number): void {
    if (isVoice) {
      this.#voicedMs += frameMs;
      this.#unvoicedMs = 0;
      if (this.#voicedMs < CONFIRM_MS) return;
      if (!this.#isTalking) this.channel.scribe?.customerBegan();
      this.#isTalking = true;
      this.#lastVoiceMs = this.channel.nowMs() - quietMs;
      return;
    }
    this.#unvoicedMs += frameMs;
    if (this.#unvoicedMs < PAUSE_MS) return;
    this.#voicedMs = 0;
    if (!this.#isTalking) return;
    this.#isTalking = false;
    this.#input?.finalize();
  }

  #recognised(event: TranscriptEvent): void {
    if (this.channel.isOver) return;
    switch (event.kind) {
      case "partial":
        return void this.#soundsLikeMachine(event.text);
      case "final":
        if (event.text.trim() === "" || this.#soundsLikeMachine(event.text)) return;
        this.channel.scribe?.customerSaid(event.text, this.#lastVoiceMs);
        this.channel.scribe?.turnIsOver();
        return this.#handlers.words(event.text);
      case "end_of_turn":
      case "end_of_turn_likely":
      case "replaced":
        return;
      case "failed":
        this.#options.log.warn({ err: event.error }, "speech recognition of a colleague has failed");
    }
  }

  #soundsLikeMachine(text: string): boolean {
    // Our own question may come back as an echo.
    const isMachine = !this.#isConnected && soundsLikeMachine(text.replaceAll(/press (one|1)/gi, ""));
    if (isMachine) this.#handlers.machine();
    return isMachine;
  }

  #ended(): void {
    this.#announcer?.close();
    this.#input?.close();
  }
}

/** Nobody takes turns on this leg. */
const nothing = (): void => undefined;
const NO_TURNS = {
  ending: (_reason: unknown, then: () => void) => then(),
  answered: nothing, answeredBy: nothing, reply: nothing, goAhead: nothing, reengage: nothing,
  speakUp: nothing, cancel: nothing, functionCall: nothing, delta: nothing, state: nothing,
};
