// One watcher of one topic over a log that does not answer at once: what it sends is what it would
// send if the log did.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { conversationTopic, type CommittedData, type CommittedEvent } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";
import type { Frame, Position } from "#realtime/frames.ts";
import { Session, startFrom, type Sink, type StreamSource } from "#realtime/session.ts";
import { createStreams } from "#realtime/streams.ts";
import { bytesOf } from "#support/frames.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const UUID = "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11";
const topic = conversationTopic(UUID);
const system = createManualSystem();
const log = createLogger("silent");

/** One conversation: its events, and the reply being written. */
function createTalk() {
  const bus = createMemoryBus();
  const events: CommittedEvent[] = [];
  let turnId = 0;
  let reply: { turnId: number; baseSequence: number; text: string } | null = null;
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
        turnId: shown.turnId, baseSequence: shown.baseSequence, shown: shown.text.length,
        slice: (from, to) => shown.text.slice(from, to), calls: [], failure: null,
      };
    },
    /** A conversation answers one message at a time. */
    ask: (): void => {
      if (!reply) say("user", "When?", null);
    },
    /** A message whose reply has begun when it is published. */
    askAnswered: (text: string): void => {
      reply = { turnId: (turnId += 1), baseSequence: events.length + 1, text };
      bus.publish(topic, { kind: "live" });
      say("user", "When?", turnId);
    },
    /** Begins a reply, or goes on with it. */
    write: (text: string): void => {
      reply ??= { turnId: (turnId += 1), baseSequence: events.length, text: "" };
      reply.text += text;
      bus.publish(topic, { kind: "live" });
    },
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
function createLateSource(talk: Talk, rowsMax: number) {
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

const atOnce = (talk: Talk): StreamSource => ({
  topic, accountId: 1,
  newest: async () => talk.events.length,
  after: async (sequence, rows) => talk.events.slice(sequence, sequence + rows),
  sequenceOf: ({ sequence }) => sequence,
  live: talk.live,
});

function watch(talk: Talk, source: StreamSource, position: Position): {
  session: Session; frames: Frame[]; closes: string[];
} {
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
    source, sink, bus: talk.bus, system, log, start: { position, begins: "here" },
  });
  session.start();
  return { session, frames, closes };
}

const step = fc.oneof(
  fc.constant({ kind: "ask" } as const),
  fc.record({ kind: fc.constant("write" as const), text: fc.string({ minLength: 1, maxLength: 8 }) }),
  fc.constant({ kind: "complete" } as const),
  // The late log answers one question.
  fc.constant({ kind: "answer" } as const),
);

test("[EV90] a log answering late and in pieces yields the same bytes as one answering at once", async () => {
  const steps = fc.array(step, { maxLength: 40 });
  await fc.assert(fc.asyncProperty(
    steps, steps, fc.integer({ min: 1, max: 3 }), fc.nat(5),
    async (before, meanwhile, rowsMax, after) => {
      const talk = createTalk();
      const late = createLateSource(talk, rowsMax);
      const run = async (todo: typeof before): Promise<void> => {
        for (const one of todo) {
          if (one.kind === "answer") late.answerOne();
          else if (one.kind === "write") talk.write(one.text);
          else talk[one.kind]();
          await nextTurn();
        }
      };
      await run(before);
      const position = { sequence: Math.min(after, talk.events.length), chars: 0 };
      const eager = watch(talk, atOnce(talk), position);
      const tardy = watch(talk, late.source, position);
      await nextTurn();
      await run(meanwhile);
      await late.answerAll();
      assert.equal(bytesOf(tardy.frames), bytesOf(eager.frames));
      assert.deepEqual([eager.closes, tardy.closes], [[], []]);
      eager.session.end();
      tardy.session.end();
    },
  ), { numRuns: 150 });
});

test("[EV91] a session closed while it reads sends nothing afterwards", async () => {
  for (let answered = 0; answered < 5; answered += 1) {
    const talk = createTalk();
    talk.ask();
    const late = createLateSource(talk, 10);
    const { session, frames, closes } = watch(talk, late.source, { sequence: 0, chars: 0 });
    for (let one = 0; one < answered; one += 1) {
      late.answerOne();
      await nextTurn();
    }
    const sent = frames.length;
    const resumed = session.resume({ sequence: 0, chars: 0 });
    session.close("restart");
    talk.ask();
    await late.answerAll();
    await resumed;
    assert.deepEqual([frames.length, closes], [sent, ["restart"]], `after ${answered} answers`);
  }
});

test("[EV92] when the log cannot be read the watcher is told to reconnect, and nothing else stops", async () => {
  const talk = createTalk();
  const broken: StreamSource = {
    ...atOnce(talk), after: () => Promise.reject(new Error("the log is out of reach")),
  };
  const { frames, closes } = watch(talk, broken, { sequence: 0, chars: 0 });
  await nextTurn();
  talk.ask();
  assert.deepEqual([frames, closes], [[], ["restart"]]);
});

test("[EV93] a watcher that starts now begins at the log's position of its request; nothing is missed", async () => {
  const talk = createTalk();
  talk.ask();
  const late = createLateSource(talk, 10);
  const starting = startFrom(late.source, null);
  await late.answerAll();
  const { position } = await starting;
  talk.ask();
  const { frames } = watch(talk, late.source, position);
  await late.answerAll();
  assert.deepEqual([position.sequence, frames.map(({ id }) => id)], [1, ["2"]]);
});

