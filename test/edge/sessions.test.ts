// One watcher of one topic over a log that does not answer at once: what it sends is what it would
// send if the log did.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LIMITS } from "#core/limits.ts";
import { nextTurn } from "#core/system.ts";
import { startFrom, type StreamSource } from "#realtime/session.ts";
import { bytesOf } from "#support/frames.ts";
import {
  atOnce, createLateSource, createTalk, START, told, topic, watch, watchSlowly,
} from "#support/watched-talk.ts";

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
    session.close("denied");
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
  for (let event = 0; event <= 2 * LIMITS.replayPageRows; event += 1) talk.ask();
  await nextTurn();
  fill(true);
  sent.length = 0;
  let sentAtAnswer: number | null = null;
  const answered = session.resume({ sequence: 0, chars: 0 }).then(() => {
    sentAtAnswer = sent.length;
  });
  for (let turn = 0; turn < 9; turn += 1) await nextTurn();
  assert.deepEqual([sent.length, sentAtAnswer], [LIMITS.replayPageRows, null]);
  fill(false);
  session.drained();
  await answered;
  assert.equal(sentAtAnswer, talk.events.length);
  fill(true);
  const unsent = session.resume({ sequence: 0, chars: 0 });
  await nextTurn();
  session.end();
  await unsent;
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

test("[EV464] a stream of one turn ends with it, though the log goes on, and hears nothing more", async () => {
  const talk = createTalk();
  for (const text of ["Nine", "Ten"]) {
    talk.ask();
    talk.write(text);
    talk.complete();
  }
  const stored = watch(talk, atOnce(talk), START, { untilTurn: 1 });
  await nextTurn();
  assert.deepEqual(told(stored.frames), [
    "message_added 1", "reply_start 1", "Nine 1.4", "reply_end 1.4", "message_added 2",
  ]);
  talk.write("Eleven");
  talk.failUnstored();
  const failed = watch(talk, atOnce(talk), { sequence: 4, chars: 0 }, { untilTurn: 3 });
  await nextTurn();
  assert.deepEqual(told(failed.frames), ["reply_start 4", "Eleven 4.6", "reply_failed"]);
  assert.deepEqual([stored.closes, failed.closes], [["finished"], ["finished"]]);
  assert.equal(talk.bus.listeners(topic), 0);
});

test("[EV465] of a turn answered after it had failed the failures are left out, but no other turn's", async () => {
  const talk = createTalk();
  talk.ask();
  talk.fail(1);
  talk.fail(9);
  talk.write("Nine");
  talk.complete();
  const { frames } = watch(talk, atOnce(talk), START, { untilTurn: 1, skipsFailures: true });
  await nextTurn();
  assert.deepEqual(frames.filter(({ type }) => type === "reply_failed").length, 1);
  assert.equal(frames.at(-1)?.id, "4");
});

test("[EV466] words and calls of functions come in their order, again to who resumes before them, each once", async () => {
  const talk = createTalk();
  talk.ask();
  talk.write("One ");
  talk.callFunction();
  talk.write("two");
  const { session, frames } = watch(talk, atOnce(talk), START);
  await nextTurn();
  const reply = ["reply_start 1", "One  1.4", "function_call_start 1.4", "two 1.7"];
  assert.deepEqual(told(frames), ["message_added 1", ...reply]);
  await session.resume({ sequence: 1, chars: 0 });
  assert.deepEqual(told(frames), reply);
  await session.resume({ sequence: 1, chars: 7 });
  await nextTurn();
  assert.deepEqual(told(frames), []);
  talk.callFunction();
  talk.complete();
  assert.deepEqual(told(frames), ["function_call_start 1.7", "reply_end 1.7", "message_added 2"]);
  talk.ask();
  for (const text of ["", "Ten"]) {
    talk.write(text);
    talk.callFunction();
  }
  assert.deepEqual(told(frames), [
    "message_added 3", "reply_start 3", "function_call_start 3", "Ten 3.3", "function_call_start 3.3",
  ]);
});

test("[EV467] more notices during a read than are kept are one more read; a resume among them is answered", async () => {
  for (const [resumes, sent] of [[[], 258], [[5, 200], 59]] as const) {
    const talk = createTalk();
    talk.ask();
    const late = createLateSource(talk, LIMITS.replayPageRows - 1);
    const { session, frames } = watch(talk, late.source, START);
    for (let question = 0; question < 2; question += 1) {
      late.answerOne();
      await nextTurn();
    }
    let answered = 0;
    for (const sequence of resumes) {
      void session.resume({ sequence, chars: 0 }).then(() => (answered += 1));
    }
    for (let event = 0; event < 257; event += 1) talk.ask();
    await late.answerAll();
    assert.deepEqual([frames.length, answered], [sent, resumes.length]);
    assert.equal(frames.at(-1)?.id, "258");
  }
});

