// A call whose model hears by itself, and either speaks too (mode `multimodal`) or writes what a
// synthesizer of ours speaks (`dualplex`): the vendor takes the turns, the mixer still owns what is
// played, so that ambience, recording, interruption and record are as in any call. Made by host.ts.
import type {
  Pcm, SpeechToSpeech, SpeechToSpeechEvent, SpeechToSpeechOptions, SpeechToSpeechSession,
  Synthesizer,
} from "#providers/speech/port.ts";
import type { AnsweredBy, EndReason } from "#features/calls/records/records.ts";
import type { CallSession, SessionOptions, Successor } from "./brain.ts";
import {
  reduceTimers, TimeBounds, TIMERS_START, type TimerAction, type TimerEvent,
} from "./turns/call-timers.ts";
import { Channel } from "./channel.ts";
import { ModelEars } from "./model-ears.ts";
import type { Elsewhere } from "./turns/elsewhere.ts";
import { MachineWatch } from "./turns/machine-watch.ts";
import { goodbyeOf, silenceNote, type VoiceSettings } from "./settings.ts";
import { FAILURES_MAX, SAYS_MAX, Speech } from "./speech.ts";
import type { PersonEvent, TakingPart } from "./turns/taking-part.ts";
import { Utterance } from "./utterance.ts";

type RealtimeOptions =
  Omit<SessionOptions, "synthesizer" | "transcriber" | "vad" | "noiseFilter" | "turnEnds"> & {
    model: SpeechToSpeech;
    realtime: Omit<SpeechToSpeechOptions, "rate" | "speaks">;
    /** Speaks what the model writes; null: the model speaks. */
    synthesizer: Synthesizer | null;
  };

const NOT_NOW = JSON.stringify({ error: "A colleague has the call. Do nothing until it is handed back." });

interface Reply {
  itemId: string;
  turn: number;
  kind: "reply";
  utterance: Utterance;
  /** Null: the model speaks. */
  speech: Speech | null;
}

export class RealtimeSession implements CallSession {
  readonly channel: Channel;
  readonly #options: RealtimeOptions;
  #settings: VoiceSettings;
  #synthesizer: Synthesizer | null;
  /** Null until the call is answered, and so is `#machine`. */
  #model: SpeechToSpeechSession | null = null;
  #machine: MachineWatch | null = null;
  #timers = TIMERS_START;
  #turn = 0;
  /** The first is being played; the others were ready before it was played out. */
  #replies: Reply[] = [];
  #failures = 0;
  readonly #ears: ModelEars;
  #says: string[] = [];
  #functionsRunning = 0;
  #ending: { reason: EndReason; to: string | null } | null = null;
  #person: TakingPart | null = null;
  readonly #bounds: TimeBounds;
  #elsewhere: Elsewhere = "no";
  #onAside: () => void = () => undefined;
  #isHinted = false;

