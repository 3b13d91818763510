// Nodes over one database, by a clock that the test moves: who holds what it has, who is given up,
// and what becomes of what it had.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { createMachines, SECOND } from "#support/nodes/machines.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function createWorld() {
  const world = createMachines();
  closing.push(world.close);
  return world;
}

const idsOf = (nodes: { id: number }[]): number[] => nodes.map(({ id }) => id);

test("[ND1] beating nodes know each other, keep what they hold, and one of them has the clock", async () => {
  const world = createWorld();
  const [one, two] = [await world.join(), await world.join()];
  await world.pass(120 * SECOND);
  const both = [one.nodes.nodeId, two.nodes.nodeId];
  assert.deepEqual([idsOf(one.nodes.alive()), idsOf(two.nodes.alive())], [both, both]);
  assert.deepEqual([one.nodes.holds(), two.nodes.holds()], [true, true]);
  assert.deepEqual([one.nodes.hasClock(), two.nodes.hasClock()], [true, false]);
  assert.deepEqual([one.lost, two.lost, one.recoveries, two.recoveries], [false, false, 0, 0]);
});

test("[ND2] a silent node is given up after three beats, and another takes its clock", async () => {
  const world = createWorld();
  const wire = world.wires.connect();
  const dead = await world.join({ wire });
  const two = await world.join();
  await world.pass(4 * SECOND);
  dead.isDead = true;
  await wire.close();
  await world.pass(5 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [dead.nodes.nodeId, two.nodes.nodeId]);
  await world.pass(5 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId]);
  assert.ok(two.recoveries > 0);
  assert.equal(two.nodes.hasClock(), true);
});

test("[ND3] a node that misses beats but answers keeps what it holds until its lease expires", async () => {
  const world = createWorld();
  const slow = await world.join();
  const two = await world.join();
  slow.isDead = true;
  await world.pass(28 * SECOND);
  assert.equal(two.nodes.alive().length, 2, "it answers");
  await world.pass(6 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId]);
});

test("[ND4] without a wire, or while it is down, a node is given up by its lease only", async () => {
  const world = createWorld();
  const dead = await world.join({ wire: null });
  const two = await world.join({ wire: null });
  const three = await world.join();
  world.wires.stop();
  dead.isDead = true;
  await world.pass(28 * SECOND);
  assert.equal(two.nodes.alive().length, 3);
  assert.equal(three.nodes.alive().length, 3);
  await world.pass(6 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId, three.nodes.nodeId]);
});

test("[ND5] a node without the database holds nothing after 27 seconds, by either of its clocks", async () => {
  const world = createWorld();
  const one = await world.join({ wire: null });
  await world.join();
  await world.pass(2 * SECOND);
  world.away(true);
  await world.pass(24 * SECOND);
  assert.deepEqual([one.nodes.holds(), one.lost], [true, false]);
  await world.pass(4 * SECOND);
  assert.deepEqual([one.nodes.holds(), one.lost, one.nodes.hasClock()], [false, true, false]);

  const other = createWorld();
  const suspended = await other.join();
  await other.pass(2 * SECOND);
  // A machine that slept: the wall clock has gone on, the timers have not run.
  const { now } = suspended.system;
  suspended.system.now = () => now() + 60_000_000;
  assert.equal(suspended.nodes.holds(), false, "asked before its next beat");
});

test("[ND52] a node survives its wall clock set forward; one that slept ends its work if a beat then fails", async () => {
  const HOUR = 3600 * SECOND;
  const world = createWorld();
  const [one, two] = [await world.join(), await world.join()];
  one.own.isFar = true;
  await world.pass(4 * SECOND);
  one.system.step(HOUR);
  await world.pass(4 * SECOND);
  assert.deepEqual([one.nodes.holds(), one.lost], [true, false]);
  assert.deepEqual(idsOf(two.nodes.alive()), [one.nodes.nodeId, two.nodes.nodeId]);

  one.system.step(HOUR);
  one.own.isAway = true;
  await world.pass(6 * SECOND);
  assert.deepEqual([one.nodes.holds(), one.lost], [false, true]);
});

test("[ND53] a node whose clock is over a second off the database's warns once, until it is right again", async () => {
  const world = createWorld();
  const one = await world.join();
  await world.pass(10 * SECOND);
  one.system.step(900);
  await world.pass(10 * SECOND);
  assert.deepEqual(one.warnings, []);
  one.system.step(SECOND);
  await world.pass(10 * SECOND);
  assert.deepEqual(one.warnings, [1900]);
  one.system.step(-1900);
  await world.pass(10 * SECOND);
  one.system.step(-5 * SECOND);
  await world.pass(10 * SECOND);
  assert.deepEqual(one.warnings, [1900, -5000]);
});

