// A reply that one node writes, as watchers at another see it: the same frames, whatever the wire
// loses, doubles and reorders.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { liveSubject, replyQuestions } from "#cluster/live-replies.ts";
import { createLiveSender } from "#cluster/live-sender.ts";
import { createNotices } from "#cluster/notices.ts";
import { createRemoteReplies } from "#cluster/remote-reply.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createMemoryBus, type EventBus } from "#events/bus.ts";
import { conversationTopic, type CommittedData, type CommittedEvent } from "#events/events.ts";
import type { LiveReplyView } from "#events/live.ts";
import { LiveReply } from "#features/conversations/turns/live-reply.ts";
import type { Frame } from "#realtime/frames.ts";
import { Session } from "#realtime/session.ts";
import { bytesOf } from "#support/frames.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createLossyWires, type LossyWires } from "#support/nodes/lossy-wires.ts";

const log = createLogger("silent");
const UUID = "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11";
const ACCOUNT = 7;
const topic = conversationTopic(UUID);

/** Node 1 writes; node 2 watches; both have one log. */
function createWorld(chance: () => number) {
  const system = createManualSystem();
  const wires = createLossyWires(system, chance);
  const rows: CommittedEvent[] = [];
  const events = {
    heads: async () => new Map([[ACCOUNT, rows.length]]),
    newestOfAccount: async () => rows.length,
    ofAccount: async (_id: number, after: number, count: number) =>
      rows.slice(after, after + count),
  };
  let reply: LiveReply | null = null;
  let turnId = 0;
  let isTriedAgain = false;
  let withdraw = (): void => undefined;
  const nodes = [1, 2].map((nodeId) => {
    const bus = createMemoryBus();
    const wire = wires.connect();
    const questions = replyQuestions(wire, log);
    const notices = createNotices({ bus, events, wire, system, log });
    const sender = createLiveSender({ questions, wire, bus, system });
    const remote = createRemoteReplies({
      questions, wire, bus, system, log, isOwn: sender.isOffered,
    });
    const close = (): Promise<void> => {
      sender.close();
      remote.close();
      withdraw();
      return notices.close();
    };
    const running = (): LiveReplyView | null => (nodeId === 1 ? reply : null);
    return { bus, wire, sender, close, live: () => running() ?? remote.live(UUID) };
  });
  const [owner, other] = nodes;
  assert.ok(owner && other);
  const commit = (data: CommittedData): void => {
    const sequence = rows.length + 1;
    const event: CommittedEvent = {
      id: sequence, accountId: ACCOUNT, accountSequence: sequence, conversationId: UUID,
      callId: null, sequence, type: data.type, json: JSON.stringify(data), createdAt: sequence,
    };
    rows.push(event);
    owner.bus.publishCommitted([event]);
  };
  const say = (role: "user" | "assistant", content: string): void => commit({
    type: "message_added", conversation_id: UUID, turn_id: turnId,
    message: { role, content, created_at: "" },
  });
  return {
    system, wires, owner, other, rows,
    hasReply: () => reply !== null,
    isAnnouncedByWords: () => isTriedAgain && reply?.text === "" && reply.calls.length === 0,
    begin: (again: boolean): void => {
      isTriedAgain = again && turnId > 0;
      if (!isTriedAgain) {
        turnId += 1;
        say("user", "When?");
      }
      reply = new LiveReply({
        turnId, baseSequence: rows.length, topic, bus: owner.bus, system,
        abort: new AbortController(),
      });
      withdraw = owner.sender.offer(UUID, reply, async () => false);
    },
    write: (text: string) => reply?.append(text),
    call: (): void => {
      reply?.addCall({ type: "function_call_start", members: { call_id: String(turnId), name: "f" } });
    },
    failUnstored: () => reply?.failUnstored("lost"),
    complete: (): void => {
      const text = reply?.text ?? "";
      reply?.close();
      reply = null;
      withdraw();
      if (text === "") {
        commit({
          type: "reply_failed", conversation_id: UUID, turn_id: turnId, reason: "failed", error: "no",
        });
      } else say("assistant", text);
    },
    close: async (): Promise<void> => {
      for (const { close } of nodes) await close();
    },
  };
}