  constructor(options: RealtimeOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#bounds = new TimeBounds(options.durationMaxMs);
    this.#synthesizer = options.synthesizer;
    this.channel = new Channel(options, {
      answered: () => this.#answered(),
      audio: (pcm) => this.#hear(pcm),
      mayBeMachine: () => this.#machine?.listener !== "human",
      beep: () => this.#leaveMessage(),
      dtmf: (digit) => void this.#reduceTimers({ kind: "dtmf", digit }),
      answeredBy: (by) => this.#machine?.judge(by, this.channel.nowMs()),
      held: (isHeld) => void this.#reduceTimers({ kind: "held", isHeld }),
      transferFailed: () => {
        this.#ending = null;
        this.say(this.#settings.phrases.notConnected);
      },
      frame: () => this.#everyFrame(),
      playedOut: () => this.#playedOut(),
      ended: () => this.#ended(),
      lastWords: (reason, then) => this.#ears.awaitLastWords({
        reason, then, scribe: this.channel.scribe, input: this.#model, timers: this.#timers,
        keypad: this.#settings.keypad, system: options.system,
      }),
    });
    this.#ears = new ModelEars(this.channel.rate);
  }

  functionResult(callId: string, resultJson: string): void {
    this.#functionsRunning = Math.max(0, this.#functionsRunning - 1);
    if (!this.channel.isOver) this.#model?.functionResult(callId, resultJson);
  }

  say(text: string): boolean {
    if (this.channel.isOver || !this.#model || this.#says.length >= SAYS_MAX) return false;
    // Said while the customer talks, it would not be heard.
    if (this.#ears.isTalking) this.#says.push(text);
    else this.#model.say(text);
    return true;
  }

  /** Words for the model alone, which answers them. */
  tell(text: string): void {
    if (!this.channel.isOver) this.#model?.sendText(text);
  }

  takePart(event: PersonEvent): void {
    if (this.channel.isOver) return;
    switch (event.kind) {
      case "person_joined":
        this.#person = { isAlone: event.isAlone, isTalking: false };
        if (!event.isAlone) return;
        this.#ending = null;
        return this.#interrupt();
      case "person_left": {
        const wasAlone = this.#person?.isAlone ?? false;
        this.#person = null;
        if (!wasAlone || this.#isAside() || this.#ears.isTalking) return;
        this.#isHinted = false;
        return this.#options.brain.speakUp(this.#turn, event.wasLost ? "lost" : "handed_back");
      }
      case "person_voice":
        if (this.#person) this.#person = { ...this.#person, isTalking: event.isTalking };
        return;
      case "hint":
        this.#isHinted = true;
    }
  }

  /** Somebody else has the call: the model only listens. */
  #isAside(): boolean {
    return this.#elsewhere === "yes" || (this.#person?.isAlone ?? false);
  }

  standAside(then: () => void): void {
    this.#onAside = then;
    this.#elsewhere = "due";
  }

  comeBack(durationMaxMs: number): void {
    this.#elsewhere = "no";
    this.#bounds.comeBack(this.channel.nowMs(), durationMaxMs);
    this.#reduceTimers({ kind: "activity" });
  }

  /** Stands aside once all replies have been heard and no function is running. */
  #watchElsewhere(): void {
    if (this.#elsewhere !== "due" || this.#replies.length > 0 || this.#functionsRunning > 0) return;
    this.#elsewhere = "yes";
    this.#model?.interrupt(null);
    this.#bounds.leave(this.channel.nowMs());
    this.#onAside();
  }

  become({ settings, greeting, synthesizer, instructions, functions }: Successor): void {
    if (this.channel.isOver) return;
    this.#settings = settings;
    if (this.#synthesizer) this.#synthesizer = synthesizer ?? this.#synthesizer;
    this.#model?.instruct(instructions, functions);
    if (greeting.trim() !== "") this.say(greeting);
  }

  endAfterSpeech(reason: EndReason, to: string | null = null): void {
    if (reason === "server_restarted") return this.#takeLeave(reason);
    if (this.#isAside() || (reason === "assistant_ended" && this.#ending?.to)) return;
    this.#ending = { reason, to };
    if (this.#replies.length === 0) this.#endNow();
  }

  #answered(): void {
    const { model, realtime } = this.#options;
    this.#reduceTimers({ kind: "answered" });
    this.#machine = new MachineWatch({
      detects: this.#settings.voicemail.detects,
      answeredMs: this.channel.nowMs(),
      onJudged: (by) => this.#answeredBy(by),
    });
    this.#model = model.open(
      { ...realtime, rate: this.channel.rate, speaks: this.#synthesizer === null },
      (event) => this.#modelEvent(event));
  }

  #hear(pcm: Pcm): void {
    this.#ears.hear(pcm, this.channel.nowMs());
    this.#model?.write(pcm);
  }

  #modelEvent(event: SpeechToSpeechEvent): void {
    const [{ isOver, scribe }, { brain, greeting, log }] = [this.channel, this.#options];
    if (isOver) return this.#lateEvent(event);
    switch (event.kind) {
      case "ready":
        if (greeting.trim() !== "" && !this.#settings.waitForCustomer) this.say(greeting);
        return;
      case "speech_start":
        this.#ears.speechBegan(this.channel.nowMs());
        this.#reduceTimers({ kind: "customer_spoke" });
        scribe?.customerBegan();
        this.#machine?.speechBegan(this.channel.nowMs());
        // A machine does not listen, so it does not interrupt.
        return this.#machine?.isMessageLeft ? undefined : this.#interrupt();
      case "speech_end":
        this.#ears.speechEnded(this.channel.nowMs());
        this.#reduceTimers({ kind: "activity" });
        for (const text of this.#says.splice(0)) if (!this.#isAside()) this.#model?.say(text);
        return this.#machine?.speechEnded(this.channel.nowMs());
      case "user_text":
        this.#ears.words(event);
        this.#machine?.receiveText(event.text, this.channel.nowMs());
        if (this.channel.isOver) return;
        if (!event.isFinal) return scribe?.customerIsSaying(event.text);
        scribe?.customerSaid(event.text, this.#ears.lastVoiceMs);
        return scribe?.turnIsOver();
      case "reply_start":
        this.#turn += 1;
        if (this.#isSilenced()) return this.#model?.interrupt(null);
        return scribe?.replyBegins(this.#timers.hasSpoken ? this.#ears.lastVoiceMs : null);
      case "audio":
        scribe?.stage("firstAudioMs");
        return this.#spoke(event.itemId, event.pcm);
      case "text":
        scribe?.stage("firstTokenMs");
        return this.#wrote(event.itemId, event.text);
      case "function_call":
        this.#functionsRunning += 1;
        if (this.#isAside()) return this.functionResult(event.callId, NOT_NOW);
        return brain.functionCall(this.#turn, event);
      case "reply_end":
        for (const { speech, utterance } of this.#replies) {
          if (speech) speech.end();
          else utterance.ended = true;
        }
        return;
      case "failed":
        log.warn({ err: event.error }, "the realtime model failed");
        return this.channel.hangUp("speech_failed");
    }
  }

  #lateEvent(event: SpeechToSpeechEvent): void {
    // Nobody would hear it.
    if (event.kind === "reply_start") this.#model?.interrupt(null);
    else this.#ears.lateEvent(event);
  }

  #spoke(itemId: string, pcm: Pcm): void {
    const utterance = this.#replyOf(itemId)?.utterance;
    utterance?.push(pcm);
    utterance?.markEvenly();
  }

  #wrote(itemId: string, text: string): void {
    const reply = this.#replyOf(itemId);
    if (reply?.speech) return reply.speech.write(text);
    if (!reply) return;
    reply.utterance.text += text;
    reply.utterance.markEvenly();
  }

  /** The reply an item belongs to; null for late parts of one that was interrupted. */
  #replyOf(itemId: string): Reply | null {
    const known = this.#replies.find((reply) => reply.itemId === itemId);
    if (known) return known;
    const mayStart = !this.#ears.isTalking || this.#machine?.isMessageLeft;
    if (!mayStart || this.#isSilenced() || this.channel.scribe === null) return null;
    const speech = this.#synthesizer ? this.#newSpeech(this.#synthesizer) : null;
    const utterance = speech?.utterance ?? new Utterance(this.channel.rate);
    const reply: Reply = { itemId, turn: this.#turn, kind: "reply", utterance, speech };
    this.#replies.push(reply);
    if (this.#replies.length === 1) this.#play(reply);
    return reply;
  }

  #newSpeech(synthesizer: Synthesizer): Speech {
    return new Speech({
      kind: "reply",
      turn: this.#turn,
      rate: this.channel.rate,
      voice: () => ({
        synthesizer: this.#synthesizer ?? synthesizer,
        options: { ...this.#settings.voice, rate: this.channel.rate },
      }),
      handlers: {
        onAudio: () => this.channel.scribe?.stage("firstAudioMs"),
        onComplete: (isEmpty) => {
          if (!isEmpty) this.#failures = 0;
        },
        onFailed: (error) => {
          this.#options.log.warn({ err: error }, "speech synthesis failed");
          this.#failures += 1;
          if (this.#failures >= FAILURES_MAX) this.channel.hangUp("speech_failed");
        },
      },
    });
  }

  #play(reply: Reply): void {
    this.channel.scribe?.assistantBegan(reply);
    this.channel.mixer.play(reply.utterance);
  }

  /** `then` runs once the model knows how much was heard. */
  #interrupt(then: () => void = () => undefined): void {
    if (this.#ending) return then();
    // At once: later audio would begin another reply, and replies not heard yet are not wanted.
    this.#model?.interrupt(null);
    const replies = this.#replies.splice(0);
    const [reply] = replies;
    if (!reply) return then();
    for (const { speech } of replies) speech?.cancel();
    this.channel.scribe?.assistantBrokenOff(reply);
    this.channel.hold(() => {
      this.channel.mixer.drop(reply.utterance);
      for (const { itemId, utterance } of replies) {
        const playedMs = Math.round(utterance.playedMs);
        this.#model?.interrupt({ itemId, playedMs, text: utterance.heardText() });
      }
      this.channel.scribe?.assistantSaid(reply, true);
      then();
    });
  }

  #playedOut(): void {
    const reply = this.#replies.shift();
    if (!reply) return;
    this.#reduceTimers({ kind: "activity" });
    this.channel.scribe?.assistantSaid(reply, false);
    const next = this.#replies[0];
    if (next) return this.#play(next);
    if (this.#ending) return this.#endNow();
    if (this.#machine?.listener === "machine" && this.#machine.isMessageLeft) this.#messageSaid();
  }

  // Answering machines

  #answeredBy(by: AnsweredBy): void {
    this.#options.brain.answeredBy(by);
    if (by !== "machine") return;
    this.#interrupt();
    const { ends, message } = this.#settings.voicemail;
    if (message === null && ends) this.channel.hangUp("voicemail");
  }

  /** Nothing the model says is heard: a machine or a person has the floor. */
  #isSilenced(): boolean {
    return this.#isMachineHeard() || this.#isAside();
  }

  /** The machine's own words are not answered. */
  #isMachineHeard(): boolean {
    return this.#machine?.listener === "machine" && !this.#machine.isMessageLeft;
  }

  #leaveMessage(): void {
    const { message } = this.#settings.voicemail;
    if (this.channel.isOver || !this.#machine || !this.#isMachineHeard()) return;
    this.#machine.isMessageLeft = true;
    this.#reduceTimers({ kind: "activity" });
    if (message === null) this.#messageSaid();
    else this.#model?.say(message);
  }

  /** If the call goes on, what is said from now on is answered, whoever says it. */
  #messageSaid(): void {
    if (this.#settings.voicemail.ends) return this.channel.hangUp("voicemail");
    if (this.#machine) this.#machine.listener = "human";
  }

  #endNow(): void {
    const { reason, to } = this.#ending ?? { reason: "assistant_ended", to: null };
    this.channel.leave(reason, to);
  }

  #reduceTimers(event: TimerEvent): TimerAction | null {
    const [bounds, nowMs] = [this.#bounds.of(this.#settings), this.channel.nowMs()];
    const { state, action } = reduceTimers(bounds, this.#timers, event, nowMs);
    this.#timers = state;
    return action;
  }

  #everyFrame(): void {
    this.#watchTime();
    const quiet = this.#functionsRunning > 0 ? "thinking" : "listening";
    this.channel.publishState(this.channel.mixer.speaking ? "speaking" : quiet);
  }

  #watchTime(): void {
    // No goodbye is said to a machine.
    const mayLeave = this.#ending === null && this.#machine?.listener !== "machine"
      && !this.#isAside();
    const due = this.#reduceTimers({ kind: "check_duration", mayLeave });
    if (due?.kind === "hang_up") return this.channel.hangUp(due.reason);
    if (due?.kind === "say_goodbye") return this.#takeLeave(due.reason);
    const nowMs = this.channel.nowMs();
    this.#machine?.tick(nowMs);
    if (this.#machine?.isDue(nowMs, this.#ears.lastVoiceMs)) this.#leaveMessage();
    if (this.channel.isOver) return;
    // A machine presses no keys: its own tones are mistaken for them.
    if (this.#machine?.listener === "machine") this.#reduceTimers({ kind: "forget_keys" });
    else this.#watchKeys();
    this.#watchElsewhere();
    this.#watchHint();
    this.#watchSilence();
  }

  #watchHint(): void {
    const isFree = this.#replies.length === 0 && !this.#ears.isTalking
      && this.#functionsRunning === 0 && this.#ending === null && !this.#person?.isTalking;
    if (!this.#isHinted || !isFree || this.#isSilenced()) return;
    this.#isHinted = false;
    this.#options.brain.speakUp(this.#turn, "hint");
  }

  #watchSilence(): void {
    const isBusy = this.#replies.length > 0 || this.#ears.isTalking || this.#functionsRunning > 0
      || this.#ending !== null || this.#isAside();
    const due = this.#reduceTimers({ kind: "check_silence", isBusy });
    if (due?.kind === "hang_up") return this.channel.hangUp(due.reason);
    if (due?.kind !== "reengage") return;
    const { reengagePrompt, phrases } = this.#settings;
    if (reengagePrompt === null) return void this.say(phrases.stillThere);
    this.#model?.sendText(silenceNote(reengagePrompt));
  }

  #watchKeys(): void {
    const keys = this.#reduceTimers({ kind: "check_keypad" });
    if (keys?.kind !== "keys") return;
    if (!this.#isAside()) this.#interrupt(() => this.#model?.sendText(keys.text));
    this.channel.scribe?.customerSaid(keys.text, this.#timers.digitMs);
    this.channel.scribe?.turnIsOver();
  }

  #takeLeave(reason: EndReason): void {
    if (this.channel.isOver) return;
    this.#person = null;
    this.#interrupt();
    this.#ending = { reason, to: null };
    this.#model?.say(goodbyeOf(this.#settings.phrases, reason));
  }

  #ended(): void {
    const [reply] = this.#replies;
    if (reply) this.channel.scribe?.assistantSaid(reply, true);
    for (const { speech } of this.#replies) speech?.cancel();
    this.#model?.interrupt(null);
  }
}
