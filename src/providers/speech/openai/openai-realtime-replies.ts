// The replies of one session over the Realtime protocol: which is under way, which functions it
// called, and what is to be asked for once it has ended, for the server makes one at a time. Used
// by openai-realtime.ts.
import type { Logger } from "#core/logger.ts";
import {
  speakingOf, WIRE_RATE, type CalledFunction, type RealtimeEvent,
} from "./openai-realtime-wire.ts";
import { SoundOfReply } from "#providers/speech/model-sound.ts";
import type { SpeechToSpeechEvent } from "#providers/speech/port.ts";

const WAITING_MAX = 16;
const CALLS_PER_REPLY_MAX = 32;
const CALLS_UNANSWERED_MAX = 64;
const REPLY_CHARS_MAX = 64 * 1024;
const ITEMS_KEPT = 16;

/** Why a reply is asked for: to say a text, to go on after what was added, to answer speech. */
type Wish = { kind: "say"; text: string } | { kind: "go_on" } | { kind: "answer" };

interface Asked {
  eventId: string;
  wish: Wish;
}

interface Reply {
  readonly id: string;
  readonly sound: SoundOfReply;
  /** Ids of the function calls reported, and of those still unanswered. */
  readonly called: Set<string>;
  readonly unanswered: Set<string>;
  readonly names: Map<string, string>;
  chars: number;
  isDone: boolean;
  /** The person has interrupted it: nothing more of it is reported, and it is not continued. */
  isCut: boolean;
}

interface RepliesOptions {
  rate: number;
  speaks: boolean;
  log: Logger;
  publish(event: SpeechToSpeechEvent): void;
  /** Gives the event an id and returns it. */
  send(event: { type: string; [field: string]: unknown }): string;
}

export class Replies {
  readonly #options: RepliesOptions;
  #active: Reply | null = null;
  /** Asked for and not begun. */
  #asked: Asked | null = null;
  /** The request that seems to have begun last; the server may have begun a reply of its own. */
  #begun: Asked | null = null;
  #waiting: Wish[] = [];
  /** The person said something while a reply was under way, and it is not being answered yet. */
  #owesAnswer = false;
  #isReady = false;
  /** Texts of the person from before the session was ready. */
  #early: string[] = [];
  readonly #byCall = new Map<string, Reply>();
  /** Samples received of the newest items, at the wire's rate. */
  readonly #itemSamples = new Map<string, number>();

  constructor(options: RepliesOptions) {
    this.#options = options;
  }

  ready(): void {
    this.#isReady = true;
    const texts = this.#early;
    this.#early = [];
    for (const text of texts) this.sendText(text);
    this.#pump();
  }

  say(text: string): void {
    this.#wish({ kind: "say", text });
  }

