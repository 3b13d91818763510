// One call while it lasts: joins the leg, the ears, the turn taker, the speech and the mixer. Runs
// in the media thread; what thinks (models, tools, records) is behind the `Brain` port and answers
// through the session's methods. Made by host.ts.
import type { Timer } from "#core/system.ts";
import type { Leg, LegEndCause, LegEvent } from "#providers/carriers/port.ts";
import type {
  Pcm, Synthesizer, Transcriber, TranscriptEvent,
} from "#providers/speech/port.ts";
import type { EndReason } from "#features/calls/records.ts";
import type { CallSession, SessionOptions, Successor, VoiceState } from "./brain.ts";
import { createEars, type Ears } from "./ears.ts";
import { reasonOf } from "./end-reason.ts";
import { CLEARED_WAIT_MS, Mixer } from "./mixer.ts";
import { Scribe } from "./scribe.ts";
import { goodbyeOf, type VoiceSettings } from "./settings.ts";
import { FAILURES_MAX, Speech, type SpeechKind } from "./speech.ts";
import type { TurnAction, TurnEvent, TurnSettings, TurnState } from "./turn-events.ts";
import { reduceTurn, START } from "./turn-taker.ts";
import type { Utterance } from "./utterance.ts";
import type { FillerTone } from "./wording.ts";

const SAYS_MAX = 20;

