// A call whose model hears and speaks by itself (mode `multimodal`): the vendor takes the turns,
// the mixer still owns what is played, so that ambience, recording, interruption and record are
// the same as in every call. Same methods as session.ts; made by host.ts.
import type { Timer } from "../../core/system.ts";
import type { Leg, LegEndCause, LegEvent } from "../../providers/carriers/port.ts";
import type {
  SpeechToSpeech, SpeechToSpeechEvent, SpeechToSpeechOptions, SpeechToSpeechSession,
} from "../../providers/speech/port.ts";
import type { EndReason } from "../records.ts";
import type { CallSession, SessionOptions, VoiceState } from "./brain.ts";
import { Mixer } from "./mixer.ts";
import { phrasesOf } from "./phrases.ts";
import { Scribe } from "./scribe.ts";
import { reasonOf } from "./session.ts";
import { Utterance } from "./utterance.ts";

export type RealtimeOptions =
  Omit<SessionOptions, "synthesizer" | "transcriber" | "vad" | "noiseFilter" | "beeps"> & {
    model: SpeechToSpeech;
    realtime: Omit<SpeechToSpeechOptions, "rate" | "speaks">;
  };

interface Reply {
  itemId: string;
  turn: number;
  kind: "reply";
  utterance: Utterance;
}

const CLEARED_WAIT_MS = 300;
const GOODBYE_MS = 8000;
const REENGAGEMENTS_MAX = 3;

export class RealtimeSession implements CallSession {
  readonly #options: RealtimeOptions;
  readonly #leg: Leg;
  readonly #mixer: Mixer;
  #model: SpeechToSpeechSession | null = null;
  #scribe: Scribe | null = null;
  #tick: Timer | null = null;
  #over = false;
  #answeredAtMs = 0;
  #turn = 0;
  #reply: Reply | null = null;
  /** Nobody speaks since then. */
  #quietMs = 0;
  #reengagements = 0;
  #customerTalks = false;
  #customerSpoke = false;
  #lastVoiceMs = 0;
  #toolsRunning = 0;
  #ending: { reason: EndReason; to: string | null } | null = null;
  #saidGoodbye = false;
  #digits = "";
  #digitMs = 0;
  #clearSinceMs: number | null = null;
  #told: VoiceState | null = null;