  /** Words of the person that were not spoken. */
  sendText(text: string): void {
    if (!this.#isReady) {
      if (this.#early.length < WAITING_MAX) this.#early.push(text);
      return;
    }
    const item = { type: "message", role: "user", content: [{ type: "input_text", text }] };
    this.#options.send({ type: "conversation.item.create", item });
    this.#wish({ kind: "go_on" });
  }

  /** The speech will be answered; a server that is still replying may fail to do so. */
  committed(): void {
    if (this.#active !== null) this.#owesAnswer = true;
  }

  started(id: string): void {
    if (this.#active?.id === id) return;
    this.#begun = this.#asked;
    this.#asked = null;
    this.#owesAnswer = false;
    if (this.#active) this.#finish(this.#active);
    this.#active = {
      id,
      sound: new SoundOfReply({ rate: this.#options.rate, wireRate: WIRE_RATE }),
      called: new Set(),
      unanswered: new Set(),
      names: new Map(),
      chars: 0,
      isDone: false,
      isCut: false,
    };
    this.#options.publish({ kind: "reply_start" });
  }

  audio({ responseId, itemId, base64 }: Extract<RealtimeEvent, { kind: "audio" }>): void {
    const reply = this.#reported(responseId);
    if (!reply || !this.#options.speaks) return;
    const sound = reply.sound.take(base64);
    if (!sound) return;
    const { pcm, samples } = sound;
    this.#countItem(itemId, samples);
    if (pcm.length > 0) this.#options.publish({ kind: "audio", itemId, pcm });
  }

  text({ responseId, itemId, text }: Extract<RealtimeEvent, { kind: "text" }>): void {
    const reply = this.#reported(responseId);
    if (!reply || text === "") return;
    reply.chars += text.length;
    if (reply.chars > REPLY_CHARS_MAX) return;
    this.#options.publish({ kind: "text", itemId, text });
  }

  functionNamed(itemId: string, name: string): void {
    const names = this.#active?.names;
    if (names && names.size < CALLS_PER_REPLY_MAX) names.set(itemId, name);
  }

  /** A function is reported once, though the server has up to three events for it. */
  functionCalled(responseId: string | null, call: CalledFunction): void {
    const reply = this.#reported(responseId);
    const { callId, argumentsJson } = call;
    const name = call.name ?? reply?.names.get(call.itemId);
    // Its item follows, with the name.
    if (!reply || name === undefined || this.#byCall.has(callId)) return;
    if (reply.called.has(callId) || reply.called.size >= CALLS_PER_REPLY_MAX) return;
    if (this.#byCall.size >= CALLS_UNANSWERED_MAX) return;
    reply.called.add(callId);
    reply.unanswered.add(callId);
    this.#byCall.set(callId, reply);
    this.#options.publish({ kind: "function_call", callId, name, argumentsJson });
  }

  functionAnswered(callId: string, output: string): void {
    const reply = this.#byCall.get(callId);
    if (!reply) return;
    this.#byCall.delete(callId);
    reply.unanswered.delete(callId);
    const item = { type: "function_call_output", call_id: callId, output };
    this.#options.send({ type: "conversation.item.create", item });
    this.#goOn(reply);
  }

  ended(event: Extract<RealtimeEvent, { kind: "response_end" }>): void {
    const reply = this.#active;
    if (reply?.id !== event.responseId) return;
    for (const call of event.calls) this.functionCalled(reply.id, call);
    this.#finish(reply);
  }

  /** Whether the complaint was about a reply and is dealt with. */
  failed({ eventId, code, type }: Extract<RealtimeEvent, { kind: "error" }>): boolean {
    const refused = [this.#asked, this.#begun].find((asked) => asked?.eventId === eventId);
    if (refused) {
      if (refused === this.#asked) this.#asked = null;
      this.#begun = null;
      // The server has begun a reply of its own, which answers the speech if that was the wish.
      const isBusy = code === "conversation_already_has_active_response";
      if (isBusy && refused.wish.kind !== "answer") this.#waiting.unshift(refused.wish);
      if (!isBusy) this.#pump();
      return isBusy;
    }
    // Some servers send nothing but this when a reply fails.
    if (eventId !== null || type !== "server_error" || !this.#active) return false;
    this.#finish(this.#active);
    return false;
  }

  interrupted(heard: { itemId: string; playedMs: number; text: string } | null): void {
    const active = this.#active;
    if (active && !active.isCut) {
      active.isCut = true;
      this.#options.send({ type: "response.cancel", response_id: active.id });
    }
    if (!heard) return;
    if (this.#options.speaks) this.#truncate(heard.itemId, heard.playedMs);
    else this.#shorten(heard.itemId, heard.text);
  }

  /** The protocol truncates audio only: a text is replaced by the part of it that was heard. */
  #shorten(itemId: string, text: string): void {
    this.#options.send({ type: "conversation.item.delete", item_id: itemId });
    if (text === "") return;
    const item = { type: "message", role: "assistant", content: [{ type: "output_text", text }] };
    this.#options.send({ type: "conversation.item.create", item });
  }

  #truncate(itemId: string, playedMs: number): void {
    const samples = this.#itemSamples.get(itemId);
    if (samples === undefined) return;
    // A position past the end of the item would be refused.
    const sentMs = Math.floor((samples * 1000) / WIRE_RATE);
    const audioEndMs = Math.min(sentMs, Math.max(0, Math.floor(playedMs)));
    this.#options.send({
      type: "conversation.item.truncate",
      item_id: itemId,
      content_index: 0,
      audio_end_ms: audioEndMs,
    });
  }

  /** The reply an event belongs to, unless nothing of it is reported any more. */
  #reported(responseId: string | null): Reply | null {
    const reply = this.#active;
    if (!reply || reply.isCut) return null;
    return responseId === null || responseId === reply.id ? reply : null;
  }

  #countItem(itemId: string, samples: number): void {
    const before = this.#itemSamples.get(itemId) ?? 0;
    this.#itemSamples.delete(itemId);
    this.#itemSamples.set(itemId, before + samples);
    const [oldest] = this.#itemSamples.keys();
    if (this.#itemSamples.size > ITEMS_KEPT && oldest !== undefined) {
      this.#itemSamples.delete(oldest);
    }
  }

  #finish(reply: Reply): void {
    reply.isDone = true;
    this.#active = null;
    this.#options.publish({ kind: "reply_end" });
    if (this.#owesAnswer) this.#wish({ kind: "answer" });
    this.#owesAnswer = false;
    this.#goOn(reply);
    this.#pump();
  }

  #goOn(reply: Reply): void {
    if (!reply.isDone || reply.isCut) return;
    if (reply.called.size > 0 && reply.unanswered.size === 0) this.#wish({ kind: "go_on" });
  }

  #wish(wish: Wish): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.#options.log.warn({ wish: wish.kind }, "dropped a requested reply: too many are waiting");
      return;
    }
    this.#waiting.push(wish);
    this.#pump();
  }

  #pump(): void {
    if (!this.#isReady || this.#active || this.#asked) return;
    const wish = this.#waiting.shift();
    if (!wish) return;
    // Any reply answers all that was said and all that functions returned before it.
    if (wish.kind !== "say") this.#waiting = this.#waiting.filter(({ kind }) => kind === "say");
    const response = wish.kind === "say" ? { response: speakingOf(wish.text) } : {};
    const eventId = this.#options.send({ type: "response.create", ...response });
    this.#asked = { eventId, wish };
  }
}
