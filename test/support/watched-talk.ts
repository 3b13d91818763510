// A conversation's log and reply that a test writes, and sessions that watch it.
import assert from "node:assert/strict";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { conversationTopic, type CommittedData, type CommittedEvent } from "#events/events.ts";
import type { LiveCall, LiveReplyView } from "#events/live.ts";
import type { Frame, Position } from "#realtime/frames.ts";
import { Session, type Sink, type StreamSource } from "#realtime/session.ts";
import { createManualSystem } from "./manual-clock.ts";

const UUID = "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11";
export const topic = conversationTopic(UUID);
const system = createManualSystem();
const log = createLogger("silent");

/** One conversation: its events, and the reply being written. */
export function createTalk() {
  const bus = createMemoryBus();
  const events: CommittedEvent[] = [];
  let turnId = 0;
  let reply: (Pick<LiveReplyView, "turnId" | "baseSequence" | "failure"> & {
    text: string; calls: LiveCall[];
  }) | null = null;
  const commit = (data: CommittedData): void => {
    const sequence = events.length + 1;
    const event = {
      id: sequence, accountId: 1, accountSequence: sequence, conversationId: UUID, callId: null,
      sequence, type: data.type, json: JSON.stringify(data), createdAt: sequence,
    };
    events.push(event);
    bus.publish(topic, { kind: "committed", event });
  };
  const say = (role: "user" | "assistant", content: string, turn: number | null): void =>
    commit({
      type: "message_added", conversation_id: UUID, turn_id: turn,
      message: { role, content, created_at: "" },
    });
  return {
    bus, events,
    live: (): LiveReplyView | null => {
      const shown = reply;
      return shown && {
        ...shown, shown: shown.text.length, slice: (from, to) => shown.text.slice(from, to),
      };
    },
    /** A conversation answers one message at a time. */
    ask: (): void => {
      if (!reply) say("user", "When?", null);
    },
    /** A message whose reply has begun when it is published. */
    askAnswered: (text: string): void => {
      turnId += 1;
      reply = { turnId, baseSequence: events.length + 1, text, calls: [], failure: null };
      bus.publish(topic, { kind: "live" });
      say("user", "When?", turnId);
    },
    /** Begins a reply, or goes on with it. */
    write: (text: string): void => {
      reply ??= {
        turnId: (turnId += 1), baseSequence: events.length, text: "", calls: [], failure: null,
      };
      reply.text += text;
      bus.publish(topic, { kind: "live" });
    },
    /** The reply calls a function after what it has said. */
    callFunction: (): void => {
      reply?.calls.push({ type: "function_call_start", offset: reply.text.length, members: {} });
      bus.publish(topic, { kind: "live" });
    },
    /** The reply has failed, and not even that could be stored. */
    failUnstored: (): void => {
      if (reply) reply = { ...reply, failure: { reason: "failed", error: "" } };
      bus.publish(topic, { kind: "live" });
    },
    fail: (turn: number): void => commit({
      type: "reply_failed", conversation_id: UUID, turn_id: turn, reason: "failed", error: "",
    }),
    complete: (): void => {
      if (!reply) return;
      const { text, turnId: turn } = reply;
      reply = null;
      say("assistant", text, turn);
    },
  };
}

type Talk = ReturnType<typeof createTalk>;

/** Answers when it is told to, with at most so many rows; one question at a time, or it fails. */
export function createLateSource(talk: Talk, rowsMax: number) {
  const waiting: (() => void)[] = [];
  const answer = <T>(value: () => T): Promise<T> => {
    assert.equal(waiting.length, 0, "a session asks one thing at a time");
    return new Promise((resolve) => waiting.push(() => resolve(value())));
  };
  const source: StreamSource = {
    topic, accountId: 1,
    newest: () => answer(() => talk.events.length),
    after: (sequence, rows) =>
      answer(() => talk.events.slice(sequence, sequence + Math.min(rows, rowsMax))),
    sequenceOf: ({ sequence }) => sequence,
    live: talk.live,
    allowed: () => answer(() => true),
  };
  return {
    source,
    answerOne: (): void => waiting.shift()?.(),
    answerAll: async (): Promise<void> => {
      for (await nextTurn(); waiting.length > 0; await nextTurn()) waiting.shift()?.();
    },
  };
}

export const atOnce = (talk: Talk): StreamSource => ({
  topic, accountId: 1,
  newest: async () => talk.events.length,
  after: async (sequence, rows) => talk.events.slice(sequence, sequence + rows),
  sequenceOf: ({ sequence }) => sequence,
  live: talk.live,
});

type SessionOptions = ConstructorParameters<typeof Session>[0];

export function watch(
  talk: Talk, source: StreamSource, position: Position, more: Partial<SessionOptions> = {},
): { session: Session; frames: Frame[]; closes: string[] } {
  const frames: Frame[] = [];
  const closes: string[] = [];
  const sink: Sink = {
    send: (some) => {
      frames.push(...some);
      return true;
    },
    close: (reason, last) => {
      frames.push(...last);
      closes.push(reason);
    },
  };
  const session = new Session({
    source, sink, bus: talk.bus, system, log, start: { position, begins: "here" }, ...more,
  });
  session.start();
  return { session, frames, closes };
}

/** A watcher whose client takes nothing more once `isFull`. */
export function watchSlowly(talk: Talk, source = atOnce(talk)) {
  const slow = createManualSystem();
  const sent: string[] = [];
  const closes: string[] = [];
  let isFull = false;
  const session = new Session({
    source, bus: talk.bus, system: slow, log,
    sink: {
      send: (frames) => {
        sent.push(...frames.map(({ id }) => id));
        return !isFull;
      },
      close: (reason) => void closes.push(reason),
    },
    start: { position: { sequence: 0, chars: 0 }, begins: "here" },
  });
  session.start();
  return { session, slow, sent, closes, fill: (full: boolean) => void (isFull = full) };
}

export const START: Position = { sequence: 0, chars: 0 };

/** Each frame's type and id; a delta's text instead of its type. */
export const told = (frames: Frame[]): string[] => frames.splice(0).map(({ type, id, json }) =>
  `${(JSON.parse(json) as { text?: string }).text ?? type} ${id}`.trim());
