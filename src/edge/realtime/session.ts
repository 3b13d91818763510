// One watcher of one topic, whatever the transport. It holds a position and pulls: committed
// events from the log, the reply in flight from its live text. Nothing is queued for a slow
// reader; when it has caught up with what was written, it pulls again from where it stands.
import { LIMITS } from "#core/limits.ts";
import type { System, Timer } from "#core/system.ts";
import type { EventBus, Notice } from "#events/bus.ts";
import type { CommittedEvent, Topic } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";
import { committedFrame, eventData, makeFrame, type Frame, type Position } from "./frames.ts";

export interface StreamSource {
  topic: Topic;
  newest(): number;
  after(sequence: number, rows: number): CommittedEvent[];
  sequenceOf(event: CommittedEvent): number;
  /** The reply in flight; null where there is none. */
  live(): LiveReplyView | null;
  /** False once the watcher may see nothing more, e.g. its key was revoked. */
  allowed(): boolean;
  /**
   * The whole state as of one sequence number, for watchers who begin without a position or have
   * missed more than the log keeps; absent: they begin at the present. Null: it is gone.
   */
  snapshot?(): { sequence: number; members: object } | null;
}

/** `finished`: what was asked for is complete. `slow`, `restart`: come back. `denied`: do not. */
export type CloseReason = "finished" | "slow" | "restart" | "denied";

export interface Sink {
  /** False when the client reads too slowly; the frames are taken all the same. */
  send(frames: Frame[]): boolean;
  /** Sends the last frames and ends. */
  close(reason: CloseReason, frames: Frame[]): void;
}

interface SessionOptions {
  source: StreamSource;
  sink: Sink;
  bus: EventBus;
  system: System;
  /** Null: from now on, with the whole of a reply in flight. */
  position: Position | null;
  /** Close as `finished` after this turn's last event. */
  untilTurn?: number;
  /** Events right after `position` that the caller has at hand, so that the log is not read. */
  backlog?: CommittedEvent[];
  /** Leave out the turn's failures: it was tried again and answered. */
  skipsFailures?: boolean;
}

/** Frames gathered beyond this leave before more are read. */
const GATHER_CHARS_MAX = 64 * 1024;

export class Session {
  readonly #source: StreamSource;
  readonly #sink: Sink;
  readonly #system: System;
  readonly #untilTurn: number | null;
  readonly #skipsFailures: boolean;
  readonly #unsubscribe: () => void;
  /** The first frame is a snapshot. */
  readonly #beginsAnew: boolean;
  /** The client named a position that the log has not reached. */
  #isAhead = false;
  #backlog: CommittedEvent[];
  #position: Position;
  /** The turn whose `reply_start` and calls this session has sent. */
  #startedTurn: number | null = null;
  #callsSent = 0;
  #frames: Frame[] = [];
  #framesChars = 0;
  #congested = false;
  #stallTimer: Timer | null = null;
  #closed = false;

  constructor(options: SessionOptions) {
    this.#source = options.source;
    this.#sink = options.sink;
    this.#system = options.system;
    this.#untilTurn = options.untilTurn ?? null;
    this.#skipsFailures = options.skipsFailures ?? false;
    this.#backlog = options.backlog ?? [];
    this.#position = this.#backlog.length > 0 && options.position
      ? options.position
      : this.#startFrom(options.position);
    this.#beginsAnew = options.position === null && options.source.snapshot !== undefined;
    this.#unsubscribe = options.bus.subscribe(options.source.topic, (notice) =>
      this.#notice(notice));
  }

  get position(): Position {
    return this.#position;
  }

