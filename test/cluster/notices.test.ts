// What one process commits, watchers in the others hear of: over a wire that loses, doubles and
// reorders, over none at all, and from a log alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createNotices, type Notices } from "#cluster/notices.ts";
import type { Wire } from "#cluster/wire.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { nextTurn, type System } from "#core/system.ts";
import { createMemoryBus, type EventBus } from "#events/bus.ts";
import { accountTopic, conversationTopic, type CommittedEvent } from "#events/events.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import { createNotifications } from "#features/conversations/desk/notifications.ts";
import type { Conversation } from "#features/conversations/records.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { emptyWire } from "#support/nodes/cluster.ts";
import { createLossyWires } from "#support/nodes/lossy-wires.ts";

const log = createLogger("silent");
const ACCOUNT = 7;

/** The log all nodes share. */
function createLog() {
  const rows: CommittedEvent[] = [];
  let reads = 0;
  return {
    rows,
    reads: () => reads,
    commit: (conversationId: string | null = null, json = "{}"): CommittedEvent => {
      const sequence = rows.length + 1;
      const event: CommittedEvent = {
        id: sequence, accountId: ACCOUNT, accountSequence: sequence, conversationId, callId: null,
        sequence, type: "balance_changed", json, createdAt: 0,
      };
      rows.push(event);
      return event;
    },
    events: {
      heads: async (ids: readonly number[]) =>
        new Map(ids.includes(ACCOUNT) ? [[ACCOUNT, rows.length]] : []),
      newestOfAccount: async () => rows.length,
      ofAccount: async (_id: number, after: number, count: number) => {
        reads += 1;
        return rows.slice(after, after + count).map((event) => ({ ...event }));
      },
    },
  };
}

interface Node {
  bus: EventBus;
  notices: Notices;
  heard: number[];
  missed(): number;
}

function createNode(
  system: System, { events }: ReturnType<typeof createLog>, wire: Wire | null,
): Node & { watch(): () => void } {
  const bus = createMemoryBus();
  const notices = createNotices({ bus, events, wire, system, log });
  const heard: number[] = [];
  let missed = 0;
  const watch = () => bus.subscribe(accountTopic(ACCOUNT), (notice) => {
    if (notice.kind === "committed") heard.push(notice.event.accountSequence);
    if (notice.kind === "missed") missed += 1;
  });
  return { bus, notices, heard, missed: () => missed, watch };
}

const distinct = (numbers: number[]): number[] =>
  [...new Set(numbers)].toSorted((one, other) => one - other);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

test("[WI10] whatever the wire loses, doubles and reorders, watchers at every node receive every commit", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(
      fc.record({ node: fc.nat(2), count: fc.integer({ min: 1, max: 3 }), moves: fc.nat(4) }),
      { maxLength: 25 }),
    fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
    async (commits, stream) => {
      const system = createManualSystem();
      const wires = createLossyWires(system, () => stream.next().value ?? 0.5);
      const shared = createLog();
      const nodes = upTo(3).map(() => createNode(system, shared, wires.connect()));
      for (const { watch } of nodes) watch();
      await nextTurn();
      for (const { node, count, moves } of commits) {
        nodes[node]?.bus.publishCommitted(upTo(count).map(() => shared.commit()));
        await nextTurn();
        for (let move = 0; move < moves; move += 1) wires.move();
        system.advance(5);
        await nextTurn();
      }
      for (let second = 0; second < 3; second += 1) {
        system.advance(LIMITS.foreignCommitPollMs);
        await nextTurn();
        system.advance(LIMITS.noticeGapMs);
        await nextTurn();
        await nextTurn();
      }
      for (const { heard, notices } of nodes) {
        assert.deepEqual(distinct(heard), upTo(shared.rows.length));
        await notices.close();
      }
      assert.equal(system.pending(), 0, "nothing waits after the end");
    },
  ), { numRuns: 60 });
});

test("[WI11] when everything arrives nobody rereads the log, and nothing is sent back", async () => {
  const system = createManualSystem();
  const wires = createLossyWires(system, () => 0.5);
  wires.calm();
  const shared = createLog();
  const nodes = upTo(2).map(() => createNode(system, shared, wires.connect()));
  for (const { watch } of nodes) watch();
  await nextTurn();
  for (let round = 0; round < 20; round += 1) {
    nodes[round % 2]?.bus.publishCommitted([shared.commit()]);
    await nextTurn();
    assert.equal(wires.underWay(), 1);
    wires.move();
    await nextTurn();
    assert.equal(wires.underWay(), 0);
  }
  system.advance(LIMITS.foreignCommitPollMs + LIMITS.noticeGapMs);
  await nextTurn();
  for (const { heard, missed, notices } of nodes) {
    assert.deepEqual([heard, missed()], [upTo(20), 1], "one reading anew, when it began to follow");
    await notices.close();
  }
  assert.equal(shared.reads(), 0);
});