type World = ReturnType<typeof createWorld>;

function watch(
  { system, rows }: World, node: { bus: EventBus; live(): LiveReplyView | null }, after: number,
): { frames: Frame[]; end(): void } {
  const frames: Frame[] = [];
  const session = new Session({
    source: {
      topic, accountId: ACCOUNT,
      newest: async () => rows.length,
      after: async (sequence, count) => rows.slice(sequence, sequence + count),
      sequenceOf: ({ sequence }) => sequence,
      live: node.live,
    },
    sink: {
      send: (some) => {
        frames.push(...some);
        return true;
      },
      close: () => assert.fail("nobody closes"),
    },
    bus: node.bus, system, log,
    start: { position: { sequence: after, chars: 0 }, begins: "here" },
  });
  session.start();
  return { frames, end: () => session.end() };
}

/** All that is under way arrives or is lost; what was lost is asked for until it has come. */
async function settle({ system, wires }: World): Promise<void> {
  for (let round = 0; round < 40; round += 1) {
    wires.calm(round >= 20);
    for (let moves = 0; wires.underWay() > 0 && moves < 200; moves += 1) {
      wires.move();
      await nextTurn();
    }
    system.advance(LIMITS.askMs / 4);
    await nextTurn();
    await nextTurn();
  }
  wires.calm(false);
}

const all = async (wires: LossyWires): Promise<number> => {
  let count = 0;
  for (await nextTurn(); wires.underWay() > 0; count += 1) {
    wires.move();
    await nextTurn();
  }
  return count;
};

/** Without beginnings of which nothing came yet: who comes before the first words has them. */
const begun = (frames: Frame[]): Frame[] => frames.filter(({ type }, index) => {
  const next = frames[index + 1]?.type;
  return type !== "reply_start" || (next !== undefined && next !== "reply_failed");
});
const textOf = (frames: Frame[]): string => frames
  .map(({ type, json }) => type === "reply_delta" ? (JSON.parse(json) as { text: string }).text : "")
  .join("");

const step = fc.oneof(
  fc.record({ kind: fc.constant("begin" as const), again: fc.boolean() }),
  fc.record({ kind: fc.constant("write" as const), text: fc.string({ minLength: 1, maxLength: 8 }) }),
  fc.record({ kind: fc.constant("write" as const), text: fc.string({ minLength: 1, maxLength: 8 }) }),
  fc.constant({ kind: "call" } as const),
  fc.constant({ kind: "complete" } as const),
  fc.constant({ kind: "move" } as const),
  fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 600 }) }),
);

test("[WI20] a watcher at another node gets the owner's frames, whatever the wire loses or reorders", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(step, { maxLength: 30 }), fc.array(step, { maxLength: 40 }),
    fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
    async (before, meanwhile, stream) => {
      const world = createWorld(() => stream.next().value ?? 0.5);
      const run = async (steps: typeof before): Promise<void> => {
        for (const one of steps) {
          if (one.kind === "begin" && !world.hasReply()) world.begin(one.again);
          // Tried again, a turn has no message of its own: its first words alone announce it.
          const announces = world.isAnnouncedByWords() && (one.kind === "write" || one.kind === "call");
          world.wires.calm(announces);
          if (one.kind === "write") world.write(one.text);
          if (one.kind === "call") world.call();
          if (announces) await all(world.wires);
          world.wires.calm(false);
          if (one.kind === "complete" && world.hasReply()) {
            // What functions do is in no log: who has not heard of it by now never does.
            await settle(world);
            world.complete();
          }
          if (one.kind === "move") world.wires.move();
          if (one.kind === "pass") world.system.advance(one.ms);
          await nextTurn();
        }
      };
      await run(before);
      const after = world.rows.length;
      const here = watch(world, world.owner, after);
      const there = watch(world, world.other, after);
      await nextTurn();
      await run(meanwhile);
      world.wires.calm();
      await settle(world);
      assert.equal(bytesOf(begun(there.frames)), bytesOf(begun(here.frames)));
      here.end();
      there.end();
      await world.close();
    },
  ), { numRuns: 250 });
});

