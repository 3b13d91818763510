// Replies that other nodes are writing, for watchers at this node: requested from their owner, then
// received piece by piece. Lost pieces are requested again; while the owner is out of reach,
// watchers have only what is committed. The owner's half is live-sender.ts; made in app/cluster.ts.
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { conversationTopic, type CommittedData, type CommittedEvent } from "#events/events.ts";
import type { LiveCall, LiveReplyView } from "#events/live.ts";
import {
  isSameReply, liveSubject, type LiveHave, type LivePart, type ReplyQuestions,
} from "./live-replies.ts";
import { decoderOf } from "./message.ts";
import { WireFault, type Wire } from "./wire.ts";

interface RemoteRepliesOptions {
  questions: ReplyQuestions;
  wire: Wire;
  bus: EventBus;
  /** Whether this node writes the conversation's reply: then no other node is asked. */
  isOwn(conversationUuid: string): boolean;
  system: System;
  log: Logger;
}

interface RemoteReplies {
  /** The reply another node is writing, as far as it is known here. */
  live(conversationUuid: string): LiveReplyView | null;
  close(): void;
}

const decodePart = decoderOf(Type.Object({
  part: Type.Unsafe<LivePart>(Type.Object({
    turnId: Type.Number(),
    baseSequence: Type.Number(),
    from: Type.Number(),
    text: Type.String(),
    callsFrom: Type.Number(),
    calls: Type.Array(Type.Object({}, { additionalProperties: true })),
  }, { additionalProperties: true })),
}));

/** A reply as far as it has come here: from its beginning, without holes. */
class RemoteReply implements LiveReplyView {
  readonly turnId: number;
  readonly baseSequence: number;
  readonly calls: LiveCall[] = [];
  failure: LiveReplyView["failure"] = null;
  #text = "";

  constructor({ turnId, baseSequence }: LivePart) {
    this.turnId = turnId;
    this.baseSequence = baseSequence;
  }

  get shown(): number {
    return this.#text.length;
  }

  slice(from: number, to: number): string {
    return this.#text.slice(from, to);
  }

  get isEmpty(): boolean {
    return this.shown === 0 && this.calls.length === 0 && this.failure === null;
  }

  get have(): LiveHave {
    const { turnId, baseSequence, shown: chars, calls } = this;
    return { turnId, baseSequence, chars, calls: calls.length };
  }

  /** `gap`: an earlier piece has not arrived. `known`: all of this one had arrived already. */
  take({ from, text, callsFrom, calls, failure }: LivePart): "grown" | "known" | "gap" {
    if (from > this.shown || callsFrom > this.calls.length) return "gap";
    const before = [this.shown, this.calls.length, this.failure !== null];
    this.#text += text.slice(this.shown - from);
    this.calls.push(...calls.slice(this.calls.length - callsFrom));
    this.failure = failure;
    const after = [this.shown, this.calls.length, failure !== null];
    return before.every((one, index) => one === after[index]) ? "known" : "grown";
  }
}

/** One conversation that is watched here. */
class Watched {
  readonly uuid: string;
  reply: RemoteReply | null = null;
  readonly #options: RemoteRepliesOptions;
  readonly #unsubscribe: () => void;
  #waitMs: number = LIMITS.liveAskMs;
  #timer: Timer | null = null;
  #isAsking = false;
  #isOver = false;

