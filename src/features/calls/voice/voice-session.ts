// One call in pipeline mode: joins the channel, the speech input, the turn taker and the speech.
// Runs in the media thread; what thinks (models, functions, records) is behind the `Brain` port
// and answers through the session's methods. Made by host.ts.
import type { Synthesizer, Transcriber, TranscriptEvent } from "#providers/speech/port.ts";
import type { EndReason } from "#features/calls/records/records.ts";
import type { CallSession, SessionOptions, Successor } from "./brain.ts";
import { Channel } from "./channel.ts";
import { TimeBounds } from "./turns/call-timers.ts";
import { awaitLastWords } from "./last-words.ts";
import { goodbyeOf, type VoiceSettings } from "./settings.ts";
import { FAILURES_MAX, SAYS_MAX, Speech, type SpeechKind } from "./speech.ts";
import { openSpeechInput, type SpeechInput } from "./speech-input.ts";
import type { PersonEvent } from "./turns/taking-part.ts";
import { isFree } from "./turns/turn-draft.ts";
import type { TurnAction, TurnEvent, TurnSettings, TurnState } from "./turns/turn-events.ts";
import { reduceTurn, START } from "./turns/turn-taker.ts";
import type { Utterance } from "./utterance.ts";
import type { FillerTone } from "./turns/wording.ts";

export class VoiceSession implements CallSession {
  readonly channel: Channel<Speech>;
  readonly #options: SessionOptions;
  #settings: VoiceSettings;
  #synthesizer: Synthesizer;
  #transcriber: Transcriber;
  #detectsTurns: boolean;
  #turnSettings: TurnSettings;
  readonly #bounds: TimeBounds;
  #onAside: () => void = () => undefined;
  /** Null until the call is answered. */
  #input: SpeechInput | null = null;
  #state: TurnState = START;
  #turn = 0;
  /** What is being said or about to be said; a filler has its own field. */
  #speech: Speech | null = null;
  #filler: Speech | null = null;
  /** The reply that was requested early and may not be heard yet. */
  #prepared: Speech | null = null;
  #says: string[] = [];
  #heardLanguage: string | null = null;
  #transferTo: string | null = null;
  #failures = 0;
  #fillerNumber = 0;
  /** What the recogniser reports once the call is over. */
  #onLastWords: (event: TranscriptEvent) => void = () => undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#synthesizer = options.synthesizer;
    this.#transcriber = options.transcriber;
    this.#detectsTurns = this.#transcriber.detectsTurns;
    this.#bounds = new TimeBounds(options.durationMaxMs);
    this.#turnSettings = this.#turnSettingsOf(options.settings);
    this.channel = new Channel<Speech>(options, {
      answered: () => this.#answered(),
      audio: (pcm) => this.#input?.write(pcm),
      mayBeMachine: () => this.#state.listener !== "human",
      beep: () => this.#feed({ kind: "beep" }),
      dtmf: (digit) => this.#feed({ kind: "dtmf", digit }),
      answeredBy: (by) => this.#feed({ kind: "answered_by", by }),
      held: (isHeld) => this.#feed({ kind: "held", isHeld }),
      transferFailed: () => {
        this.#feed({ kind: "transfer_failed" });
        this.say(this.#settings.phrases.notConnected);
      },
      frame: () => this.#feed({ kind: "tick" }),
      playedOut: (utterance) => this.#playedOut(utterance),
      ended: () => this.#ended(),
      lastWords: (reason, then) => {
        awaitLastWords({
          reason, then, scribe: this.channel.scribe, input: this.#input, state: this.#state,
          settings: this.#turnSettings, system: options.system,
          listen: (receive) => (this.#onLastWords = receive),
        });
      },
    });
    // Synthesized now, a fixed greeting is in the cache when somebody answers.
    if (options.settings.greetsAlike) this.#newSpeech("greeting").writeWhole(options.greeting);
  }

  #turnSettingsOf(settings: VoiceSettings): TurnSettings {
    return {
      ...settings, ...this.#bounds.of(settings),
      hasFillers: settings.fillers !== null,
      hasGreeting: this.#options.greeting.trim() !== "",
      detectsTurns: this.#detectsTurns,
      wordsAreTold: this.#transcriber.wordsAreTold ?? false,
      judgesEnds: this.#options.turnEnds !== null,
    };
  }

