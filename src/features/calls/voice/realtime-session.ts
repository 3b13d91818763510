// A call whose model hears by itself, and either speaks too (mode `multimodal`) or writes what a
// synthesizer of ours speaks (`dualplex`): the vendor takes the turns, the mixer still owns what is
// played, so that ambience, recording, interruption and record are the same as in every call.
// Same methods as session.ts; made by host.ts.
import type { Timer } from "#core/system.ts";
import type { Leg, LegEndCause, LegEvent } from "#providers/carriers/port.ts";
import type {
  Pcm, SpeechToSpeech, SpeechToSpeechEvent, SpeechToSpeechOptions, SpeechToSpeechSession,
  Synthesizer,
} from "#providers/speech/port.ts";
import type { EndReason } from "#features/calls/records.ts";
import type { CallSession, SessionOptions, Successor, VoiceState } from "./brain.ts";
import { reasonOf } from "./end-reason.ts";
import { CLEARED_WAIT_MS, Mixer } from "./mixer.ts";
import { MachineWatch } from "./machine-watch.ts";
import { Scribe } from "./scribe.ts";
import { goodbyeOf, silenceNote, type VoiceSettings } from "./settings.ts";
import { FAILURES_MAX, Speech } from "./speech.ts";
import { GOODBYE_MS, REENGAGEMENTS_MAX } from "./turn-taker.ts";
import { Utterance } from "./utterance.ts";

type RealtimeOptions =
  Omit<SessionOptions, "synthesizer" | "transcriber" | "vad" | "noiseFilter"> & {
    model: SpeechToSpeech;
    realtime: Omit<SpeechToSpeechOptions, "rate" | "speaks">;
    /** Speaks what the model writes; null: the model speaks. */
    synthesizer: Synthesizer | null;
  };

interface Reply {
  itemId: string;
  turn: number;
  kind: "reply";
  utterance: Utterance;
  /** Null: the model speaks. */
  speech: Speech | null;
}

export class RealtimeSession implements CallSession {
  readonly #options: RealtimeOptions;
  readonly #leg: Leg;
  readonly #mixer: Mixer;
  #model: SpeechToSpeechSession | null = null;
  #scribe: Scribe | null = null;
  /** Null until the call is answered. */
  #machine: MachineWatch | null = null;
  #beeps: { push(pcm: Pcm): void } | null = null;
  #tick: Timer | null = null;
  #over = false;
  #answeredAtMs = 0;
  #turn = 0;
  /** The first is being played; those after it were ready sooner than it was heard. */
  #replies: Reply[] = [];
  #settings: VoiceSettings;
  #synthesizer: Synthesizer | null;
  #failures = 0;
  /** Nobody speaks since then. */
  #quietMs = 0;
  #reengagements = 0;
  #customerTalks = false;
  #customerSpoke = false;
  #lastVoiceMs = 0;
  #functionsRunning = 0;
  #ending: { reason: EndReason; to: string | null } | null = null;
  #saidGoodbye = false;
  #digits = "";
  #digitMs = 0;
  #clearSinceMs: number | null = null;
  #told: VoiceState | null = null;