test("[WI12] without other nodes a commit by the command line is published within a second, and SQLite rereads nothing", async () => {
  const system = createManualSystem();
  const shared = createLog();
  for (let count = 0; count < 3; count += 1) shared.commit();
  const { watch, bus, heard, missed, notices } = createNode(system, shared, null);
  const end = watch();
  const talks: number[] = [];
  bus.subscribe(conversationTopic("c"), (notice) =>
    notice.kind === "committed" && talks.push(notice.event.sequence), ACCOUNT);
  bus.publishCommitted([shared.commit("c")]);
  shared.commit("c");
  shared.commit();
  await nextTurn();
  system.advance(LIMITS.foreignCommitPollMs);
  await nextTurn();
  system.advance(LIMITS.noticeGapMs);
  await nextTurn();
  assert.deepEqual([heard, talks, missed()], [[4, 5, 6], [4, 5], 0]);
  end();
  shared.commit("c");
  system.advance(LIMITS.foreignCommitPollMs);
  await nextTurn();
  system.advance(LIMITS.noticeGapMs);
  await nextTurn();
  assert.deepEqual([heard, talks], [[4, 5, 6], [4, 5, 7]]);
  await notices.close();
  assert.equal(system.pending(), 0);
});

test("[WI13] while the wire is down others' commits are noticed within a quarter of a second", async () => {
  const system = createManualSystem();
  const shared = createLog();
  const { watch, heard, notices } = createNode(
    system, shared, { ...emptyWire(), state: () => "down" });
  watch();
  await nextTurn();
  shared.commit();
  system.advance(LIMITS.wireDownPollMs);
  await nextTurn();
  system.advance(LIMITS.noticeGapMs);
  await nextTurn();
  assert.deepEqual(heard, [1]);
  await notices.close();
});

test("[WI14] events too large for a message are announced by number, and read from the log", async () => {
  const system = createManualSystem();
  const wires = createLossyWires(system, () => 0.5);
  wires.calm();
  const shared = createLog();
  const a = createNode(system, shared, wires.connect());
  const b = createNode(system, shared, wires.connect());
  b.watch();
  await nextTurn();
  const large = JSON.stringify({ text: "x".repeat(LIMITS.noticeBytesMax) });
  a.bus.publishCommitted([shared.commit(null, large), shared.commit()]);
  await nextTurn();
  wires.move();
  system.advance(LIMITS.noticeGapMs);
  await nextTurn();
  assert.deepEqual([b.heard, shared.reads()], [[1, 2], 1]);
  await Promise.all([a.notices.close(), b.notices.close()]);
});

/** To whom the node mails that somebody waits. */
function notifying({ bus }: Pick<Node, "bus">, system: System) {
  const sent: string[] = [];
  createNotifications({
    bus, system, log, publicUrl: null,
    mailer: {
      isSetUp: true, send: async ({ to }) => void sent.push(to), close: () => Promise.resolve(),
    },
    findConversation: async (uuid) =>
      ({ uuid, accountId: ACCOUNT, assistantId: 1, variables: {} }) as Conversation,
    findAssistant: async () => ({
      id: 1, name: "Desk", settings: { desk: { notify_emails: ["ana@example.com"] } },
    }) as unknown as Assistant,
  });
  return sent;
}

test("[ND54] of several nodes that learn that somebody waits, only the one that commits it notifies people", async () => {
  const system = createManualSystem();
  const wires = createLossyWires(system, () => 0.05);
  wires.calm();
  const shared = createLog();
  const nodes = upTo(3).map(() => createNode(system, shared, wires.connect()));
  const mails = nodes.map((node) => notifying(node, system));
  const [first, ...others] = nodes as [Node, ...typeof nodes];
  for (const { watch } of others) watch();
  await nextTurn();
  const waits = (): CommittedEvent => Object.assign(shared.commit("c", JSON.stringify({
    type: "desk_changed", conversation_id: "c", desk: "waiting", reason: "asked",
  })), { type: "desk_changed" });
  first.bus.publishCommitted([waits()]);
  await nextTurn();
  wires.move();
  await nextTurn();
  // Its notice is lost: the others find it in the log.
  first.bus.publishCommitted([waits()]);
  await nextTurn();
  wires.calm(false);
  wires.move();
  assert.equal(wires.underWay(), 0);
  system.advance(LIMITS.foreignCommitPollMs);
  await nextTurn();
  system.advance(LIMITS.noticeGapMs);
  await nextTurn();
  await nextTurn();
  assert.deepEqual(others.map(({ heard }) => heard), [[1, 2], [1, 2]]);
  assert.deepEqual(mails.map(({ length }) => length), [2, 0, 0]);
  for (const { notices } of nodes) await notices.close();
});