test("[EV94] a reply's words from before its question was published come right after the question", async () => {
  const talk = createTalk();
  const { frames } = watch(talk, atOnce(talk), { sequence: 0, chars: 0 });
  await nextTurn();
  talk.askAnswered("At nine");
  assert.deepEqual(frames.map(({ type }) => type), ["message_added", "reply_start", "reply_delta"]);
});

test("[EV97] reading a long log yields after each page, even when log and reader are fast", async () => {
  const talk = createTalk();
  const count = LIMITS.replayPageRows * 4;
  while (talk.events.length < count) talk.ask();
  let turn = 0;
  const read: number[] = [];
  const source: StreamSource = {
    ...atOnce(talk),
    after: async (sequence, rows) => {
      read.push(turn);
      return talk.events.slice(sequence, sequence + rows);
    },
  };
  const { frames } = watch(talk, source, { sequence: 0, chars: 0 });
  for (; frames.length < count && turn < count; turn += 1) await nextTurn();
  assert.equal(frames.length, count);
  assert.deepEqual(read, [...new Set(read)], "two pages were read in one turn");
});

/** A watcher whose client takes nothing more once `isFull`. */
function watchSlowly(talk: Talk) {
  const slow = createManualSystem();
  const sent: string[] = [];
  const closes: string[] = [];
  let isFull = false;
  const session = new Session({
    source: atOnce(talk), bus: talk.bus, system: slow, log,
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

test("[EV302] a client that was full is sent what it missed once it takes more, and is not closed later", async () => {
  const talk = createTalk();
  const { session, slow, sent, closes, fill } = watchSlowly(talk);
  await nextTurn();
  for (let round = 0; round < 2; round += 1) {
    fill(true);
    for (let event = 0; event < 3; event += 1) talk.ask();
    await nextTurn();
    assert.equal(sent.length, round * 3 + 1, "nothing follows what filled it");
    slow.advance(LIMITS.stalledReaderMs - 1);
    fill(false);
    session.drained();
    await nextTurn();
    assert.deepEqual(sent, talk.events.map(({ sequence }) => String(sequence)));
  }
  slow.advance(LIMITS.stalledReaderMs);
  assert.deepEqual(closes, []);
  fill(true);
  talk.ask();
  slow.advance(LIMITS.stalledReaderMs);
  assert.deepEqual([closes, slow.pending()], [["slow"], 0]);
});

test("[EV303] a resume is answered once the client has been sent what it missed, however slowly it reads", async () => {
  const talk = createTalk();
  const { session, sent, fill } = watchSlowly(talk);
  await nextTurn();
  for (let event = 0; event <= LIMITS.replayPageRows; event += 1) talk.ask();
  await nextTurn();
  fill(true);
  sent.length = 0;
  let sentAtAnswer: number | null = null;
  const answered = session.resume({ sequence: 0, chars: 0 }).then(() => {
    sentAtAnswer = sent.length;
  });
  await nextTurn();
  await nextTurn();
  assert.deepEqual([sent.length, sentAtAnswer], [LIMITS.replayPageRows, null]);
  fill(false);
  session.drained();
  await answered;
  assert.equal(sentAtAnswer, talk.events.length);
  session.end();
});

test("[EV300] a watcher whose position the log no longer holds is told to reload, then sent what is left, once", async () => {
  const talk = createTalk();
  for (let event = 0; event < 5; event += 1) talk.ask();
  const trimmed: StreamSource = {
    ...atOnce(talk),
    after: async (sequence, rows) =>
      talk.events.filter((event) => event.sequence > Math.max(sequence, 3)).slice(0, rows),
  };
  const { frames } = watch(talk, trimmed, { sequence: 1, chars: 0 });
  await nextTurn();
  talk.ask();
  assert.deepEqual(frames.map(({ type, id }) => [type, id]), [
    ["stream_reset", "3"], ["message_added", "4"], ["message_added", "5"], ["message_added", "6"],
  ]);
});

test("[EV301] an event that the bus did not bring is read from the log before the next one", async () => {
  const talk = createTalk();
  const { frames } = watch(talk, atOnce(talk), { sequence: 0, chars: 0 });
  await nextTurn();
  const elsewhere = createTalk();
  elsewhere.ask();
  talk.events.push(...elsewhere.events);
  talk.ask();
  await nextTurn();
  assert.deepEqual(frames.map(({ id }) => id), ["1", "2"]);
});

test("[EV403] a stream has its place while the log is asked where it begins; a later one gets 429", async () => {
  const talk = createTalk();
  const late = createLateSource(talk, 1);
  const { openSse } = createStreams({ bus: talk.bus, countElsewhere: null, system, log });
  const request = { source: late.source, position: null, sessionsMax: 1 };
  const first = openSse(request);
  await assert.rejects(openSse(request), { status: 429 });
  late.answerOne();
  assert.equal((await first).status, 200);
  // A place that was not used is free again.
  const second = openSse(request);
  late.answerOne();
  assert.equal((await second).status, 200);
});
