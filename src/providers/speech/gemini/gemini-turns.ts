// Who speaks in one session over Gemini's Live interface: from the vendor's messages about what it
// hears, what it answers and interruptions, turns are reported to the call. Used by gemini-live.ts.
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import { jsonOf, recordOf } from "#core/values.ts";
import { sayExactly, SoundOfReply } from "#providers/speech/model-sound.ts";
import type { SpeechToSpeechEvent } from "#providers/speech/port.ts";
import {
  answersMessage, RATE_OUT, textMessage, type GeminiAnswer, type GeminiCall, type GeminiContent,
  type GeminiMessage,
} from "./gemini-live-wire.ts";

const WAITING_MAX = 16;
const CALLS_UNANSWERED_MAX = 64;
const REPLY_CHARS_MAX = 64 * 1024;
const USER_TEXT_CHARS_MAX = 8192;
/** The person counts as silent when nothing was heard for this long, answered or not. */
const QUIET_MS = 3000;

interface Reply {
  readonly itemId: string;
  readonly sound: SoundOfReply;
  chars: number;
  /** The person has interrupted it: nothing more of it is reported. */
  isCut: boolean;
}

/** Functions called in one message, whose results are sent in one message. */
interface Calls {
  readonly unanswered: Map<string, string>;
  readonly answers: GeminiAnswer[];
}

interface TurnsOptions {
  rate: number;
  speaks: boolean;
  system: System;
  log: Logger;
  publish(event: SpeechToSpeechEvent): void;
  send(message: object): void;
}

export class GeminiTurns {
  readonly #options: TurnsOptions;
  #reply: Reply | null = null;
  #replies = 0;
  #calls: Calls[] = [];
  #isTalking = false;
  #quiet: Timer | null = null;
  /** Words of the person that are not reported as final. */
  #heard = "";
  /** Texts that the model is to answer, and the one that was sent and is not being answered yet. */
  #waiting: string[] = [];
  #asked: string | null = null;
  #isReady = false;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** Nobody speaks and nothing is waited for. */
  get isIdle(): boolean {
    return !this.#reply && !this.#isTalking && this.#asked === null && this.#calls.length === 0;
  }

  /** The session takes messages: those that wait are sent. */
  ready(): void {
    this.#isReady = true;
    this.#pump();
  }

  /** The session takes no messages until it is ready again, and abandons whatever it has begun. */
  lost(): void {
    this.#isReady = false;
    if (this.#asked !== null) this.#waiting.unshift(this.#asked);
    this.#asked = null;
    this.#calls = [];
    this.#endReply();
    this.#endSpeech();
  }

  close(): void {
    this.#quiet?.cancel();
  }

  say(text: string): void {
    this.sendText(sayExactly(text));
  }

  sendText(text: string): void {
    if (this.#waiting.length >= WAITING_MAX) {
      return this.#options.log.warn("dropped a text for the model: too many are waiting");
    }
    this.#waiting.push(text);
    this.#pump();
  }

  /** Sends the vendor nothing: it stops by itself, and counts all that it has sent as said. */
  interrupt(): void {
    if (this.#reply) this.#reply.isCut = true;
    this.#pump();
  }

  receive({ serverContent, toolCall, toolCallCancellation, voiceActivity }: GeminiMessage): void {
    if (voiceActivity?.voiceActivityType === "ACTIVITY_START") this.#beginSpeech();
    if (voiceActivity?.voiceActivityType === "ACTIVITY_END") this.#endSpeech();
    if (serverContent) this.#receiveContent(serverContent);
    if (toolCall) this.#receiveCalls(toolCall.functionCalls ?? []);
    for (const id of toolCallCancellation?.ids ?? []) this.#drop(id);
  }

  functionAnswered(callId: string, resultJson: string): void {
    const calls = this.#calls.find(({ unanswered }) => unanswered.has(callId));
    const name = calls?.unanswered.get(callId);
    if (!calls || name === undefined) return;
    const output = jsonOf(resultJson);
    calls.unanswered.delete(callId);
    calls.answers.push({ id: callId, name, response: recordOf(output) ?? { output } });
    this.#answer(calls);
  }

  #receiveContent(content: GeminiContent): void {
    const { inputTranscription: heard, interrupted, modelTurn, outputTranscription } = content;
    if (heard?.text) this.#hear(heard.text);
    if (heard?.finished) this.#endSpeech();
    if (interrupted) {
      if (this.#reply) this.#reply.isCut = true;
      this.#beginSpeech();
    }
    for (const { inlineData } of modelTurn?.parts ?? []) {
      if (inlineData?.data) this.#speak(inlineData.data);
    }
    if (outputTranscription?.text) this.#write(outputTranscription.text);
    if (content.turnComplete) this.#turnIsOver();
  }

  /** Words that come while the model replies belong to what it replies to. */
  #hear(text: string): void {
    if (!this.#reply) this.#beginSpeech();
    this.#heard = `${this.#heard}${text}`.slice(0, USER_TEXT_CHARS_MAX);
    this.#options.publish({ kind: "user_text", text: this.#heard.trim(), isFinal: false });
  }

  #beginSpeech(): void {
    this.#quiet?.cancel();
    this.#quiet = this.#options.system.after(QUIET_MS, () => this.#endSpeech());
    if (this.#isTalking) return;
    this.#isTalking = true;
    this.#options.publish({ kind: "speech_start" });
  }

  #endSpeech(): void {
    this.#quiet?.cancel();
    if (this.#isTalking) {
      this.#isTalking = false;
      this.#options.publish({ kind: "speech_end" });
    }
    const text = this.#heard.trim();
    this.#heard = "";
    if (text !== "") this.#options.publish({ kind: "user_text", text, isFinal: true });
  }

  /** The reply in progress. Begins one if there is none, which ends the person's turn. */
  #begun(): Reply {
    if (this.#reply) return this.#reply;
    this.#endSpeech();
    this.#asked = null;
    this.#replies += 1;
    const { rate } = this.#options;
    this.#reply = {
      itemId: `reply-${this.#replies}`,
      sound: new SoundOfReply({ rate, wireRate: RATE_OUT }),
      chars: 0,
      isCut: false,
    };
    this.#options.publish({ kind: "reply_start" });
    return this.#reply;
  }