  // What the brain answers

  replyText(turn: number, text: string): void {
    if (this.channel.isOver || turn !== this.#turn) return;
    if (this.#prepared?.turn === turn) return this.#prepared.write(text);
    if (this.#speech?.turn !== turn) return;
    this.channel.scribe?.stage("firstTokenMs");
    this.#speech.write(text);
  }

  replyEnd(turn: number, failed: boolean): void {
    if (this.channel.isOver || turn !== this.#turn) return;
    // A prepared reply that failed is requested again once the turn is over.
    if (this.#prepared?.turn === turn) return failed ? this.#discard() : this.#prepared.end();
    if (this.#speech?.turn !== turn) return;
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
    if (!this.channel.isOver) this.#feed({ kind: "function", running });
  }

  say(text: string): boolean {
    const { isOver, scribe } = this.channel;
    if (isOver || scribe === null || this.#says.length >= SAYS_MAX) return false;
    this.#says.push(text);
    this.#sayNext();
    return true;
  }

  takePart(event: PersonEvent): void {
    if (event.kind === "person_joined" && event.isAlone) this.#says = [];
    this.#feed(event);
  }

  standAside(then: () => void): void {
    this.#onAside = then;
    this.#feed({ kind: "stand_aside" });
  }

  comeBack(durationMaxMs: number): void {
    this.#bounds.comeBack(this.channel.nowMs(), durationMaxMs);
    this.#turnSettings = this.#turnSettingsOf(this.#settings);
    this.#feed({ kind: "come_back" });
  }

  endAfterSpeech(reason: EndReason, to: string | null = null): void {
    this.#transferTo = to ?? this.#transferTo;
    if (!this.channel.isOver) this.#feed({ kind: "end_after_speech", reason });
  }

  become({ settings, greeting, synthesizer, transcriber }: Successor): void {
    if (this.channel.isOver) return;
    const hasOtherInput = settings.language !== this.#settings.language
      || (transcriber !== null && transcriber !== this.#transcriber);
    this.#settings = settings;
    this.#synthesizer = synthesizer ?? this.#synthesizer;
    this.#transcriber = transcriber ?? this.#transcriber;
    if (hasOtherInput) this.#detectsTurns = this.#transcriber.detectsTurns;
    this.#turnSettings = this.#turnSettingsOf(settings);
    if (hasOtherInput && this.#input) {
      this.#input.close();
      this.#input = this.#openInput();
    }
    if (greeting.trim() !== "") this.say(greeting);
  }

  // What the customer says

  #answered(): void {
    this.#input = this.#openInput();
    this.#feed({ kind: "answered" });
  }

  #openInput(): SpeechInput {
    const { vad, noiseFilter, turnEnds } = this.#options;
    const { language, languages, hints } = this.#settings;
    return openSpeechInput({
      rate: this.channel.rate, language, languages, hints, vad, noiseFilter, turnEnds,
      transcriber: this.#transcriber,
      onTranscript: (event) => this.#recognised(event),
      onVoice: (frame) => this.#feed({ kind: "voice", ...frame }),
    });
  }

  #recognised(event: TranscriptEvent): void {
    if (this.channel.isOver) return this.#onLastWords(event);
    switch (event.kind) {
      case "partial":
        this.#feed(event);
        return this.channel.scribe?.customerIsSaying(this.#unanswered());
      case "final":
        this.channel.scribe?.finalCame();
        this.#heardLanguage = event.language ?? this.#heardLanguage;
        this.#feed({ kind: "final", text: event.text });
        return this.channel.scribe?.customerIsSaying(this.#unanswered());
      case "end_of_turn":
      case "end_of_turn_likely":
        return this.#feed(event);
      case "replaced":
        this.#detectsTurns = event.detectsTurns;
        return void (this.#turnSettings = this.#turnSettingsOf(this.#settings));
      case "failed":
        this.#options.log.warn({ err: event.error }, "speech recognition failed");
        return this.channel.hangUp("speech_failed");
    }
  }

  // What the turn taker decides

  #feed(event: TurnEvent): void {
    if (this.channel.isOver) return;
    const before = this.#state;
    const { state, actions } = reduceTurn(this.#turnSettings, before, event, this.channel.nowMs());
    this.#state = state;
    if (state.isTalking && !before.isTalking) this.channel.scribe?.customerBegan();
    for (const action of actions) {
      if (!this.channel.isOver) this.#carryOut(action);
    }
    if (this.channel.isOver) return;
    this.#sayNext();
    this.#publishState();
  }

  #carryOut(action: TurnAction): void {
    const { brain, greeting } = this.#options;
    const settings = this.#settings;
    switch (action.kind) {
      case "greet":
        return this.#sayWhole(this.#newSpeech("greeting"), greeting);
      case "finalize":
        return this.#input?.finalize();
      case "judge_end":
        return this.#input?.judgeEnd(action.spokenMs, (probability) =>
          this.#feed({ kind: "end_judged", pause: action.pause, probability }));
      case "reply":
        return this.#reply(action.text, action.hasVoice);
      case "prepare":
        return this.#prepare(action.text);
      case "discard":
        return this.#discard();
      case "cancel_reply":
        return this.#cancelReply();
      case "pause":
        return this.channel.hold(() => undefined);
      case "resume":
        return this.channel.mixer.resume();
      case "interrupt":
        return this.#interrupt();
      case "note":
        this.channel.scribe?.customerSaid(action.text, this.#state.lastVoiceMs);
        return this.#state.phase === "aside" ? this.channel.scribe?.turnIsOver() : undefined;
      case "filler":
        return this.#playFiller(action.tone);
      case "reengage":
        this.#beginReply(null);
        return brain.reengage(this.#turn);
      case "speak_up":
        this.#beginReply(null);
        return brain.speakUp(this.#turn, action.why);
      case "stands_aside":
        this.#says = [];
        this.#bounds.leave(this.channel.nowMs());
        this.#turnSettings = this.#turnSettingsOf(settings);
        return this.#onAside();
      case "leave_message":
        return this.#sayWhole(this.#newSpeech("fixed note"), settings.voicemail.message ?? "");
      case "say_goodbye":
        return this.#sayWhole(
          this.#newSpeech("fixed note"), goodbyeOf(settings.phrases, action.reason));
      case "answered_by":
        return brain.answeredBy(action.by);
      case "hang_up":
        return this.channel.leave(
          action.reason, action.reason === "transferred" ? this.#transferTo : null);
    }
  }

  #prepare(text: string): void {
    this.#discard();
    this.#turn += 1;
    this.#prepared = this.#newSpeech("reply", this.#turn);
    this.#prepared.hold();
    const ahead = this.channel.scribe?.unrecorded(text) ?? text;
    this.#options.brain.reply(this.#turn, text, this.#heardLanguage, ahead);
  }

  #discard(): void {
    const speech = this.#prepared;
    this.#prepared = null;
    speech?.cancel();
    if (speech && speech.turn !== null) this.#options.brain.cancel(speech.turn);
  }

  #reply(text: string, hasVoice: boolean): void {
    const { scribe } = this.channel;
    const prepared = this.#prepared;
    this.#prepared = null;
    scribe?.customerSaid(text, Math.max(this.#state.lastVoiceMs, this.#state.timers.digitMs));
    const fromMs = hasVoice ? this.#state.lastVoiceMs : null;
    const language = this.#heardLanguage;
    this.#heardLanguage = null;
    if (prepared === null || prepared.turn === null) {
      this.#beginReply(fromMs);
      return this.#options.brain.reply(this.#turn, text, language, null);
    }
    scribe?.replyBegins(fromMs);
    this.#speech = prepared;
    this.#options.brain.goAhead(prepared.turn);
    if (prepared.hasText) scribe?.stage("firstTokenMs");
    prepared.release();
  }

  #beginReply(lastVoiceMs: number | null): void {
    this.#turn += 1;
    this.channel.scribe?.replyBegins(lastVoiceMs);
    this.#speech = this.#newSpeech("reply", this.#turn);
  }

  #sayWhole(speech: Speech, text: string): void {
    this.#speech = speech;
    speech.writeWhole(text);
  }

  #newSpeech(as: SpeechKind | "fixed note", turn: number | null = null): Speech {
    const { log } = this.#options;
    const isFixed = as === "filler" || as === "fixed note"
      || (as === "greeting" && this.#settings.greetsAlike);
    const speech: Speech = new Speech({
      kind: as === "fixed note" ? "note" : as,
      turn,
      rate: this.channel.rate,
      voice: () => ({
        synthesizer: this.#synthesizer,
        options: { ...this.#settings.voice, rate: this.channel.rate, isFixed },
      }),
      handlers: {
        onAudio: () => this.#audioStarted(speech),
        onComplete: (isEmpty) => {
          if (isEmpty && speech === this.#speech) this.#feed({ kind: "reply_empty" });
        },
        onFailed: (error) => {
          log.warn({ err: error }, "speech synthesis failed");
          if (speech === this.#prepared) return this.#discard();
          if (speech !== this.#speech) return;
          this.#failures += 1;
          if (this.#failures >= FAILURES_MAX) this.channel.hangUp("speech_failed");
          else if (!speech.utterance.hasAudio) this.#feed({ kind: "reply_empty" });
        },
      },
    });
    return speech;
  }

  #audioStarted(speech: Speech): void {
    if (this.channel.isOver) return;
    const isFiller = speech === this.#filler;
    if (speech !== this.#speech && !isFiller) return;
    if (isFiller && this.#state.phase !== "thinking") return;
    if (!isFiller) {
      this.#dropFiller();
      this.channel.scribe?.stage("firstAudioMs");
      this.channel.scribe?.turnIsOver();
    }
    this.channel.scribe?.assistantBegan(speech);
    this.channel.mixer.play(speech.utterance);
    if (!isFiller) this.#feed({ kind: "audio_started" });
  }

  #playedOut(utterance: Utterance): void {
    const speech = this.channel.scribe?.speechOf(utterance);
    if (!speech) return;
    this.channel.scribe?.assistantSaid(speech, false);
    if (speech === this.#filler) return;
    if (speech === this.#speech) this.#speech = null;
    this.#feed({ kind: "played_out" });
  }

  #cancelReply(): void {
    const speech = this.#speech;
    this.#speech = null;
    this.#dropFiller();
    speech?.cancel();
    this.channel.scribe?.replyIsOff();
    if (speech && speech.turn !== null) this.#options.brain.cancel(speech.turn);
  }

  #interrupt(): void {
    const speech = this.#speech;
    this.#dropFiller();
    if (!speech) return;
    this.#speech = null;
    speech.cancel();
    if (speech.turn !== null) this.#options.brain.cancel(speech.turn);
    this.channel.scribe?.assistantBrokenOff(speech);
    this.channel.hold(() => {
      this.channel.mixer.drop(speech.utterance);
      this.channel.scribe?.assistantSaid(speech, true);
    });
  }

  #playFiller(tone: FillerTone): void {
    const { fillers } = this.#settings;
    const phrases = fillers?.[tone]?.length ? fillers[tone] : fillers?.neutral ?? [];
    const phrase = phrases[this.#fillerNumber % phrases.length];
    if (phrase === undefined) return;
    this.#fillerNumber += 1;
    this.#filler = this.#newSpeech("filler");
    this.#filler.writeWhole(phrase);
  }

  #dropFiller(): void {
    const filler = this.#filler;
    this.#filler = null;
    if (!filler) return;
    filler.cancel();
    this.channel.mixer.drop(filler.utterance);
    if (filler.utterance.wasHeard) this.channel.scribe?.assistantSaid(filler, true);
  }

  #sayNext(): void {
    if (this.channel.isOver || this.#says.length === 0 || !isFree(this.#state)) return;
    const text = this.#says.shift() ?? "";
    this.#feed({ kind: "saying" });
    this.#sayWhole(this.#newSpeech("note"), text);
  }

  /** The customer's words that are not answered yet. */
  #unanswered(): string {
    return `${this.#state.finals} ${this.#state.partial}`.trim();
  }

  #publishState(): void {
    const { phase, isPaused } = this.#state;
    if (phase === "dialling") return;
    const isSpeaking = phase === "speaking" && !isPaused;
    this.channel.publishState(
      isSpeaking ? "speaking" : phase === "thinking" ? "thinking" : "listening");
  }

  #ended(): void {
    const speech = this.#speech;
    this.#discard();
    this.#dropFiller();
    if (!speech) return;
    this.channel.scribe?.assistantSaid(speech, true);
    speech.cancel();
    if (speech.turn !== null) this.#options.brain.cancel(speech.turn);
  }
}
