// A reply while it is being written: its text so far, how much of it is shown, and the means to
// stop it. Watchers pull from here by position, so a slow one delays nothing and misses nothing.
import { LIMITS } from "#core/limits.ts";
import type { System, Timer } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { FunctionCall, ReplyFailure, Topic } from "#events/events.ts";
import type { LiveCall, LiveReplyView } from "#events/live.ts";
import type { ModelUsage } from "#providers/models/port.ts";
import type { AsksForPerson } from "#features/conversations/records.ts";

export class LiveReply implements LiveReplyView {
  readonly turnId: number;
  readonly baseSequence: number;
  readonly calls: LiveCall[] = [];
  readonly functionCalls: FunctionCall[] = [];
  shown = 0;
  failure: { reason: ReplyFailure; error: string } | null = null;
  /** Aborted by `stop`, by the turn's deadline or by the end of the process. */
  readonly abort: AbortController;
  stopped = false;
  /** The reply was cut off at its token limit. */
  truncated = false;
  /** The usage that models have reported so far; null: none. */
  usage: ModelUsage | null = null;
  /** Set when the assistant ends the conversation; takes effect when the reply is stored. */
  endsConversation = false;
  /** Set when the assistant requests a person; takes effect when the reply is stored. */
  asksForPerson: AsksForPerson | null = null;
  #text = "";
  #closed = false;
  #flushTimer: Timer | null = null;
  #lastFlushMs = -Infinity;
  readonly #bus: EventBus;
  readonly #topic: Topic;
  readonly #system: System;

  constructor(args: {
    turnId: number;
    baseSequence: number;
    topic: Topic;
    bus: EventBus;
    system: System;
    abort: AbortController;
  }) {
    this.abort = args.abort;
    this.turnId = args.turnId;
    this.baseSequence = args.baseSequence;
    this.#topic = args.topic;
    this.#bus = args.bus;
    this.#system = args.system;
  }

  get text(): string {
    return this.#text;
  }

  slice(from: number, to: number): string {
    return this.#text.slice(from, to);
  }

  /** The first text is shown at once, later text at most every `deltaCoalesceMs`. */
  append(text: string): void {
    this.#text += text;
    if (this.#flushTimer) return;
    const sinceMs = this.#system.monotonicMs() - this.#lastFlushMs;
    if (sinceMs >= LIMITS.deltaCoalesceMs) this.#flush();
    else {
      this.#flushTimer = this.#system.after(LIMITS.deltaCoalesceMs - sinceMs, () => this.#flush());
    }
  }

  addCall(call: Omit<LiveCall, "offset">): void {
    this.calls.push({ ...call, offset: this.#text.length });
    this.#flush();
  }

  addUsage({ inputTokens, outputTokens }: ModelUsage): void {
    const before = this.usage ?? { inputTokens: 0, outputTokens: 0 };
    this.usage = {
      inputTokens: before.inputTokens + inputTokens,
      outputTokens: before.outputTokens + outputTokens,
    };
  }

  /** Keeps what has been shown and drops the rest; false when it is over or stopped already. */
  stop(): boolean {
    if (this.#closed || this.abort.signal.aborted) return false;
    this.#cancelFlush();
    this.stopped = true;
    this.abort.abort(new Error("stopped by the client"));
    return true;
  }

  /** No more text will come: what is not shown yet arrives with the committed message. */
  close(): void {
    this.#closed = true;
    this.#cancelFlush();
  }

  /** Notifies watchers of a failure that could not be stored, though nothing is committed. */
  failUnstored(error: string): void {
    this.failure = { reason: "failed", error };
    this.#bus.publish(this.#topic, { kind: "live" });
  }

  #flush(): void {
    this.#cancelFlush();
    this.#lastFlushMs = this.#system.monotonicMs();
    this.shown = this.#text.length;
    this.#bus.publish(this.#topic, { kind: "live" });
  }

  #cancelFlush(): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = null;
  }
}
