// Who is registered for a SIP trunk: of two nodes, real processes, one; when it is killed, the
// other.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTelephony } from "#app/phone-numbers.ts";
import { sharePlacing } from "#cluster/placing.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import type { Assistant } from "#features/assistants/assistants.ts";
import { createPlacing } from "#features/calls/placing.ts";
import type { Call } from "#features/calls/records/records.ts";
import type { StoredSipTrunk } from "#features/phone-numbers/sip-trunks.ts";
import { createTrunkOwners } from "#features/phone-numbers/trunk-owners.ts";
import { askUntil } from "#support/asking.ts";
import { withoutPostgres } from "#support/engines.ts";
import { freePorts } from "#support/free-ports.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createMemoryWires } from "#support/nodes/memory-wires.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodeProcesses, type NodeProcesses } from "#support/nodes/node-processes.ts";
import { createWire, responseText, type Wire } from "#support/sip/sip-phones.ts";
import { trunkBody, TRUNKS } from "#support/sip/sip-trunks.ts";

const skip = withoutPostgres || withoutNats;
const NODES = 2;
const TRUNK_COUNT = 4;
/** One for each node, with its neighbour free. */
const sipPort = await freePorts(NODES * 2);
const portOf = (node: number): number => sipPort + node * 2;
let nodes: NodeProcesses;
let registrar: Wire;
before(async () => {
  if (skip) return;
  registrar = await createWire();
  nodes = await startNodeProcesses({
    count: NODES,
    env: (number) => ({
      PARLEY_SIP_PORT: String(portOf(number)), PARLEY_SIP_HOST: "127.0.0.1",
      PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8", PARLEY_SPEECH: "loopback",
    }),
  });
});
after(async () => {
  if (skip) return;
  await nodes.close();
  await registrar.close();
});

interface Asked {
  name: string;
  port: number;
  seconds: number;
}

/** Takes everybody in; what was asked, by the ports of the nodes that did. */
function keepRegistering(): Asked[] {
  const asked: Asked[] = [];
  let answered = 0;
  const timer = setInterval(() => {
    for (const { message, port } of registrar.heard.events.slice(answered)) {
      answered += 1;
      if (message.kind !== "request" || message.method !== "REGISTER") continue;
      const seconds = Number(message.headers.get("Expires"));
      asked.push({ name: message.headers.get("To") ?? "", port, seconds });
      const contact = `Contact: ${message.headers.get("Contact")};expires=${seconds}`;
      registrar.say(port, responseText(message, 200, [contact]));
    }
  }, 5);
  after(() => clearInterval(timer));
  return asked;
}

test("[SC210] each trunk is registered by one node under a two-minute lease; after a kill another node takes over", { skip }, async () => {
  const asked = keepRegistering();
  for (let count = 0; count < TRUNK_COUNT; count += 1) {
    await nodes.ask("POST", TRUNKS, {
      key: nodes.key,
      body: trunkBody({ sip_address: "127.0.0.1", sip_port: registrar.peer.port }),
    });
  }
  const namesAt = (port: number): string[] => {
    const names = new Set<string>();
    for (const one of asked) {
      if (one.port !== port) continue;
      if (one.seconds === 0) names.delete(one.name);
      else names.add(one.name);
    }
    return [...names];
  };
  const [first, second] = await askUntil(
    () => [namesAt(portOf(0)), namesAt(portOf(1))] as const,
    (held) => new Set(held.flat()).size === TRUNK_COUNT,
  );
  assert.deepEqual(first.filter((name) => second.includes(name)), [], "nobody's twice");
  // A node that was slow to take its share has it handed over: unregistered there first.
  assert.ok(asked.every(({ seconds }) => seconds === 120 || seconds === 0));

  const [dying, other] = first.length > 0 ? [0, 1] : [1, 0];
  await nodes.kill(dying);
  await askUntil(() => namesAt(portOf(other)).length, (size) => size === TRUNK_COUNT);
});

