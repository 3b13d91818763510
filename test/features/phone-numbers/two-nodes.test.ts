// One order of a number that two nodes are asked for at the same time, and their sweeps while it is
// under way. Two stores over one database; the provider does what a test says.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { Fault } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import { createMemoryBus } from "#events/bus.ts";
import { createPurchases } from "#features/phone-numbers/purchases.ts";
import type { NumberProvider, Provisioning } from "#providers/numbers/port.ts";
import { storeOfNode } from "#support/databases/beside.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { testDataDir } from "#support/server.ts";

const NUMBER = "+12015550123";
const PRICE = 1_000_000;
const dataDir = testDataDir();
const system = createManualSystem();
const stores = [
  await storeOfNode(dataDir, system.now()), await storeOfNode(dataDir, system.now()),
] as const;
after(async () => {
  for (const store of stores) await store.close();
  rmSync(dataDir, { recursive: true });
});

const asked: string[] = [];
const began = Promise.withResolvers<void>();
const provisioning = Promise.withResolvers<Provisioning>();
const provider: NumberProvider = {
  name: "twilio",
  search: async () => [],
  find: async () => ({
    phoneNumber: NUMBER, countryCode: "US", smsCapable: false, region: null,
    addressRequirements: "none", monthlyMicros: PRICE,
  }),
  provision: async () => {
    asked.push("provision");
    began.resolve();
    return provisioning.promise;
  },
  lookUp: async () => {
    asked.push("lookUp");
    return null;
  },
  release: async () => void asked.push("release"),
  close: async () => undefined,
};
const nodes = stores.map(({ phoneNumbers: store }) => createPurchases({
  holds: () => true, store, providers: [provider], bus: createMemoryBus(), system,
  log: createLogger("silent"), prices: { of: () => PRICE, countries: () => ["US"] } as never,
}));

test("[RD4] of two nodes asked for one purchase at once, one places it; neither's sweep touches it until it is settled", async () => {
  const now = system.now();
  const [{ accounts, phoneNumbers }] = stores;
  const { id: accountId } = await accounts.createAccount(
    { name: "A", email: "", plan: "self-hosted", now });
  await accounts.credit({ accountId, amountMicros: 2 * PRICE, reference: system.uuid(), now });
  const buying = nodes.map((node) => node.purchase(accountId, NUMBER, "key"));
  // The node that did not get the order has no answer yet.
  const open = await Promise.race(buying.map((one) =>
    one.then(() => null, (error: unknown) => error)));
  assert.ok(open instanceof Fault && open.status === 503);
  await began.promise;
  for (const node of nodes) await node.sweep();
  assert.deepEqual(asked, ["provision"]);
  provisioning.resolve({ kind: "provisioned", sid: "PN1" });
  const bought = await Promise.any(buying);
  assert.deepEqual([bought.purchase.state, bought.replayed], ["completed", false]);
  for (const node of nodes) {
    await node.sweep();
    assert.deepEqual(await node.purchase(accountId, NUMBER, "key"), { ...bought, replayed: true });
  }
  assert.deepEqual(asked, ["provision"]);
  assert.equal((await phoneNumbers.listOwned(accountId)).length, 1);
});