  constructor(options: RealtimeOptions) {
    this.#options = options;
    this.#leg = options.connect((event) => this.#legEvent(event));
    this.#mixer = new Mixer({
      leg: this.#leg,
      ambience: options.ambience,
      record: options.record,
      onHeard: (utterance) => this.#scribe?.assistantHeard(utterance),
      onPlayedOut: () => this.#playedOut(),
    });
  }

  toolResult(callId: string, resultJson: string): void {
    this.#toolsRunning = Math.max(0, this.#toolsRunning - 1);
    if (!this.#over) this.#model?.toolResult(callId, resultJson);
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

  endAfterSpeech(reason: EndReason, to: string | null = null): void {
    this.#ending = { reason, to };
    if (!this.#reply) this.#endNow();
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
        return this.#model?.write(event.pcm);
      case "dtmf":
        this.#digits += event.digit;
        this.#digitMs = this.#nowMs();
        return;
      case "cleared":
        this.#clearSinceMs = null;
        return this.#mixer.cleared(event.droppedMs);
      case "answered_by":
        return this.#options.brain.answeredBy(event.by);
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
    this.#model = model.open(
      { ...realtime, rate: this.#leg.rate, speaks: true }, (event) => this.#modelEvent(event));
    this.#tick = clock.subscribe(() => this.#everyFrame());
    brain.answered();
  }

  #modelEvent(event: SpeechToSpeechEvent): void {
    if (this.#over) return;
    const { brain, greeting, settings, log } = this.#options;
    switch (event.kind) {
      case "ready":
        if (greeting.trim() !== "" && !settings.waitForCustomer) this.say(greeting);
        return;
      case "speech_start":
        this.#customerTalks = true;
        this.#customerSpoke = true;
        this.#reengagements = 0;
        this.#scribe?.customerBegan();
        return this.#interrupt();
      case "speech_end":
        this.#customerTalks = false;
        this.#lastVoiceMs = this.#nowMs();
        this.#quietMs = this.#lastVoiceMs;
        return;
      case "user_text":
        if (!event.isFinal) return this.#scribe?.customerIsSaying(event.text);
        this.#scribe?.customerSaid(event.text, this.#lastVoiceMs);
        return this.#scribe?.turnIsOver();
      case "reply_start":
        this.#turn += 1;
        return this.#scribe?.replyBegins(this.#customerSpoke ? this.#lastVoiceMs : null);
      case "audio":
        this.#scribe?.stage("firstAudioMs");
        return this.#replyOf(event.itemId)?.utterance.push(event.pcm);
      case "text": {
        this.#scribe?.stage("firstTokenMs");
        const utterance = this.#replyOf(event.itemId)?.utterance;
        if (!utterance) return;
        utterance.text += event.text;
        return utterance.mark(utterance.text.length);
      }
      case "tool_call":
        this.#toolsRunning += 1;
        return brain.toolCall(this.#turn, event);
      case "reply_end":
        if (this.#reply) this.#reply.utterance.ended = true;
        return;
      case "failed":
        log.warn({ err: event.error }, "the realtime model failed");
        return this.hangUp("speech_failed");
    }
  }

  /** The reply an item belongs to; null for what comes late of one that was interrupted. */
  #replyOf(itemId: string): Reply | null {
    if (this.#reply?.itemId === itemId) return this.#reply;
    if (this.#customerTalks || this.#scribe === null) return null;
    const reply: Reply = {
      itemId, turn: this.#turn, kind: "reply", utterance: new Utterance(this.#leg.rate),
    };
    if (this.#reply) this.#scribe.assistantSaid(this.#reply, false);
    this.#reply = reply;
    this.#scribe.assistantBegan(reply);
    this.#mixer.play(reply.utterance);
    return reply;
  }

  #interrupt(): void {
    const reply = this.#reply;
    if (!reply || this.#ending) return;
    this.#reply = null;
    this.#clearSinceMs = this.#nowMs();
    this.#mixer.hold(() => {
      this.#mixer.drop(reply.utterance);
      this.#model?.interrupt(reply.itemId, Math.round(reply.utterance.playedMs));
      this.#scribe?.assistantSaid(reply, true);
    });
  }

  #playedOut(): void {
    const reply = this.#reply;
    if (!reply) return;
    this.#reply = null;
    this.#quietMs = this.#nowMs();
    this.#scribe?.assistantSaid(reply, false);
    if (this.#ending) this.#endNow();
  }

  #endNow(): void {
    const { reason, to } = this.#ending ?? { reason: "assistant_ended", to: null };
    if (to !== null && this.#leg.transfer) return this.#leg.transfer(to);
    this.hangUp(reason);
  }

  #everyFrame(): void {
    this.#mixer.tick();
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
    const { settings, durationMaxMs } = this.#options;
    const lengthMs = Math.min(settings.maxDurationMs, durationMaxMs);
    const talkedMs = nowMs - this.#answeredAtMs;
    const reason = durationMaxMs < settings.maxDurationMs ? "balance" : "max_duration";
    if (talkedMs >= lengthMs) return this.hangUp(reason);
    if (!this.#saidGoodbye && lengthMs > 2 * GOODBYE_MS && talkedMs >= lengthMs - GOODBYE_MS) {
      this.#saidGoodbye = true;
      this.#interrupt();
      this.#ending = { reason, to: null };
      this.say(phrasesOf(settings.language).timeIsUp);
      return;
    }
    this.#watchDigits(nowMs);
    if (this.#reply || this.#customerTalks || this.#toolsRunning > 0 || this.#ending) {
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
    this.say(phrasesOf(settings.language).stillThere);
  }

  #watchDigits(nowMs: number): void {
    const { keypad } = this.#options.settings;
    const isStopped = this.#digits.endsWith(keypad.stopKey);
    if (this.#digits === "" || (!isStopped && nowMs - this.#digitMs < keypad.timeoutMs)) return;
    const digits = isStopped ? this.#digits.slice(0, -1) : this.#digits;
    this.#digits = "";
    if (digits === "") return;
    const text = `[Keypad input: ${digits}]`;
    this.#customerSpoke = true;
    this.#scribe?.customerSaid(text, nowMs);
    this.#model?.hear(text);
  }

  #tellState(): void {
    const state: VoiceState = this.#mixer.speaking
      ? "speaking"
      : this.#toolsRunning > 0 ? "thinking" : "listening";
    if (state === this.#told) return;
    this.#told = state;
    this.#options.brain.state(state);
  }

  #nowMs(): number {
    return this.#options.system.monotonicMs();
  }

  #end(reason: EndReason, cause: LegEndCause | null): void {
    if (this.#over) return;
    if (this.#reply) this.#scribe?.assistantSaid(this.#reply, true);
    this.#over = true;
    this.#tick?.cancel();
    this.#model?.close();
    this.#options.brain.over({ reason, cause, turns: this.#scribe?.latencies ?? [] });
  }
}