/** Nodes that take turns over the same trunks in memory; `busy` are those with a call on them. */
function createTrunkWorld(trunks: StoredSipTrunk[]) {
  const system = createManualSystem();
  const told: string[] = [];
  const busy = new Set<number>();
  const living = [1, 2].map((id) => ({ id, draining: false }));
  const nodeOf = (nodeId: number, hasSip = true) => createTrunkOwners({
    all: async () => trunks.map((trunk) => ({ ...trunk })),
    take: async (ids) => {
      const free = trunks.filter(({ id, ownerId }) => ids.includes(id) && ownerId === null);
      for (const trunk of free) trunk.ownerId = nodeId;
      return free.length;
    },
    quiet: async (ids) => ids.filter((id) => !busy.has(id)),
    giveBack: async (ids) => {
      for (const trunk of trunks) {
        if (trunk.ownerId === nodeId && (ids?.includes(trunk.id) ?? true)) trunk.ownerId = null;
      }
    },
  }, {
    nodeId, hasSip, announce: () => void told.push(`${nodeId} announced`),
    ask: () => void told.push(`${nodeId} asked`),
    alive: () => [...living, { id: 3, draining: true }],
  }, system);
  return { system, told, busy, nodeOf, owners: () => trunks.map(({ ownerId }) => ownerId) };
}

test("[SC211] a free trunk goes to a node below its share at once, to any node later; a node that leaves releases its trunks", async () => {
  const trunks = Array.from({ length: 4 }, (_, index) => (
    { id: index + 1, inboundAuth: index === 3 ? "ip" : "auth", ownerId: null } as StoredSipTrunk));
  const { system, told, nodeOf, owners } = createTrunkWorld(trunks);
  const [one, two, deaf] = [nodeOf(1), nodeOf(2), nodeOf(3, false)];
  await deaf.look();
  assert.deepEqual(owners(), [null, null, null, null]);
  const seen = await one.look();
  assert.deepEqual(owners(), [1, 1, null, null], "its share of three is two");
  assert.deepEqual(seen.map((trunk) => one.registerS(trunk)), [120, 120, null, null]);
  await one.look();
  assert.deepEqual(owners(), [1, 1, null, null]);
  system.advance(LIMITS.trunkLookMs);
  await one.look();
  assert.deepEqual(owners(), [1, 1, 1, null], "nobody else took it");
  assert.deepEqual(told.splice(0), ["1 announced", "1 announced"], "who takes some says so");
  const [registered] = trunks;
  await one.leave(async () => {
    told.push(`1 unregistered ${one.registerS(registered!)}`);
  });
  await two.look();
  assert.deepEqual(owners(), [2, 2, null, null]);
  assert.deepEqual(told, ["1 unregistered null", "1 announced", "2 announced"]);
  await one.look();
  assert.deepEqual(owners(), [2, 2, null, null], "it takes none any more");
  const alone = createTrunkOwners({
    all: async () => trunks, take: async () => 0, quiet: async () => [],
    giveBack: async () => undefined,
  }, null, system);
  const times = (await alone.look()).map((trunk) => alone.registerS(trunk));
  assert.deepEqual(times, [300, 300, 300, 300]);
});

test("[SC213] a returning node asks for its share: another node unregisters first, and a trunk with a live call stays", async () => {
  const trunks = Array.from({ length: 5 }, (_, index) => (
    { id: index + 1, inboundAuth: "auth", ownerId: 1 as number | null } as StoredSipTrunk));
  const { system, told, busy, nodeOf, owners } = createTrunkWorld(trunks);
  const [one, two] = [nodeOf(1), nodeOf(2)];
  const tell = async (ids: number[]): Promise<void> => {
    const times = ids.map((id) => one.registerS(trunks.find((trunk) => trunk.id === id)!));
    told.push(`${ids.join()} registered ${times.join()}, owned by ${owners().join()}`);
  };
  await one.look();
  assert.deepEqual(told, [], "who has the most asks for nothing, and took none");
  await two.look();
  assert.deepEqual(told.splice(0), ["2 asked"]);
  busy.add(5);
  await one.give(2, tell);
  assert.deepEqual(told.splice(0), ["3,4 registered ,, owned by 1,1,1,1,1", "1 announced"]);
  assert.deepEqual(owners(), [1, 1, null, null, 1]);
  system.advance(LIMITS.trunkLookMs);
  await one.look();
  assert.deepEqual(owners(), [1, 1, null, null, 1], "it does not take back what it gave");
  await two.look();
  assert.deepEqual([owners(), told.splice(0)], [[1, 1, 2, 2, 1], ["2 announced"]]);
  await one.give(2, tell);
  await one.give(9, tell);
  await two.give(1, tell);
  assert.deepEqual([owners(), told], [[1, 1, 2, 2, 1], []], "one more or less is no difference");
  trunks[2]!.ownerId = trunks[3]!.ownerId = 1;
  await assert.rejects(one.give(2, () => Promise.reject(new Error("away"))), /away/);
  assert.deepEqual(trunks.map((trunk) => one.registerS(trunk)), [120, 120, 120, 120, 120]);
  busy.add(1).add(2).add(3).add(4);
  await one.give(2, tell);
  assert.deepEqual([owners(), told], [[1, 1, 1, 1, 1], []]);
});