  constructor(uuid: string, options: RemoteRepliesOptions) {
    this.uuid = uuid;
    this.#options = options;
    this.#unsubscribe = options.wire.subscribe(liveSubject(uuid), (data) => {
      const heard = decodePart(data);
      if (heard) this.#hear(heard.part);
    });
    void this.ask();
  }

  /** The reply; null while it is empty. */
  get shown(): RemoteReply | null {
    return this.reply && !this.reply.isEmpty ? this.reply : null;
  }

  /** A turn has begun: its first words come unasked; if they do not come, they are requested. */
  begun(): void {
    this.#askIn(LIMITS.liveAskMs);
  }

  /** The end of a turn is committed at `sequence`; a reply that begins there is its retry. */
  ended(turnId: number, sequence: number): void {
    const isOver = this.reply?.turnId === turnId && this.reply.baseSequence < sequence;
    if (isOver || this.reply === null) this.#forget();
  }

  /** Never rejects. */
  async ask(): Promise<void> {
    const { questions, isOwn, log } = this.#options;
    if (this.#isOver || this.#isAsking || isOwn(this.uuid)) return;
    this.#isAsking = true;
    const { reply } = this;
    const have = reply?.have ?? null;
    try {
      const part = await questions.ask(this.uuid, "live", { have });
      this.#isAsking = false;
      this.#take(part);
    } catch (error) {
      this.#isAsking = false;
      if (!(error instanceof WireFault)) {
        log.error({ err: error }, "could not request a reply from another node");
      } else if (error.reason === "nobody") {
        // Another turn may have begun meanwhile.
        if (this.reply === reply) this.#forget();
        return;
      // The wire is down: the reply is requested again once it is up.
      } else if (error.reason === "down") return;
    }
    this.#askAgain();
  }

  end(): void {
    this.#isOver = true;
    this.#forget();
    this.#unsubscribe();
  }

  #hear(part: LivePart): void {
    const isNew = !isSameReply(this.reply, part);
    this.#take(part);
    // The owner sends no more than the first words unless it is asked.
    if (isNew) void this.ask();
  }

  #take(part: LivePart): void {
    if (this.#isOver) return;
    const isNew = !isSameReply(this.reply, part);
    if (isNew && this.reply && part.baseSequence < this.reply.baseSequence) return;
    if (isNew && (part.from > 0 || part.callsFrom > 0)) {
      this.reply = null;
      return void this.ask();
    }
    if (isNew) this.reply = new RemoteReply(part);
    const taken = this.reply?.take(part);
    if (taken === "gap") return void this.ask();
    if (taken === "known") return;
    this.#options.bus.publish(conversationTopic(this.uuid), { kind: "live" });
    this.#waitMs = LIMITS.liveAskMs;
    this.#askAgain();
  }

  /** Asks after a silence, in which the last words may have been lost, with exponential backoff. */
  #askAgain(): void {
    this.#askIn(this.#waitMs);
    this.#waitMs = Math.min(2 * this.#waitMs, LIMITS.liveAskMsMax);
  }

  #askIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#isOver ? null : this.#options.system.after(ms, () => void this.ask());
  }

  #forget(): void {
    this.#timer?.cancel();
    this.reply = null;
    this.#waitMs = LIMITS.liveAskMs;
  }
}

const TOPIC = "conversation:";

export function createRemoteReplies(options: RemoteRepliesOptions): RemoteReplies {
  const { bus, wire } = options;
  const watched = new Map<string, Watched>();
  const ends = [
    bus.onInterest(({ topic, isWatched }) => {
      if (!topic.startsWith(TOPIC)) return;
      const uuid = topic.slice(TOPIC.length);
      watched.get(uuid)?.end();
      watched.delete(uuid);
      if (isWatched) watched.set(uuid, new Watched(uuid, options));
    }),
    bus.watch((events) => {
      for (const event of events) {
        const one = event.conversationId === null ? undefined : watched.get(event.conversationId);
        if (one) follow(one, event);
      }
    }),
    wire.onState((state) => {
      if (state === "up") for (const one of watched.values()) void one.ask();
    }),
  ];
  return {
    live: (uuid) => watched.get(uuid)?.shown ?? null,
    close: () => {
      for (const end of ends) end();
      for (const one of watched.values()) one.end();
      watched.clear();
    },
  };
}

/** Which turn an event of the log begins or ends; null: none. */
function turnMoved(
  { type, json }: CommittedEvent,
): { turnId: number; to: "begun" | "ended" } | null {
  if (type !== "message_added" && type !== "reply_failed") return null;
  const data = JSON.parse(json) as CommittedData;
  if (data.type === "reply_failed") return { turnId: data.turn_id, to: "ended" };
  if (data.type !== "message_added" || data.turn_id === null) return null;
  return { turnId: data.turn_id, to: data.message.role === "user" ? "begun" : "ended" };
}

function follow(one: Watched, event: CommittedEvent): void {
  const moved = turnMoved(event);
  if (moved?.to === "ended") one.ended(moved.turnId, event.sequence);
  else if (moved && one.reply?.turnId !== moved.turnId) one.begun();
}