test("[ND45] a node alone holds nothing while the database is away, and resumes afterwards", async () => {
  const world = createWorld();
  const one = await world.join();
  const stopped = await world.join();
  await world.pass(4 * SECOND);
  await stopped.nodes.leave();
  await world.pass(4 * SECOND);
  world.away(true);
  await world.pass(120 * SECOND);
  assert.deepEqual([one.nodes.holds(), one.lost, one.nodes.hasClock()], [false, false, false]);
  world.away(false);
  await world.pass(4 * SECOND);
  assert.deepEqual([one.nodes.holds(), one.lost, one.nodes.hasClock()], [true, false, true]);

  world.away(true);
  await world.pass(40 * SECOND);
  const { id: deadId, beatAt } = (await one.storage.nodes.list())[0]!;
  assert.ok(await stopped.storage.nodes.bury({ deadId, beatAt, now: beatAt }));
  world.away(false);
  await world.pass(4 * SECOND);
  assert.deepEqual([one.nodes.holds(), one.lost], [false, true], "one that came had it given up");
});

test("[ND88] an outage of the database is logged when it begins and when it ends, not with every beat", async () => {
  const world = createWorld();
  const one = await world.join();
  await world.join();
  world.away(true);
  await world.pass(20 * SECOND);
  assert.deepEqual(one.logged, ["renewing this node's lease failed"]);
  world.away(false);
  await world.pass(4 * SECOND);
  assert.deepEqual(one.logged.slice(1), ["renewing this node's lease works again"]);
});

test("[ND50] nodes that all hear each other lose the database survive it, and nobody is given up", async () => {
  const world = createWorld();
  const all = [await world.join(), await world.join(), await world.join()];
  const [one, two, three] = all as [typeof all[0], typeof all[0], typeof all[0]];
  await world.pass(4 * SECOND);
  world.away(true);
  await world.pass(120 * SECOND);
  const state = () => all.map(({ nodes, lost }) => [nodes.holds(), lost]);
  assert.deepEqual(state(), [[false, false], [false, false], [false, false]]);
  world.away(false);
  await world.pass(60 * SECOND);
  assert.deepEqual(state(), [[true, false], [true, false], [true, false]]);
  assert.deepEqual(all.map(({ recoveries }) => recoveries), [0, 0, 0]);

  // Cut off alone: it has ended its work before others may take that up.
  one.own.isAway = true;
  await world.pass(26 * SECOND);
  assert.deepEqual([one.lost, two.recoveries, three.recoveries], [false, 0, 0]);
  await world.pass(4 * SECOND);
  assert.deepEqual([one.lost, two.recoveries, three.recoveries], [true, 0, 0]);
  await world.pass(8 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId, three.nodes.nodeId]);

  // Both are without it, and one of them is long back before it gives the other up.
  world.away(true);
  await world.pass(40 * SECOND);
  three.own.isAway = true;
  world.away(false);
  assert.equal(three.lost, false);
  await world.pass(8 * SECOND);
  assert.deepEqual([two.lost, two.nodes.holds(), three.lost], [false, true, true]);
  assert.equal(two.nodes.alive().length, 2);
  await world.pass(36 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId]);
});

test("[ND51] a node that starts as the database returns gives up no node that answers", async () => {
  const world = createWorld();
  const [one, two] = [await world.join(), await world.join()];
  const wire = world.wires.connect();
  const dead = await world.join({ wire });
  await world.pass(4 * SECOND);
  world.away(true);
  await world.pass(60 * SECOND);
  dead.isDead = true;
  await wire.close();
  world.away(false);
  const three = await world.join();
  await world.pass(8 * SECOND);
  assert.deepEqual([one, two, three].map(({ nodes, lost }) => [nodes.holds(), lost]),
    [[true, false], [true, false], [true, false]]);
  assert.deepEqual(idsOf(three.nodes.alive()),
    [one.nodes.nodeId, two.nodes.nodeId, three.nodes.nodeId], "who is silent was given up at once");

  one.own.isAway = true;
  await world.pass(40 * SECOND);
  assert.deepEqual(idsOf(three.nodes.alive()), [two.nodes.nodeId, three.nodes.nodeId]);
});

test("[ND6] a node that learns it was given up ends its work at once and stops beating", async () => {
  const world = createWorld();
  const wire = world.wires.connect();
  const one = await world.join({ wire });
  const two = await world.join();
  one.isDead = true;
  await wire.close();
  await world.pass(10 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId]);
  one.isDead = false;
  await world.pass(2 * SECOND);
  assert.deepEqual([one.lost, one.nodes.holds()], [true, false]);
  await world.pass(60 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId]);
});

test("[ND7] after a database outage nobody is given up before all had time to come back", async () => {
  const world = createWorld();
  const [one, two] = [await world.join({ wire: null }), await world.join({ wire: null })];
  await world.pass(2 * SECOND);
  world.away(true);
  await world.pass(20 * SECOND);
  two.isDead = true;
  world.away(false);
  await world.pass(20 * SECOND);
  assert.equal(one.nodes.alive().length, 2, "its lease is over, but it may be on its way back");
  await world.pass(16 * SECOND);
  assert.deepEqual(idsOf(one.nodes.alive()), [one.nodes.nodeId]);
});