test("[SC212] a call from an extension's number is placed by the node that holds its registration, or refused with its reason", async () => {
  const system = createManualSystem();
  const wires = createMemoryWires(system);
  const assistant = { id: 7, accountId: 3, status: "active" } as Assistant;
  const dialled: string[] = [];
  let owner: number | null = 2;
  let why: string | null = null;
  const placeAt = (nodeId: number) => {
    const { here, anywhere } = createPlacing({
      findAssistant: async () => assistant, findAssistantByUuid: async () => null,
      numberOf: async () => "201", isScript: async () => false, whyCannotCall: async () => why,
      placedBy: async () => owner === nodeId ? null : owner,
      calls: {
        begin: async ({ customerPhone }) => ({
          call: { id: dialled.length + 1, status: "initiated", customerPhone } as Call,
          secondsMax: 60, replayed: false,
        }),
      },
      calling: {
        hold: () => () => undefined, refusal: () => assert.fail("there is a place"),
        dial: async ({ customerPhone }) => void dialled.push(`${nodeId} dials ${customerPhone}`),
      },
    });
    const shared = sharePlacing(
      { nodeId, wire: wires.connect(), log: createLogger("silent") }, here);
    return (number: string) =>
      anywhere(
        { accountId: 3, assistantId: 7, number, variables: {}, idempotencyKey: null }, shared.at);
  };
  const [one, two] = [placeAt(1), placeAt(2)];
  assert.deepEqual(await one("+1"), { id: 1, status: "initiated", replayed: false });
  assert.deepEqual(await two("+2"), { id: 2, status: "initiated", replayed: false });
  owner = null;
  await one("+3");
  assert.deepEqual(dialled, ["2 dials +1", "2 dials +2", "1 dials +3"]);
  owner = 2;
  why = "Nobody is to be called today.";
  await assert.rejects(one("+4"), { status: 422, message: why });
  owner = 9;
  await assert.rejects(one("+5"), { status: 503, retryAfterS: LIMITS.capacityRetryS });
  wires.stop();
  await assert.rejects(one("+6"), { status: 503 });
  assert.equal(dialled.length, 3);
});

test("[SC256] a node that is stopping finishes a check of its trunks, and hears of no more", async () => {
  const system = createManualSystem();
  const wires = createMemoryWires(system);
  const other = wires.connect();
  const read = Promise.withResolvers<StoredSipTrunk[]>();
  const failures: string[] = [];
  let reads = 0;
  const store = {
    all: () => {
      reads += 1;
      return reads === 1 ? read.promise : Promise.reject(new Error("the database was closed"));
    },
  };
  const { close } = createTelephony({
    config: { PARLEY_SIP_PORT: 5060, PARLEY_ALLOW_PRIVATE_NETWORKS: [], PARLEY_TWILIO_URL: null },
    storage: { sipTrunks: store }, wire: wires.connect(), system,
    nodes: { nodeId: 1, holds: () => false, alive: () => [] },
    log: { ...createLogger("silent"), error: (_fields: object, text: string) => failures.push(text) },
  } as never);
  const announced = async (): Promise<void> => {
    other.publish("trunks", new Uint8Array());
    await nextTurn();
    await nextTurn();
  };
  await announced();
  assert.equal(reads, 1);
  let isClosed = false;
  const closed = close().then(() => (isClosed = true));
  await announced();
  assert.deepEqual([reads, isClosed], [1, false]);
  read.resolve([]);
  await closed;
  await announced();
  assert.deepEqual([reads, failures], [1, []]);
});