const quiet = (): World => {
  const world = createWorld(() => 0.5);
  world.wires.calm();
  return world;
};
test("[WI21] an unwatched reply sends only its first words over the wire; a watched one all, for 10 s", async () => {
  const world = quiet();
  const { system, wires, owner, other } = world;
  const home = watch(world, owner, 0);
  await all(wires);
  world.begin(false);
  await all(wires);
  world.write("Nine");
  assert.equal(await all(wires), 1);
  for (let count = 0; count < 20; count += 1) {
    system.advance(LIMITS.deltaCoalesceMs);
    world.write("!");
    assert.equal(await all(wires), 0);
  }
  const there = watch(world, other, 0);
  await all(wires);
  system.advance(LIMITS.deltaCoalesceMs);
  world.write("?");
  assert.equal(await all(wires), 1);
  there.end();
  await all(wires);
  system.advance(LIMITS.liveSentMs);
  world.write("?");
  assert.equal(await all(wires), 0, "nobody watches elsewhere any more");
  assert.deepEqual([textOf(home.frames), textOf(there.frames)],
    [`Nine${"!".repeat(20)}??`, `Nine${"!".repeat(20)}?`]);
  home.end();
  await world.close();
});

test("[WI22] when a reply's owner is gone, watchers get what is committed and the live text is dropped", async () => {
  const world = quiet();
  const { system, wires, owner, other } = world;
  const there = watch(world, other, 0);
  await all(wires);
  world.begin(false);
  world.write("Nine");
  await all(wires);
  assert.equal(other.live()?.slice(0, 9), "Nine");
  await owner.close();
  system.advance(LIMITS.liveAskMsMax);
  await all(wires);
  assert.equal(other.live(), null);
  world.complete();
  await settle(world);
  assert.deepEqual(there.frames.map(({ type }) => type),
    ["message_added", "reply_start", "reply_delta", "reply_end", "message_added"]);
  there.end();
  await other.close();
});

test("[WI23] a reply whose failure could not be stored fails at other nodes too", async () => {
  const world = quiet();
  const there = watch(world, world.other, 0);
  await all(world.wires);
  world.begin(false);
  world.write("Nine");
  await all(world.wires);
  world.failUnstored();
  await all(world.wires);
  assert.deepEqual(there.frames.map(({ type }) => type),
    ["message_added", "reply_start", "reply_delta", "reply_failed"]);
  there.end();
  await world.close();
});

test("[WI24] a live message of another version or form is ignored", async () => {
  const world = quiet();
  const wire = world.wires.connect();
  const there = watch(world, world.other, 0);
  await all(world.wires);
  for (const message of ["{", "null", '{"v":2,"part":{}}', '{"v":1}', '{"v":1,"part":{}}']) {
    wire.publish(liveSubject(UUID), new TextEncoder().encode(message));
  }
  await all(world.wires);
  assert.deepEqual([world.other.live(), there.frames], [null, []]);
  there.end();
  await world.close();
});

test("[WI25] a reply begun while its owner was cut off appears at other nodes once it is back", async () => {
  const world = quiet();
  const { system, wires, owner, other } = world;
  const there = watch(world, other, 0);
  await all(wires);
  owner.wire.cut();
  world.begin(false);
  world.write("Ni");
  await settle(world);
  assert.deepEqual([other.live(), textOf(there.frames)], [null, ""]);
  owner.wire.mend();
  await all(wires);
  assert.equal(textOf(there.frames), "Ni");
  system.advance(LIMITS.deltaCoalesceMs);
  world.write("ne");
  await all(wires);
  assert.equal(textOf(there.frames), "Nine");
  there.end();
  await world.close();
});
