// One watcher of one topic, over any transport. It holds a position and pulls: committed events
// from the log, the reply in flight from its live text. Nothing is queued for a slow reader: once
// it has caught up with what was written, the session pulls again from its position. Notices are
// handled one at a time; those that arrive while the log is being read are handled afterwards, in
// order.
import { assertNever } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { nextTurn, type System, type Timer } from "#core/system.ts";
import type { EventBus, Notice } from "#events/bus.ts";
import type { CommittedData, CommittedEvent, Topic } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";
import {
  committedFrame, deltaFrame, eventData, makeFrame, mayEndReply, sharedData, sharedFrame,
  type Frame, type Position,
} from "./frames.ts";

export interface StreamSource {
  topic: Topic;
  /** The account that owns the topic. */
  accountId: number;
  newest(): Promise<number>;
  after(sequence: number, rows: number): Promise<CommittedEvent[]>;
  sequenceOf(event: CommittedEvent): number;
  /** The reply in flight; null where there is none. */
  live(): LiveReplyView | null;
  /** False once the watcher may see nothing more: its key was revoked; absent: always allowed. */
  allowed?(): Promise<boolean>;
  /**
   * The whole state at one sequence number, for watchers that start without a position or have
   * missed more than the log keeps; absent: they start at the present. Null: the subject is gone.
   */
  snapshot?(): Promise<{ sequence: number; members: object } | null>;
}

/** Where a watcher starts; `ahead`: it named a position that the log has not reached. */
export interface Start {
  position: Position;
  begins: "here" | "with a snapshot" | "ahead";
}

/** Null: from now on, with all of the reply in flight. */
export async function startFrom(source: StreamSource, position: Position | null): Promise<Start> {
  const newest = { sequence: await source.newest(), chars: 0 };
  if (position === null) {
    return { position: newest, begins: source.snapshot ? "with a snapshot" : "here" };
  }
  // The position comes from another database, or from before a restore: the client must reload.
  if (position.sequence > newest.sequence) return { position: newest, begins: "ahead" };
  return { position, begins: "here" };
}

/** `finished`: all that was asked for was sent. `slow`, `restart`: reconnect. `denied`: do not. */
export type CloseReason = "finished" | "slow" | "restart" | "denied";

export interface Sink {
  /** False when the client reads too slowly; the frames are accepted all the same. */
  send(frames: Frame[]): boolean;
  /** Sends the last frames and ends. */
  close(reason: CloseReason, frames: Frame[]): void;
}

interface SessionOptions {
  source: StreamSource;
  sink: Sink;
  bus: EventBus;
  system: System;
  log: Logger;
  start: Start;
  /** Close as `finished` after this turn's last event. */
  untilTurn?: number;
  /** Events right after `position` that the caller has at hand, so that the log is not read. */
  backlog?: CommittedEvent[];
  /** Close as `finished` after the events that are in the log now. */
  endsAtPresent?: boolean;
  /** Leave out the turn's failures: it was retried and answered. */
  skipsFailures?: boolean;
}

/** Where an event came from: the encoding of a published one is shared with other watchers. */
type Origin = "log" | "bus";

/** More gathered characters than this are sent before more events are read. */
const GATHER_CHARS_MAX = 64 * 1024;
/** More notices than this during a read are dropped in favour of another read of the log. */
const HEARD_MAX = 256;

type Resume = { kind: "resume"; position: Position; done: () => void };
type Heard = Notice | { kind: "begin" } | { kind: "pump" } | Resume;