  #speak(base64: string): void {
    const reply = this.#begun();
    const sound = reply.isCut || !this.#options.speaks ? null : reply.sound.take(base64);
    if (!sound || sound.pcm.length === 0) return;
    this.#options.publish({ kind: "audio", itemId: reply.itemId, pcm: sound.pcm });
  }

  #write(text: string): void {
    const reply = this.#begun();
    reply.chars += text.length;
    if (reply.isCut || reply.chars > REPLY_CHARS_MAX) return;
    this.#options.publish({ kind: "text", itemId: reply.itemId, text });
  }

  /** The reply ends with function calls; what the model says to the results is another reply. */
  #receiveCalls(called: GeminiCall[]): void {
    if (called.length === 0) return;
    const { isCut } = this.#begun();
    const calls: Calls = { unanswered: new Map(), answers: [] };
    const known = this.#calls.reduce((sum, { unanswered }) => sum + unanswered.size, 0);
    for (const [number, { id, name }] of called.entries()) {
      // The model waits for an answer to each.
      const isTooMany = known + number >= CALLS_UNANSWERED_MAX;
      if (!isCut && !isTooMany) calls.unanswered.set(id, name);
      else calls.answers.push({ id, name, response: { error: "It was not called." } });
    }
    this.#calls.push(calls);
    for (const { args, id, name } of called) {
      if (!calls.unanswered.has(id)) continue;
      const argumentsJson = JSON.stringify(args ?? {});
      this.#options.publish({ kind: "function_call", callId: id, name, argumentsJson });
    }
    this.#endReply();
    this.#answer(calls);
  }

  #answer(calls: Calls): void {
    if (calls.unanswered.size > 0 || !this.#calls.includes(calls)) return;
    this.#calls = this.#calls.filter((other) => other !== calls);
    if (calls.answers.length > 0) this.#options.send(answersMessage(calls.answers));
  }

  /** The model no longer waits for this call's result. */
  #drop(callId: string): void {
    const calls = this.#calls.find(({ unanswered }) => unanswered.delete(callId));
    if (calls) this.#answer(calls);
  }

  #turnIsOver(): void {
    // After an interrupted reply, the text that interrupted it is still to be answered.
    if (!this.#reply?.isCut) this.#asked = null;
    this.#endReply();
    this.#pump();
  }

  #endReply(): void {
    if (!this.#reply) return;
    this.#reply = null;
    this.#options.publish({ kind: "reply_end" });
  }

  #pump(): void {
    const isSpeaking = this.#reply !== null && !this.#reply.isCut;
    const isBusy = this.#asked !== null || isSpeaking || this.#calls.length > 0;
    const text = this.#isReady && !isBusy ? this.#waiting.shift() : undefined;
    if (text === undefined) return;
    this.#asked = text;
    this.#options.send(textMessage(text));
  }
}