test("[ND83] nodes paused together, as on one machine, do not give each other up before all could return", async () => {
  for (const wire of ["up", null]) {
    const world = createWorld();
    const join = () => world.join(wire === null ? { wire } : {});
    const one = await join();
    // They do not beat at the same moment.
    await world.pass(SECOND);
    const two = await join();
    await world.pass(40 * SECOND);
    world.sleep(40 * SECOND);
    await world.pass(4 * SECOND);
    for (const { nodes, lost } of [one, two]) {
      assert.deepEqual([nodes.holds(), lost, nodes.alive().length], [true, false, 2]);
    }
    two.isDead = true;
    await world.pass(26 * SECOND);
    assert.equal(one.nodes.alive().length, 2);
    await world.pass(10 * SECOND);
    assert.deepEqual(idsOf(one.nodes.alive()), [one.nodes.nodeId]);
  }
});

test("[ND84] a node that pauses again and again takes over a dead node's work, but not a living one's", async () => {
  const world = createWorld();
  const [one, two] = [await world.join({ wire: null }), await world.join({ wire: null })];
  for (const there of [2, 1]) {
    two.isDead = there === 1;
    for (let times = 0; times < 30; times += 1) {
      world.sleep(40 * SECOND);
      await world.pass(2 * SECOND);
    }
    assert.deepEqual([one.lost, two.lost, one.nodes.alive().length], [false, false, there]);
  }
});

test("[ND8] a node that beat since it was checked is not given up, and only one of two gives it up", async () => {
  const world = createWorld();
  const one = await world.join();
  const two = await world.join();
  await world.pass(4 * SECOND);
  const [row] = await one.storage.nodes.list();
  assert.ok(row);
  const { id: deadId, beatAt } = row;
  const now = beatAt + 1;
  assert.equal(await two.storage.nodes.bury({ deadId, beatAt: beatAt - 1, now }), false);
  const outcomes = await Promise.all([one, two].map(({ storage }) =>
    storage.nodes.bury({ deadId, beatAt, now })));
  assert.deepEqual(outcomes.toSorted(), [false, true]);
});

test("[ND9] a dead node's work is recovered repeatedly until none of its writes can still arrive", async () => {
  const world = createWorld();
  const wire = world.wires.connect();
  const dead = await world.join({ wire });
  const two = await world.join();
  dead.isDead = true;
  await wire.close();
  await world.pass(12 * SECOND);
  const early = two.recoveries;
  assert.ok(early > 0);
  two.isDead = true;
  const three = await world.join();
  await world.pass(10 * SECOND);
  assert.ok(three.recoveries > 0, "one that died over it has another finish");
  await world.pass(70 * SECOND);
  const settled = three.recoveries;
  await world.pass(20 * SECOND);
  assert.equal(three.recoveries, settled);
  const left = await three.storage.nodes.list();
  assert.deepEqual(idsOf(left), [three.nodes.nodeId]);
});

test("[ND21] a node that is slow in taking over others' work keeps beating", async () => {
  const world = createWorld();
  const wire = world.wires.connect();
  const dead = await world.join({ wire });
  const { promise: recovering, resolve } = Promise.withResolvers<void>();
  const two = await world.join({ recovering });
  const three = await world.join({ recovering });
  dead.isDead = true;
  await wire.close();
  await world.pass(120 * SECOND);
  assert.deepEqual([two.lost, three.lost, two.nodes.holds()], [false, false, true]);
  assert.deepEqual([two.recoveries, three.recoveries], [1, 1]);
  resolve();
  await world.pass(10 * SECOND);
  assert.deepEqual(idsOf(three.nodes.alive()), [two.nodes.nodeId, three.nodes.nodeId]);
});

test("[ND10] a node alone never beats; at its start every other node is buried and recovered", async () => {
  const world = createWorld();
  await world.join({ wire: null, isAlone: true });
  const two = await world.join({ wire: null, isAlone: true });
  assert.deepEqual([two.recoveries, two.nodes.hasClock()], [1, true]);
  assert.deepEqual(idsOf(await two.storage.nodes.list()), [two.nodes.nodeId]);
  assert.equal(two.system.pending(), 0);
  await world.pass(120 * SECOND);
  assert.equal(two.nodes.holds(), true);
});

test("[ND11] a draining node says so, gives the clock away and is gone once it leaves", async () => {
  const world = createWorld();
  const one = await world.join();
  const two = await world.join();
  await one.nodes.drain();
  await world.pass(4 * SECOND);
  assert.deepEqual([one.nodes.hasClock(), two.nodes.hasClock()], [false, false], "till it is over");
  await one.nodes.giveClock();
  await world.pass(4 * SECOND);
  assert.deepEqual(two.nodes.alive().map(({ draining }) => draining), [true, false]);
  assert.deepEqual([one.nodes.hasClock(), two.nodes.hasClock()], [false, true]);
  await one.nodes.leave();
  await one.nodes.leave();
  await world.pass(4 * SECOND);
  assert.deepEqual(idsOf(two.nodes.alive()), [two.nodes.nodeId]);
  assert.deepEqual([one.lost, two.lost], [false, false]);
});