export class VoiceSession implements CallSession {
  readonly #options: SessionOptions;
  #settings: VoiceSettings;
  #synthesizer: Synthesizer;
  #transcriber: Transcriber;
  #turnSettings: TurnSettings;
  readonly #leg: Leg;
  readonly #mixer: Mixer;
  #ears: Ears | null = null;
  #beeps: { push(pcm: Pcm): void } | null = null;
  #tick: Timer | null = null;
  #state: TurnState = START;
  #over = false;
  /** Null until the call is answered. */
  #scribe: Scribe<Speech> | null = null;
  #turn = 0;
  /** What is being said or about to be; a filler has its own place. */
  #speech: Speech | null = null;
  #filler: Speech | null = null;
  #says: string[] = [];
  #heardLanguage: string | null = null;
  #transferTo: string | null = null;
  #failures = 0;
  #fillerNumber = 0;
  #clearSinceMs: number | null = null;
  #told: VoiceState | null = null;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#synthesizer = options.synthesizer;
    this.#transcriber = options.transcriber;
    this.#turnSettings = this.#turnSettingsOf(options.settings);
    this.#leg = options.connect((event) => this.#legEvent(event));
    this.#mixer = new Mixer({
      leg: this.#leg,
      ambience: options.ambience,
      record: options.record,
      onHeard: (utterance) => this.#scribe?.assistantHeard(utterance),
      onPlayedOut: (utterance) => this.#playedOut(utterance),
    });
  }

  #turnSettingsOf(settings: VoiceSettings): TurnSettings {
    const { durationMaxMs, greeting } = this.#options;
    return {
      ...settings,
      maxDurationMs: Math.min(settings.maxDurationMs, durationMaxMs),
      durationReason: durationMaxMs < settings.maxDurationMs ? "balance" : "max_duration",
      hasFillers: settings.fillers !== null,
      hasGreeting: greeting.trim() !== "",
      detectsTurns: this.#transcriber.detectsTurns,
    };
  }

  // What the brain answers

  replyText(turn: number, text: string): void {
    if (this.#over || turn !== this.#turn || this.#speech?.turn !== turn) return;
    this.#scribe?.stage("firstTokenMs");
    this.#speech.write(text);
  }

  replyEnd(turn: number, failed: boolean): void {
    if (this.#over || turn !== this.#turn || this.#speech?.turn !== turn) return;
    this.#failures = failed ? this.#failures + 1 : 0;
    if (failed && this.#failures >= FAILURES_MAX) {
      this.#speech.write(this.#settings.phrases.sorry);
      this.#feed({ kind: "end_after_speech", reason: "speech_failed" });
    } else if (failed && !this.#speech.utterance.hasAudio) {
      this.#speech.write(this.#settings.phrases.again);
    }
    this.#speech.end();
  }

  functionRunning(running: boolean): void {
    if (!this.#over) this.#feed({ kind: "function", running });
  }

  say(text: string): boolean {
    if (this.#over || this.#scribe === null || this.#says.length >= SAYS_MAX) return false;
    this.#says.push(text);
    this.#sayNext();
    return true;
  }

  mute(on: boolean): void {
    this.#mixer.muted = on;
  }

  listen(tap: ((customer: Pcm, assistant: Pcm) => void) | null): void {
    this.#mixer.tap = tap;
  }

  sendDtmf(digits: string): void {
    if (!this.#over) this.#leg.sendDtmf(digits);
  }

  endAfterSpeech(reason: EndReason, to: string | null = null): void {
    this.#transferTo = to;
    if (!this.#over) this.#feed({ kind: "end_after_speech", reason });
  }

  hangUp(reason: EndReason): void {
    if (this.#over) return;
    this.#end(reason, null);
    this.#leg.hangUp();
  }

  become({ settings, greeting, synthesizer, transcriber }: Successor): void {
    if (this.#over) return;
    const hasOtherEars = settings.language !== this.#settings.language
      || (transcriber !== null && transcriber !== this.#transcriber);
    this.#settings = settings;
    this.#synthesizer = synthesizer ?? this.#synthesizer;
    this.#transcriber = transcriber ?? this.#transcriber;
    this.#turnSettings = this.#turnSettingsOf(settings);
    if (hasOtherEars && this.#ears) {
      this.#ears.close();
      this.#ears = this.#openEars();
    }
    if (greeting.trim() !== "") this.say(greeting);
  }

  // What the leg says

  #legEvent(event: LegEvent): void {
    if (this.#over) return;
    switch (event.kind) {
      case "ringing":
        return this.#options.brain.ringing();
      case "answered":
        return this.#answered();
      case "audio":
        if (!this.#scribe) return;
        this.#mixer.hear(event.pcm);
        // A beep means something once the other end may be a machine.
        if (this.#state.listener !== "human") this.#beeps?.push(event.pcm);
        this.#ears?.hear(event.pcm);
        return;
      case "dtmf":
        return this.#feed({ kind: "dtmf", digit: event.digit });
      case "words":
        return;
      case "cleared":
        this.#clearSinceMs = null;
        return this.#mixer.cleared(event.droppedMs);
      case "answered_by":
        return this.#feed(event);
      case "transfer_failed":
        this.#feed(event);
        return void this.say(this.#settings.phrases.notConnected);
      case "ended":
        return this.#end(reasonOf(event.cause), event.cause);
    }
  }

  #answered(): void {
    if (this.#scribe) return;
    const { options, leg } = { options: this.#options, leg: this.#leg };
    this.#scribe = new Scribe(options.brain, () => this.#nowMs());
    this.#ears = this.#openEars();
    this.#beeps = options.beeps?.(leg.rate, () => this.#feed({ kind: "beep" })) ?? null;
    this.#tick = options.clock.subscribe((dropped) => this.#everyFrame(dropped));
    options.brain.answered();
    this.#feed({ kind: "answered" });
  }

  #openEars(): Ears {
    const { vad, noiseFilter } = this.#options;
    const { language, languages, hints } = this.#settings;
    return createEars({
      rate: this.#leg.rate, language, languages, hints, vad, noiseFilter,
      transcriber: this.#transcriber,
      tell: (event) => this.#recognised(event),
      tellVoice: (probability, frameMs) => {
        if (!this.#over) this.#feed({ kind: "voice", probability, frameMs });
      },
    });
  }

  #recognised(event: TranscriptEvent): void {
    if (this.#over) return;
    switch (event.kind) {
      case "partial":
        this.#feed(event);
        return this.#scribe?.customerIsSaying(this.#saying());
      case "final":
        this.#scribe?.finalCame();
        this.#heardLanguage = event.language ?? this.#heardLanguage;
        this.#feed({ kind: "final", text: event.text });
        return this.#scribe?.customerIsSaying(this.#saying());
      case "end_of_turn":
        return this.#feed({ kind: "end_of_turn" });
      case "failed":
        this.#options.log.warn({ err: event.error }, "speech recognition failed");
        return this.hangUp("speech_failed");
    }
  }

  #everyFrame(dropped: number): void {
    this.#mixer.tick(dropped);
    if (this.#clearSinceMs !== null && this.#nowMs() - this.#clearSinceMs >= CLEARED_WAIT_MS) {
      this.#clearSinceMs = null;
      this.#mixer.cleared(0);
    }
    this.#feed({ kind: "tick" });
    this.#scribe?.assistantIsSaying(this.#mixer.speaking);
  }

  // What the turn taker decides

  #feed(event: TurnEvent): void {
    if (this.#over) return;
    const before = this.#state;
    const { state, actions } = reduceTurn(this.#turnSettings, before, event, this.#nowMs());
    this.#state = state;
    if (state.isTalking && !before.isTalking) this.#scribe?.customerBegan();
    for (const action of actions) {
      if (!this.#over) this.#carryOut(action);
    }
    if (!this.#over) this.#tellState();
  }

  #carryOut(action: TurnAction): void {
    const { brain, greeting } = this.#options;
    const settings = this.#settings;
    switch (action.kind) {
      case "greet":
        return this.#sayWhole("greeting", greeting);
      case "finalize":
        return this.#ears?.finalize();
      case "reply":
        return this.#reply(action.text);
      case "cancel_reply":
        return this.#cancelReply();
      case "pause":
        return this.#hold(() => undefined);
      case "resume":
        return this.#mixer.resume();
      case "interrupt":
        return this.#interrupt();
      case "note":
        return this.#scribe?.customerSaid(action.text, this.#state.lastVoiceMs);
      case "filler":
        return this.#playFiller(action.tone);
      case "reengage":
        this.#beginReply(null);
        return brain.reengage(this.#turn);
      case "leave_message":
        return this.#sayWhole("note", settings.voicemail.message ?? "");
      case "say_goodbye":
        return this.#sayWhole("note", goodbyeOf(settings.phrases, action.reason));
      case "answered_by":
        return brain.answeredBy(action.by);
      case "hang_up":
        if (action.reason === "transferred" && this.#transferTo !== null && this.#leg.transfer) {
          return this.#leg.transfer(this.#transferTo);
        }
        return this.hangUp(action.reason);
    }
  }

  #reply(text: string): void {
    this.#scribe?.customerSaid(text, this.#state.lastVoiceMs);
    this.#beginReply(this.#state.lastVoiceMs);
    this.#options.brain.reply(this.#turn, text, this.#heardLanguage);
    this.#heardLanguage = null;
  }

  #beginReply(lastVoiceMs: number | null): void {
    this.#turn += 1;
    this.#scribe?.replyBegins(lastVoiceMs);
    this.#speech = this.#newSpeech("reply", this.#turn);
  }

  #sayWhole(kind: SpeechKind, text: string): void {
    const speech = this.#newSpeech(kind, null);
    this.#speech = speech;
    speech.write(text);
    speech.end();
  }

  #newSpeech(kind: SpeechKind, turn: number | null): Speech {
    const { log } = this.#options;
    const speech: Speech = new Speech({
      kind,
      turn,
      rate: this.#leg.rate,
      voice: () => ({
        synthesizer: this.#synthesizer, options: { ...this.#settings.voice, rate: this.#leg.rate },
      }),
      handlers: {
        onAudio: () => this.#audioStarted(speech),
        onComplete: (isEmpty) => {
          if (isEmpty && speech === this.#speech) this.#feed({ kind: "reply_empty" });
        },
        onFailed: (error) => {
          log.warn({ err: error }, "speech synthesis failed");
          if (speech !== this.#speech) return;
          this.#failures += 1;
          if (this.#failures >= FAILURES_MAX) this.hangUp("speech_failed");
          else if (!speech.utterance.hasAudio) this.#feed({ kind: "reply_empty" });
        },
      },
    });
    return speech;
  }

  #audioStarted(speech: Speech): void {
    if (this.#over) return;
    const isFiller = speech === this.#filler;
    if (speech !== this.#speech && !isFiller) return;
    if (isFiller && this.#state.phase !== "thinking") return;
    if (!isFiller) {
      this.#dropFiller();
      this.#scribe?.stage("firstAudioMs");
      this.#scribe?.turnIsOver();
    }
    this.#scribe?.assistantBegan(speech);
    this.#mixer.play(speech.utterance);
    if (!isFiller) this.#feed({ kind: "audio_started" });
  }

  #playedOut(utterance: Utterance): void {
    const speech = this.#scribe?.speechOf(utterance);
    if (!speech) return;
    this.#scribe?.assistantSaid(speech, false);
    if (speech === this.#filler) return;
    if (speech === this.#speech) this.#speech = null;
    this.#feed({ kind: "played_out" });
    this.#sayNext();
  }

  #cancelReply(): void {
    const speech = this.#speech;
    this.#speech = null;
    this.#dropFiller();
    speech?.cancel();
    if (speech && speech.turn !== null) this.#options.brain.cancel(speech.turn);
  }

  #interrupt(): void {
    const speech = this.#speech;
    this.#dropFiller();
    if (!speech) return;
    this.#speech = null;
    speech.cancel();
    if (speech.turn !== null) this.#options.brain.cancel(speech.turn);
    this.#hold(() => {
      this.#mixer.drop(speech.utterance);
      this.#scribe?.assistantSaid(speech, true);
    });
  }

  #hold(then: () => void): void {
    if (!this.#mixer.awaitsCleared) this.#clearSinceMs = this.#nowMs();
    this.#mixer.hold(then);
  }

  #playFiller(tone: FillerTone): void {
    const { fillers } = this.#settings;
    const phrases = fillers?.[tone]?.length ? fillers[tone] : fillers?.neutral ?? [];
    const phrase = phrases[this.#fillerNumber % phrases.length];
    if (phrase === undefined) return;
    this.#fillerNumber += 1;
    this.#filler = this.#newSpeech("filler", null);
    this.#filler.write(phrase);
    this.#filler.end();
  }

  #dropFiller(): void {
    const filler = this.#filler;
    this.#filler = null;
    if (!filler) return;
    filler.cancel();
    this.#mixer.drop(filler.utterance);
    if (filler.utterance.wasHeard) this.#scribe?.assistantSaid(filler, true);
  }

  #sayNext(): void {
    if (this.#over || this.#speech !== null || this.#says.length === 0) return;
    if (this.#state.phase !== "listening" && this.#state.phase !== "waiting") return;
    const text = this.#says.shift() ?? "";
    this.#feed({ kind: "saying" });
    this.#sayWhole("note", text);
  }

  /** The customer's words that are not answered yet. */
  #saying(): string {
    return `${this.#state.finals} ${this.#state.partial}`.trim();
  }

  #tellState(): void {
    const { phase, isPaused } = this.#state;
    const state: VoiceState = phase === "speaking" && !isPaused
      ? "speaking"
      : phase === "thinking" ? "thinking" : "listening";
    if (state === this.#told || phase === "dialling") return;
    this.#told = state;
    this.#options.brain.state(state);
  }

  #nowMs(): number {
    return this.#options.system.monotonicMs();
  }

  #end(reason: EndReason, cause: LegEndCause | null): void {
    if (this.#over) return;
    const unanswered = this.#saying();
    const speech = this.#speech;
    this.#dropFiller();
    if (speech) this.#scribe?.assistantSaid(speech, true);
    if (unanswered !== "") this.#scribe?.customerSaid(unanswered, this.#state.lastVoiceMs);
    this.#over = true;
    speech?.cancel();
    this.#tick?.cancel();
    this.#ears?.close();
    this.#options.brain.over({ reason, cause, turns: this.#scribe?.latencies ?? [] });
  }
}