  /** Sends what the watcher has missed; call once the sink can take frames. */
  start(): void {
    if (this.#beginsAnew) this.#gatherSnapshot();
    const backlog = this.#backlog.splice(0);
    if (backlog.length === 0) return this.#pump();
    for (const event of backlog) this.#gatherCommitted(event);
    this.#gatherLive();
    this.#flush();
  }

  /** Goes back (or ahead) to the position a client names on an open connection. */
  resume(position: Position): void {
    this.#startedTurn = null;
    this.#callsSent = 0;
    this.#position = this.#startFrom(position);
    this.#pump();
  }

  /** The client has read what was written. */
  drained(): void {
    this.#congested = false;
    this.#stallTimer?.cancel();
    this.#stallTimer = null;
    this.#pump();
  }

  /** For heartbeats: closes a watcher that may see nothing more. */
  check(): void {
    if (!this.#closed && !this.#source.allowed()) this.close("denied");
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.end();
    const frames = reason === "denied" ? [] : this.#frames;
    this.#frames = [];
    this.#sink.close(reason, frames);
  }

  /** The transport is gone: stop without touching it. Idempotent. */
  end(): void {
    this.#closed = true;
    this.#unsubscribe();
    this.#stallTimer?.cancel();
  }

  #startFrom(position: Position | null): Position {
    const newest = this.#source.newest();
    if (position === null) return { sequence: newest, chars: 0 };
    if (position.sequence > newest) {
      // It comes from another database, or one restored: the client has to load the history anew.
      this.#isAhead = true;
      return { sequence: newest, chars: 0 };
    }
    return { ...position };
  }

  #notice(notice: Notice): void {
    if (this.#closed || this.#congested) return;
    if (notice.kind === "committed") {
      const sequence = this.#source.sequenceOf(notice.event);
      if (sequence <= this.#position.sequence) return;
      if (sequence > this.#position.sequence + 1) return this.#pump();
      this.#gatherCommitted(notice.event);
    } else if (notice.kind === "passing") this.#gather(makeFrame(notice.type, null, notice.members));
    else this.#gatherLive();
    this.#flush();
  }

  /** Brings the watcher from its position to the present, a page at a time. */
  #pump(): void {
    if (this.#isAhead) this.#gatherReset();
    while (!this.#closed && !this.#congested) {
      const newest = this.#source.newest();
      const events = this.#source.after(this.#position.sequence, LIMITS.replayPageRows);
      const oldest = events[0] ? this.#source.sequenceOf(events[0]) : newest + 1;
      if (oldest > this.#position.sequence + 1) {
        // What came between is past its retention: the client has to load the history anew.
        if (this.#gatherSnapshot()) continue;
        const sequence = oldest - 1;
        this.#position = { sequence, chars: 0 };
        this.#gather(makeFrame("stream_reset", this.#position, {}));
      }
      for (const event of events) {
        if (this.#closed || this.#congested) return;
        this.#gatherCommitted(event);
        if (this.#framesChars > GATHER_CHARS_MAX) this.#flush();
      }
      if (events.length < LIMITS.replayPageRows) break;
      this.#flush();
    }
    if (this.#closed || this.#congested) return;
    this.#gatherLive();
    this.#flush();
  }

  #gatherReset(): void {
    this.#isAhead = false;
    if (!this.#gatherSnapshot()) this.#gather(makeFrame("stream_reset", this.#position, {}));
  }

  /** False when the source has none. */
  #gatherSnapshot(): boolean {
    const snapshot = this.#source.snapshot?.();
    if (!snapshot) return false;
    this.#position = { sequence: snapshot.sequence, chars: 0 };
    this.#gather(makeFrame("snapshot", this.#position, snapshot.members));
    return true;
  }

  #gatherCommitted(event: CommittedEvent): void {
    const sequence = this.#source.sequenceOf(event);
    const isConversation = this.#source.topic.startsWith("conversation:");
    const turnId = isConversation ? this.#finishReply(event) : null;
    this.#position = { sequence, chars: 0 };
    this.#startedTurn = null;
    this.#callsSent = 0;
    const isPast = this.#skipsFailures && event.type === "reply_failed";
    if (isPast && turnId === this.#untilTurn) return;
    this.#gather(committedFrame(event, sequence));
    if (turnId !== null && turnId === this.#untilTurn) this.#finish();
  }

  #finish(): void {
    this.close(this.#source.allowed() ? "finished" : "denied");
  }

  /**
   * Before a committed reply: whatever of its text the watcher has not had as deltas, so that the
   * deltas of every reply join to its text, live or replayed. Returns the turn the event ends.
   */
  #finishReply(event: CommittedEvent): number | null {
    if (event.type === "reply_failed") {
      const data = eventData(event);
      return data.type === "reply_failed" ? data.turn_id : null;
    }
    if (event.type !== "message_added") return null;
    const data = eventData(event);
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
      if (live.turnId === this.#untilTurn) this.#finish();
    }
  }

  #gatherText(live: LiveReplyView, to: number): void {
    const { sequence, chars } = this.#position;
    if (chars >= to) return;
    this.#position = { sequence, chars: to };
    this.#gather(makeFrame("reply_delta", this.#position, {
      turn_id: live.turnId, text: live.slice(chars, to),
    }));
  }

  #gather(frame: Frame): void {
    this.#frames.push(frame);
    this.#framesChars += frame.json.length;
  }

  #flush(): void {
    if (this.#frames.length === 0 || this.#closed) return;
    if (!this.#source.allowed()) return this.close("denied");
    const frames = this.#frames;
    this.#frames = [];
    this.#framesChars = 0;
    if (this.#sink.send(frames)) return;
    this.#congested = true;
    this.#stallTimer ??= this.#system.after(LIMITS.stalledReaderMs, () => this.close("slow"));
  }
}