test("[EV468] what passes during a read is not sent after it, nor anything to a client that is full", async () => {
  const talk = createTalk();
  talk.ask();
  const typing = { kind: "passing", accountId: 1, type: "typing_started", members: {} } as const;
  const { frames } = watch(talk, atOnce(talk), START);
  talk.bus.publish(topic, typing);
  await nextTurn();
  talk.bus.publish(topic, typing);
  assert.deepEqual(told(frames), ["message_added 1", "typing_started"]);
  const { session, slow, sent, fill } = watchSlowly(talk, {
    ...atOnce(talk),
    allowed: async () => {
      talk.write("Nine");
      return true;
    },
  });
  fill(true);
  await nextTurn();
  talk.bus.publish(topic, typing);
  assert.deepEqual(sent, ["1"]);
  session.end();
  assert.equal(slow.pending(), 0);
});

test("[EV469] a resume from beyond the log is told to reload, or sent the state where there is one", async () => {
  const talk = createTalk();
  talk.ask();
  const { session, frames } = watch(talk, atOnce(talk), START);
  await session.resume({ sequence: 7, chars: 0 });
  await session.resume({ sequence: 1, chars: 0 });
  assert.deepEqual(told(frames), ["message_added 1", "stream_reset 1"]);
  let isGone = false;
  const watchWhole = () => watch(talk, {
    ...atOnce(talk),
    snapshot: async () => isGone ? null : { sequence: talk.events.length, members: {} },
  }, START, { start: { position: START, begins: "with a snapshot" } });
  const whole = watchWhole();
  await nextTurn();
  await whole.session.resume({ sequence: 7, chars: 0 });
  whole.session.drained();
  await nextTurn();
  talk.ask();
  isGone = true;
  assert.deepEqual(told(whole.frames), ["snapshot 1", "snapshot 1", "message_added 2"]);
  const late = watchWhole();
  await nextTurn();
  assert.deepEqual(told(late.frames), ["message_added 1", "message_added 2"]);
});

test("[EV470] a reply that ended before its watcher listened is read after what it was given", async () => {
  const talk = createTalk();
  talk.ask();
  const backlog = [...talk.events];
  talk.write("Nine");
  talk.complete();
  const { frames } = watch(talk, atOnce(talk), START, { backlog });
  await nextTurn();
  assert.deepEqual([frames[0]?.id, frames.at(-1)?.id, frames.length], ["1", "2", 5]);
});

test("[EV476] a reply that another event comes into begins anew after it", async () => {
  const talk = createTalk();
  const { frames } = watch(talk, atOnce(talk), START);
  await nextTurn();
  talk.ask();
  talk.write("One");
  talk.fail(9);
  talk.write(" two");
  talk.complete();
  assert.deepEqual(told(frames), [
    "message_added 1", "reply_start 1", "One 1.3", "reply_failed 2",
    "reply_start 2", "One two 2.7", "reply_end 2.7", "message_added 3",
  ]);
});

test("[EV477] watchers share what is encoded only where it is the same for them", async () => {
  const talk = createTalk();
  const counted = watch(talk, {
    ...atOnce(talk), newest: async () => 10, after: async () => [],
    sequenceOf: ({ sequence }) => sequence + 10,
  }, { sequence: 10, chars: 0 });
  const own = watch(talk, atOnce(talk), START);
  await nextTurn();
  talk.ask();
  assert.deepEqual([counted, own].map(({ frames }) => told(frames)),
    [["message_added 11"], ["message_added 1"]]);
  let shown = 3;
  const reply = {
    turnId: 1, baseSequence: 1, calls: [], failure: null,
    get shown() { return shown; }, slice: (from: number, to: number) => "One two".slice(from, to),
  };
  const at = async (chars: number): Promise<string | undefined> => {
    const { frames } = watch(talk, { ...atOnce(talk), live: () => reply }, { sequence: 1, chars });
    await nextTurn();
    return told(frames).at(-1);
  };
  const first = await at(0);
  shown = 7;
  assert.deepEqual([first, await at(0), await at(4)], ["One 1.3", "One two 1.7", "two 1.7"]);
});

test("[EV478] a long page is sent in pieces: a client that is full with the first waits with the rest", async () => {
  const talk = createTalk();
  for (let reply = 0; reply < 4; reply += 1) {
    talk.write("x".repeat(40_000));
    talk.complete();
  }
  const { session, sent, fill } = watchSlowly(talk);
  fill(true);
  await nextTurn();
  assert.equal(sent.at(-1), "1");
  session.end();
});