export class Session {
  readonly #source: StreamSource;
  readonly #sink: Sink;
  readonly #system: System;
  readonly #log: Logger;
  readonly #untilTurn: number | null;
  readonly #endsAtPresent: boolean;
  readonly #skipsFailures: boolean;
  readonly #unsubscribe: () => void;
  #begins: Start["begins"];
  #backlog: CommittedEvent[];
  #position: Position;
  #heard: Heard[] = [];
  /** Resumes whose frames the client, too slow, has not been sent in full. */
  #resuming: (() => void)[] = [];
  #isTaking = false;
  /** The turn whose `reply_start` and function calls this session has sent. */
  #startedTurn: number | null = null;
  #callsSent = 0;
  #frames: Frame[] = [];
  #framesChars = 0;
  #congested = false;
  /** All that was asked for has been gathered. */
  #finished = false;
  #stallTimer: Timer | null = null;
  #closed = false;

  constructor(options: SessionOptions) {
    this.#source = options.source;
    this.#sink = options.sink;
    this.#system = options.system;
    this.#log = options.log;
    this.#untilTurn = options.untilTurn ?? null;
    this.#endsAtPresent = options.endsAtPresent ?? false;
    this.#skipsFailures = options.skipsFailures ?? false;
    this.#backlog = options.backlog ?? [];
    this.#position = options.start.position;
    this.#begins = options.start.begins;
    this.#unsubscribe = options.bus.subscribe(options.source.topic, (notice) => {
      if (!this.#congested) this.#hear(notice);
    }, options.source.accountId);
  }

  get position(): Position {
    return this.#position;
  }

  /** Sends what the watcher has missed; call once the sink can take frames. */
  start(): void {
    this.#hear({ kind: "begin" });
  }

  /**
   * Moves to the position that a client names on an open connection; resolves once the client has
   * been sent everything from there on.
   */
  resume(position: Position): Promise<void> {
    return new Promise((done) => this.#hear({ kind: "resume", position, done }));
  }

  /** The client has read everything written so far. */
  drained(): void {
    this.#congested = false;
    this.#stallTimer?.cancel();
    this.#stallTimer = null;
    this.#hear({ kind: "pump" });
  }

  /** For heartbeats: closes a watcher that may see nothing more. */
  async check(): Promise<void> {
    try {
      if (!this.#closed && await this.#source.allowed?.() === false) this.close("denied");
    } catch (error) {
      this.#fail(error);
    }
  }

  close(reason: Exclude<CloseReason, "finished">): void {
    if (this.#closed) return;
    this.end();
    // Frames gathered but not sent are read again when the client reconnects.
    this.#sink.close(reason, []);
  }

  /** The transport is gone: stop without touching it. Idempotent. */
  end(): void {
    this.#closed = true;
    this.#forget();
    for (const done of this.#resuming.splice(0)) done();
    this.#unsubscribe();
    this.#stallTimer?.cancel();
  }

  #hear(heard: Heard): void {
    this.#heard.push(heard);
    if (this.#closed) return this.#forget();
    if (this.#heard.length > HEARD_MAX) {
      const last = this.#heard.findLast((one) => one.kind === "resume");
      this.#forget(last);
      this.#heard = [...last ? [last] : [], { kind: "pump" }];
    }
    if (!this.#isTaking) this.#takeAll();
  }

  #forget(kept?: Heard): void {
    for (const one of this.#heard.splice(0)) if (one.kind === "resume" && one !== kept) one.done();
  }

  /** Handles notices synchronously for as long as nothing has to be read. */
  #takeAll(): void {
    this.#isTaking = true;
    try {
      for (let next = this.#heard.shift(); next; next = this.#heard.shift()) {
        const reading = this.#take(next);
        if (reading) return void this.#takeRest(reading);
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#isTaking = false;
  }

  /** Never rejects. */
  async #takeRest(reading: Promise<void>): Promise<void> {
    try {
      await reading;
    } catch (error) {
      this.#fail(error);
    }
    this.#takeAll();
  }

  #fail(error: unknown): void {
    this.#log.error({ err: error, topic: this.#source.topic }, "could not read a stream");
    this.close("restart");
  }

  #take(heard: Heard): Promise<void> | void {
    if (heard.kind === "resume") return this.#resume(heard);
    if (this.#congested) return;
    switch (heard.kind) {
      case "begin":
        return this.#begin();
      case "pump":
      case "missed":
        return this.#pump();
      case "committed": {
        const sequence = this.#source.sequenceOf(heard.event);
        if (sequence <= this.#position.sequence) return;
        if (sequence > this.#position.sequence + 1) return this.#pump();
        this.#gatherCommitted(heard.event, "bus");
        // A reply's first words may be live before the message they answer is published.
        this.#gatherLive();
        return this.#flush();
      }
      case "passing":
        this.#gather(makeFrame(heard.type, null, heard.members));
        return this.#flush();
      case "live":
        this.#gatherLive();
        return this.#flush();
      default:
        return assertNever(heard);
    }
  }

  #begin(): Promise<void> | void {
    const backlog = this.#backlog.splice(0);
    if (backlog.length === 0) return this.#pump();
    for (const event of backlog) this.#gatherCommitted(event, "bus");
    // No reply in flight: its result may have been committed before this session subscribed.
    if (!this.#source.live()) return this.#pump();
    this.#gatherLive();
    return this.#flush();
  }

  async #resume({ position, done }: Resume): Promise<void> {
    this.#resuming.push(done);
    const { position: from, begins } = await startFrom(this.#source, position);
    this.#startedTurn = null;
    this.#position = from;
    this.#begins = begins;
    await this.#pump();
  }

  get #isOver(): boolean {
    return this.#closed || this.#congested || this.#finished;
  }

  /** Brings the watcher from its position to the present, a page at a time. */
  async #pump(): Promise<void> {
    if (this.#begins !== "here") await this.#gatherBeginning();
    // Read before the events, so that events committed in between do not count as a gap.
    const newest = await this.#source.newest();
    while (!this.#isOver) {
      const events = await this.#source.after(this.#position.sequence, LIMITS.replayPageRows);
      const oldest = events[0] ? this.#source.sequenceOf(events[0]) : newest + 1;
      if (oldest > this.#position.sequence + 1) {
        // The missing events are past their retention: the client must reload the history.
        if (await this.#gatherSnapshot()) continue;
        const sequence = oldest - 1;
        this.#position = { sequence, chars: 0 };
        this.#gather(makeFrame("stream_reset", this.#position, {}));
      }
      for (const event of events) {
        if (this.#isOver) break;
        this.#gatherCommitted(event, "log");
        if (this.#framesChars > GATHER_CHARS_MAX) await this.#flush();
      }
      if (this.#position.sequence >= newest) break;
      await this.#flush();
      // SQLite answers synchronously: a client that keeps up would block everybody else.
      if (events.length === LIMITS.replayPageRows) await nextTurn();
    }
    if (!this.#isOver) {
      this.#gatherLive();
      this.#finished ||= this.#endsAtPresent;
    }
    // Passing notices heard during the read may be older than the events it found.
    this.#heard = this.#heard.filter(({ kind }) => kind !== "passing");
    if (!this.#congested) await this.#flush();
    if (!this.#congested) for (const done of this.#resuming.splice(0)) done();
  }

  async #gatherBeginning(): Promise<void> {
    const isAhead = this.#begins === "ahead";
    this.#begins = "here";
    if (await this.#gatherSnapshot() || !isAhead) return;
    this.#gather(makeFrame("stream_reset", this.#position, {}));
  }

  /** False when the source has no snapshot. */
  async #gatherSnapshot(): Promise<boolean> {
    const snapshot = await this.#source.snapshot?.();
    if (!snapshot) return false;
    this.#position = { sequence: snapshot.sequence, chars: 0 };
    this.#gather(makeFrame("snapshot", this.#position, snapshot.members));
    return true;
  }

  #gatherCommitted(event: CommittedEvent, from: Origin): void {
    const sequence = this.#source.sequenceOf(event);
    const isConversation = this.#source.topic.startsWith("conversation:");
    const turnId = isConversation && mayEndReply(event)
      ? this.#finishReply(from === "bus" ? sharedData(event) : eventData(event))
      : null;
    this.#position = { sequence, chars: 0 };
    this.#startedTurn = null;
    const isPast = this.#skipsFailures && event.type === "reply_failed";
    if (isPast && turnId === this.#untilTurn) return;
    this.#gather(from === "bus" ? sharedFrame(event, sequence) : committedFrame(event, sequence));
    if (turnId !== null && turnId === this.#untilTurn) this.#finished = true;
  }

  /**
   * Before a committed reply: whatever of its text the watcher has not had as deltas, so that the
   * deltas of every reply join to its text, live or replayed. Returns the turn the event ends.
   */
  #finishReply(data: CommittedData): number | null {
    if (data.type === "reply_failed") return data.turn_id;
    if (data.type !== "message_added" || data.turn_id === null) return null;
    if (data.message.role !== "assistant") return null;
    const { content } = data.message;
    const { sequence, chars } = this.#position;
    this.#gatherStart(data.turn_id);
    if (chars < content.length) {
      this.#position = { sequence, chars: content.length };
      this.#gather(makeFrame("reply_delta", this.#position, {
        turn_id: data.turn_id, text: content.slice(chars),
      }));
    }
    this.#gather(makeFrame("reply_end", this.#position, {
      turn_id: data.turn_id, stopped: data.message.stopped === true,
      ...(data.message.truncated === true ? { truncated: true } : {}),
    }));
    return data.turn_id;
  }

  #gatherStart(turnId: number): void {
    if (this.#startedTurn === turnId) return;
    this.#startedTurn = turnId;
    this.#callsSent = 0;
    if (this.#position.chars === 0) {
      this.#gather(makeFrame("reply_start", this.#position, { turn_id: turnId }));
    }
  }

  #gatherLive(): void {
    const live = this.#source.live();
    if (!live || live.baseSequence !== this.#position.sequence) return;
    this.#gatherStart(live.turnId);
    for (; this.#callsSent < live.calls.length; this.#callsSent += 1) {
      const call = live.calls[this.#callsSent];
      if (!call || call.offset < this.#position.chars) continue;
      this.#gatherText(live, call.offset);
      this.#gather(makeFrame(call.type, this.#position, { turn_id: live.turnId, ...call.members }));
    }
    this.#gatherText(live, live.shown);
    if (live.failure) {
      this.#gather(makeFrame("reply_failed", null, { turn_id: live.turnId, ...live.failure }));
      if (live.turnId === this.#untilTurn) this.#finished = true;
    }
  }

  #gatherText(live: LiveReplyView, to: number): void {
    const { sequence, chars } = this.#position;
    if (chars >= to) return;
    this.#position = { sequence, chars: to };
    this.#gather(deltaFrame(live, chars, to));
  }

  #gather(frame: Frame): void {
    this.#frames.push(frame);
    this.#framesChars += frame.json.length;
  }

  #flush(): Promise<void> | void {
    if (this.#closed || (this.#frames.length === 0 && !this.#finished)) return;
    return this.#source.allowed ? this.#sendIfAllowed(this.#source.allowed()) : this.#send();
  }

  async #sendIfAllowed(allowed: Promise<boolean>): Promise<void> {
    const isAllowed = await allowed;
    if (this.#closed) return;
    if (isAllowed) this.#send();
    else this.close("denied");
  }

  #send(): void {
    const frames = this.#frames;
    this.#frames = [];
    this.#framesChars = 0;
    if (this.#finished) {
      this.end();
      return this.#sink.close("finished", frames);
    }
    if (this.#sink.send(frames)) return;
    this.#congested = true;
    this.#stallTimer ??= this.#system.after(LIMITS.stalledReaderMs, () => this.close("slow"));
  }
}