  constructor(options: RealtimeOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#synthesizer = options.synthesizer;
    this.#leg = options.connect((event) => this.#legEvent(event));
    this.#mixer = new Mixer({
      leg: this.#leg,
      ambience: options.ambience,
      record: options.record,
      onHeard: (utterance) => this.#scribe?.assistantHeard(utterance),
      onPlayedOut: () => this.#playedOut(),
    });
  }

  functionResult(callId: string, resultJson: string): void {
    this.#functionsRunning = Math.max(0, this.#functionsRunning - 1);
    if (!this.#over) this.#model?.functionResult(callId, resultJson);
  }

  say(text: string): boolean {
    if (this.#over || !this.#model) return false;
    this.#model.say(text);
    return true;
  }

  mute(on: boolean): void {
    this.#mixer.muted = on;
  }

  listen(tap: Mixer["tap"]): void {
    this.#mixer.tap = tap;
  }

  sendDtmf(digits: string): void {
    if (!this.#over) this.#leg.sendDtmf(digits);
  }

  become({ settings, greeting, synthesizer, instructions, functions }: Successor): void {
    if (this.#over) return;
    this.#settings = settings;
    if (this.#synthesizer) this.#synthesizer = synthesizer ?? this.#synthesizer;
    this.#model?.instruct(instructions, functions);
    if (greeting.trim() !== "") this.say(greeting);
  }

  endAfterSpeech(reason: EndReason, to: string | null = null): void {
    if (reason === "server_restarted") return this.#takeLeave(reason);
    this.#ending = { reason, to };
    if (this.#replies.length === 0) this.#endNow();
  }

  hangUp(reason: EndReason): void {
    if (this.#over) return;
    this.#end(reason, null);
    this.#leg.hangUp();
  }

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
        if (this.#machine?.listener !== "human") this.#beeps?.push(event.pcm);
        return this.#model?.write(event.pcm);
      case "dtmf":
        this.#digits += event.digit;
        this.#digitMs = this.#nowMs();
        return;
      case "words":
        return;
      case "cleared":
        this.#clearSinceMs = null;
        return this.#mixer.cleared(event.droppedMs);
      case "answered_by":
        return this.#machine?.judged(event.by, this.#nowMs());
      case "transfer_failed":
        this.#ending = null;
        return void this.say(this.#settings.phrases.notConnected);
      case "ended":
        return this.#end(reasonOf(event.cause), event.cause);
    }
  }

  #answered(): void {
    if (this.#scribe) return;
    const { brain, model, realtime, clock } = this.#options;
    this.#answeredAtMs = this.#nowMs();
    this.#quietMs = this.#answeredAtMs;
    this.#scribe = new Scribe(brain, () => this.#nowMs());
    this.#machine = new MachineWatch({
      detects: this.#settings.voicemail.detects,
      answeredMs: this.#answeredAtMs,
      tell: (by) => this.#answeredBy(by),
    });
    this.#beeps = this.#options.beeps?.(this.#leg.rate, () => this.#leaveMessage()) ?? null;
    this.#model = model.open(
      { ...realtime, rate: this.#leg.rate, speaks: this.#synthesizer === null },
      (event) => this.#modelEvent(event));
    this.#tick = clock.subscribe((dropped) => this.#everyFrame(dropped));
    brain.answered();
  }

  #modelEvent(event: SpeechToSpeechEvent): void {
    if (this.#over) return;
    const { brain, greeting, log } = this.#options;
    switch (event.kind) {
      case "ready":
        if (greeting.trim() !== "" && !this.#settings.waitForCustomer) this.say(greeting);
        return;
      case "speech_start":
        this.#customerTalks = true;
        this.#customerSpoke = true;
        this.#reengagements = 0;
        this.#scribe?.customerBegan();
        this.#machine?.speechBegan(this.#nowMs());
        // A machine does not listen, so it does not interrupt.
        return this.#machine?.isMessageLeft ? undefined : this.#interrupt();
      case "speech_end":
        this.#customerTalks = false;
        this.#lastVoiceMs = this.#nowMs();
        this.#quietMs = this.#lastVoiceMs;
        return this.#machine?.speechEnded(this.#lastVoiceMs);
      case "user_text":
        this.#machine?.heard(event.text, this.#nowMs());
        if (this.#over) return;
        if (!event.isFinal) return this.#scribe?.customerIsSaying(event.text);
        this.#scribe?.customerSaid(event.text, this.#lastVoiceMs);
        return this.#scribe?.turnIsOver();
      case "reply_start":
        this.#turn += 1;
        if (this.#isMachineHeard()) return this.#model?.interrupt(null);
        return this.#scribe?.replyBegins(this.#customerSpoke ? this.#lastVoiceMs : null);
      case "audio":
        this.#scribe?.stage("firstAudioMs");
        return this.#spoke(event.itemId, event.pcm);
      case "text":
        this.#scribe?.stage("firstTokenMs");
        return this.#wrote(event.itemId, event.text);
      case "function_call":
        this.#functionsRunning += 1;
        return brain.functionCall(this.#turn, event);
      case "reply_end":
        for (const { speech, utterance } of this.#replies) {
          if (speech) speech.end();
          else utterance.ended = true;
        }
        return;
      case "failed":
        log.warn({ err: event.error }, "the realtime model failed");
        return this.hangUp("speech_failed");
    }
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

  /** The reply an item belongs to; null for what comes late of one that was interrupted. */
  #replyOf(itemId: string): Reply | null {
    const known = this.#replies.find((reply) => reply.itemId === itemId);
    if (known) return known;
    const mayStart = !this.#customerTalks || this.#machine?.isMessageLeft;
    if (!mayStart || this.#isMachineHeard() || this.#scribe === null) return null;
    const speech = this.#synthesizer ? this.#newSpeech(this.#synthesizer) : null;
    const utterance = speech?.utterance ?? new Utterance(this.#leg.rate);
    const reply: Reply = { itemId, turn: this.#turn, kind: "reply", utterance, speech };
    this.#replies.push(reply);
    if (this.#replies.length === 1) this.#play(reply);
    return reply;
  }

  #newSpeech(synthesizer: Synthesizer): Speech {
    return new Speech({
      kind: "reply",
      turn: this.#turn,
      rate: this.#leg.rate,
      voice: () => ({
        synthesizer: this.#synthesizer ?? synthesizer,
        options: { ...this.#settings.voice, rate: this.#leg.rate },
      }),
      handlers: {
        onAudio: () => this.#scribe?.stage("firstAudioMs"),
        onComplete: (isEmpty) => {
          if (!isEmpty) this.#failures = 0;
        },
        onFailed: (error) => {
          this.#options.log.warn({ err: error }, "speech synthesis failed");
          this.#failures += 1;
          if (this.#failures >= FAILURES_MAX) this.hangUp("speech_failed");
        },
      },
    });
  }

  #play(reply: Reply): void {
    this.#scribe?.assistantBegan(reply);
    this.#mixer.play(reply.utterance);
  }

  #interrupt(): void {
    if (this.#ending) return;
    const [reply, ...unheard] = this.#replies;
    // A reply that is not heard yet is not wanted any more either.
    if (!reply) return this.#model?.interrupt(null);
    this.#replies = [];
    for (const { speech } of [reply, ...unheard]) speech?.cancel();
    this.#clearSinceMs = this.#nowMs();
    this.#mixer.hold(() => {
      const { itemId, utterance } = reply;
      this.#mixer.drop(utterance);
      this.#model?.interrupt({
        itemId, playedMs: Math.round(utterance.playedMs), text: utterance.heardText(),
      });
      for (const { itemId: id } of unheard) {
        this.#model?.interrupt({ itemId: id, playedMs: 0, text: "" });
      }
      this.#scribe?.assistantSaid(reply, true);
    });
  }

  #playedOut(): void {
    const reply = this.#replies.shift();
    if (!reply) return;
    this.#quietMs = this.#nowMs();
    this.#scribe?.assistantSaid(reply, false);
    const next = this.#replies[0];
    if (next) return this.#play(next);
    if (this.#ending) return this.#endNow();
    if (this.#machine?.listener === "machine" && this.#machine.isMessageLeft) this.#messageSaid();
  }

  // Answering machines

  #answeredBy(by: "human" | "machine" | "unknown"): void {
    this.#options.brain.answeredBy(by);
    if (by !== "machine") return;
    this.#interrupt();
    const { ends, message } = this.#settings.voicemail;
    if (message === null && ends) this.hangUp("voicemail");
  }

  /** The machine's own words are not answered. */
  #isMachineHeard(): boolean {
    return this.#machine?.listener === "machine" && !this.#machine.isMessageLeft;
  }

  #leaveMessage(): void {
    const { message } = this.#settings.voicemail;
    if (this.#over || !this.#machine || !this.#isMachineHeard()) return;
    this.#machine.isMessageLeft = true;
    this.#quietMs = this.#nowMs();
    if (message === null) this.#messageSaid();
    else this.say(message);
  }

  /** What is said from now on is answered, whoever says it, where the call goes on. */
  #messageSaid(): void {
    if (this.#settings.voicemail.ends) return this.hangUp("voicemail");
    if (this.#machine) this.#machine.listener = "human";
  }

  #endNow(): void {
    const { reason, to } = this.#ending ?? { reason: "assistant_ended", to: null };
    if (to !== null && this.#leg.transfer) return this.#leg.transfer(to);
    this.hangUp(reason);
  }

  #everyFrame(dropped: number): void {
    this.#mixer.tick(dropped);
    const nowMs = this.#nowMs();
    if (this.#clearSinceMs !== null && nowMs - this.#clearSinceMs >= CLEARED_WAIT_MS) {
      this.#clearSinceMs = null;
      this.#mixer.cleared(0);
    }
    this.#scribe?.assistantIsSaying(this.#mixer.speaking);
    this.#watchTime(nowMs);
    if (!this.#over) this.#tellState();
  }

  #watchTime(nowMs: number): void {
    const { durationMaxMs } = this.#options;
    const settings = this.#settings;
    const lengthMs = Math.min(settings.maxDurationMs, durationMaxMs);
    const talkedMs = nowMs - this.#answeredAtMs;
    const reason = durationMaxMs < settings.maxDurationMs ? "balance" : "max_duration";
    if (talkedMs >= lengthMs) return this.hangUp(reason);
    if (!this.#saidGoodbye && lengthMs > 2 * GOODBYE_MS && talkedMs >= lengthMs - GOODBYE_MS) {
      return this.#takeLeave(reason);
    }
    this.#machine?.tick(nowMs);
    if (this.#over) return;
    if (this.#machine?.isDue(nowMs, this.#lastVoiceMs)) this.#leaveMessage();
    this.#watchDigits(nowMs);
    const isBusy = this.#customerTalks || this.#functionsRunning > 0;
    if (isBusy || this.#replies.length > 0 || this.#ending) {
      this.#quietMs = nowMs;
      return;
    }
    const firstMs = settings.maxInitialSilenceMs;
    if (!this.#customerSpoke && firstMs !== null && talkedMs >= firstMs) {
      return this.hangUp("no_first_words");
    }
    const patience = this.#reengagements === 0 ? settings.maxSilenceMs : settings.reengageEveryMs;
    if (nowMs - this.#quietMs < patience) return;
    if (this.#reengagements >= REENGAGEMENTS_MAX) return this.hangUp("silence");
    this.#reengagements += 1;
    this.#quietMs = nowMs;
    if (settings.reengagePrompt === null) return void this.say(settings.phrases.stillThere);
    this.#model?.sendText(silenceNote(settings.reengagePrompt));
  }

  #takeLeave(reason: EndReason): void {
    if (this.#over) return;
    this.#saidGoodbye = true;
    this.#interrupt();
    this.#ending = { reason, to: null };
    this.say(goodbyeOf(this.#settings.phrases, reason));
  }

  #watchDigits(nowMs: number): void {
    const { keypad } = this.#settings;
    const isStopped = this.#digits.endsWith(keypad.stopKey);
    if (this.#digits === "" || (!isStopped && nowMs - this.#digitMs < keypad.timeoutMs)) return;
    const digits = isStopped ? this.#digits.slice(0, -1) : this.#digits;
    this.#digits = "";
    if (digits === "") return;
    const text = `[Keypad input: ${digits}]`;
    this.#customerSpoke = true;
    this.#scribe?.customerSaid(text, nowMs);
    this.#model?.sendText(text);
  }

  #tellState(): void {
    const state: VoiceState = this.#mixer.speaking
      ? "speaking"
      : this.#functionsRunning > 0 ? "thinking" : "listening";
    if (state === this.#told) return;
    this.#told = state;
    this.#options.brain.state(state);
  }

  #nowMs(): number {
    return this.#options.system.monotonicMs();
  }

  #end(reason: EndReason, cause: LegEndCause | null): void {
    if (this.#over) return;
    const [reply] = this.#replies;
    if (reply) this.#scribe?.assistantSaid(reply, true);
    for (const { speech } of this.#replies) speech?.cancel();
    this.#over = true;
    this.#tick?.cancel();
    this.#model?.close();
    this.#options.brain.over({ reason, cause, turns: this.#scribe?.latencies ?? [] });
  }
}
