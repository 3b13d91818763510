// Where names lead a SIP trunk: the order of SRV records, by a name server on loopback, and the
// addresses that come of them.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { setServers } from "node:dns/promises";
import { once } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { after, test } from "node:test";
import { peerKey } from "#providers/carriers/sip/transport/peer.ts";
import {
  createSystemNames, inOrder, type SrvRecord,
} from "#providers/carriers/sip/trunks/srv.ts";
import { resolveTrunk, type Names } from "#providers/carriers/sip/trunks/trunk-roster.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { trunkOf } from "#support/sip/sip-hops.ts";

const srv = (name: string, priority: number, weight: number): SrvRecord =>
  ({ name, port: 5060, priority, weight });

/** A name server that knows one thing; what it is asked is all the same to it. */
async function nameServer(records: readonly SrvRecord[]): Promise<string> {
  const socket = createSocket("udp4");
  const labels = (name: string) => Buffer.concat([
    ...name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ]);
  const words = (...values: number[]) =>
    Buffer.concat(values.map((value) => Buffer.from([value >> 8, value & 255])));
  socket.on("message", (query, from) => {
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const answers = records.map(({ name, port, priority, weight }) => {
      const target = labels(name);
      return Buffer.concat([
        words(0xc00c, 33, 1, 0, 60, 6 + target.length, priority, weight, port), target,
      ]);
    });
    const head = Buffer.concat([query.subarray(0, 2), words(0x8180, 1, answers.length, 0, 0)]);
    socket.send(Buffer.concat([head, question, ...answers]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  after(() => void socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

test("[SC88] SRV priorities are used in order, and within one each target comes first according to its weight", async () => {
  const records = [
    srv("backup", 20, 100), srv("light", 10, 1), srv("heavy", 10, 3), srv("spare", 10, 0),
  ];
  const system = createManualSystem();
  const firsts: Record<string, number> = { heavy: 0, light: 0, spare: 0 };
  const draws = 4000;
  for (let draw = 0; draw < draws; draw += 1) {
    const order = inOrder(records, system.randomBytes(16)).map(({ name }) => name);
    assert.equal(order.length, 4);
    assert.equal(order.at(-1), "backup");
    firsts[order[0]!]! += 1;
  }
  // Six times its standard deviation or more to either side.
  assert.ok(Math.abs(firsts.heavy! / draws - 0.73) < 0.06, JSON.stringify(firsts));
  assert.ok(Math.abs(firsts.light! / draws - 0.25) < 0.06, JSON.stringify(firsts));
  assert.ok(firsts.spare! > 0 && firsts.spare! / draws < 0.06, JSON.stringify(firsts));
  // One process stays with what it has drawn, also when others come and go: registrations do too.
  const seed = system.randomBytes(16);
  const drawn = inOrder(records, seed).map(({ name }) => name);
  assert.deepEqual(inOrder(records.toReversed(), seed).map(({ name }) => name), drawn);
  const fewer = records.filter(({ name }) => name !== drawn[1]);
  assert.deepEqual(
    inOrder(fewer, seed).map(({ name }) => name), drawn.filter((name) => name !== drawn[1]));

  setServers([await nameServer([srv("far", 20, 0), srv("near", 10, 0)])]);
  // What was imported by name is the resolver as it was.
  syncBuiltinESMExports();
  const order = (await createSystemNames(system).services("_sip._udp.example.org"))
    .map(({ name, port }) => `${name}:${port}`);
  assert.deepEqual(order, ["near:5060", "far:5060"]);
});

test("[SC89] a trunk's addresses are unique and without unresolvable names", async () => {
  const zone: Record<string, string[]> = { a: ["192.0.2.1", "192.0.2.2"], b: ["192.0.2.2"] };
  const names: Names = {
    services: () => Promise.resolve(["a", "missing", "b"].map((name) => ({ name, port: 5060 }))),
    addresses: (name) =>
      zone[name] ? Promise.resolve(zone[name]) : Promise.reject(new Error(`no ${name}`)),
  };
  const where = async () => (await resolveTrunk(trunkOf(), names)).map(peerKey);
  assert.deepEqual(await where(), ["udp|192.0.2.1|5060|", "udp|192.0.2.2|5060|"]);
  for (const name of ["a", "b"]) delete zone[name];
  await assert.rejects(where(), /no a/);
});
