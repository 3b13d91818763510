// The relay by itself, over a store of the test's own: what it sends when its store or a receiver
// keeps it waiting.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { nextTurn } from "#core/system.ts";
import { createRelay } from "#features/webhooks/relay.ts";
import type { Delivery, Endpoint, Head, WebhookStore } from "#features/webhooks/webhooks.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { loneCluster } from "#support/nodes/cluster.ts";

type RelayOptions = Parameters<typeof createRelay>[0];

const system = createManualSystem();

/** The first waiting message of an endpoint, which has the endpoint's number. */
const headOf = (id: number, changes: Partial<Delivery> = {}, accountId = 1): Head => ({
  endpoint: { id, accountId, url: `https://hooks.example.com/${id}` } as Endpoint, ownerId: 1,
  delivery: {
    id, accountId, body: "{}", conversationUuid: null, recordingFile: null, attempts: 1,
    nextAt: system.now(), lastStatus: 500, needsEvaluation: false, ...changes,
  } as Delivery,
});

function relayOver(
  store: Partial<WebhookStore>, respond: (url: string) => number | Promise<number>,
  options: Partial<RelayOptions> = {},
) {
  const sent: string[] = [];
  const relay = createRelay({
    store: {
      waiting: async () => ({ endpointIds: [], newestId: 0 }), record: async () => undefined,
      ...store,
    } as WebhookStore,
    outbound: {
      request: async ({ url }) => {
        sent.push(url);
        return { kind: "reply", status: await respond(url), headers: {}, body: Buffer.from("") };
      },
      close: async () => undefined,
    },
    node: loneCluster(), wakeOther: () => undefined, signingSecrets: () => [],
    recordingUrl: (file) => file, apiUrl: () => "", evaluationOf: async () => ({}),
    retrySeconds: [3600, 3600], attemptMs: 1000, isClockEven: () => true, atOnceMax: 1,
    observe: () => undefined, system, log: createLogger("silent"), ...options,
  });
  return { relay, sent };
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await nextTurn();
};

test("[WH92] an endpoint that is hurried while its next message is read gets it at once", async () => {
  const read = Promise.withResolvers<Head>();
  let heads = 0;
  const { relay, sent } = relayOver({
    head: async () => {
      heads += 1;
      if (heads === 1) return read.promise;
      return sent.length > 0 ? null : headOf(1);
    },
  }, () => 200);
  relay.wake(1);
  await nextTurn();
  relay.wake(1);
  read.resolve(headOf(1, { nextAt: system.now() + 3_600_000_000 }));
  await settled();
  assert.equal(sent.length, 1);
  await relay.close();
  assert.equal(system.pending(), 0);
});

test("[MU7] all that waits for an endpoint is given up with it, however much it is", async () => {
  const given = [500, 500, 7];
  const { relay, sent } = relayOver({
    head: async () => sent.length > 0 ? null : headOf(1),
    giveUp: async () => given.shift() ?? 0,
  }, () => 410);
  relay.wake(1);
  await settled();
  assert.deepEqual([sent.length, given], [1, []]);
  await relay.close();
});

test("[MU8] messages are sent to a limited number of endpoints at a time, and none before it is complete", async () => {
  const answered = Promise.withResolvers<number>();
  const evaluated = Promise.withResolvers<Record<string, unknown>>();
  let isPrepared = true;
  const { relay, sent } = relayOver({
    head: async (id) => {
      if (sent.some((url) => url.endsWith(`/${id}`))) return null;
      return headOf(id, { conversationUuid: "a", needsEvaluation: id === 2 && !isPrepared });
    },
    prepared: async () => {
      isPrepared = true;
    },
  }, () => answered.promise, { evaluationOf: () => evaluated.promise });
  for (const id of [1, 2, 3]) relay.wake(id);
  await settled();
  assert.equal(sent.length, 1);
  // The message that waited is deleted, and the one behind it is not complete.
  isPrepared = false;
  answered.resolve(200);
  await settled();
  assert.deepEqual(sent.map((url) => url.at(-1)), ["1", "3"]);
  evaluated.resolve({ happy: true });
  await settled();
  assert.deepEqual(sent.map((url) => url.at(-1)), ["1", "3", "2"]);
  await relay.close();
});

test("[FA1] endpoints of one account that hang leave an eighth of the places to others, and who waits takes turns by account", async () => {
  const hanging: (() => void)[] = [];
  const { relay, sent } = relayOver({
    head: async (id) => sent.some((url) => url.endsWith(`/${id}`))
      ? null
      : headOf(id, {}, Math.floor(id / 100)),
  }, () => new Promise((resolve) => hanging.push(() => resolve(200))), { atOnceMax: 8 });
  const numbers = () => sent.map((url) => Number(url.slice(-3)));
  const [, ...first] = Array.from({ length: 11 }, (_, index) => 100 + index);
  for (const id of [...first, 201, 202, 301]) relay.wake(id);
  await settled();
  assert.deepEqual(numbers(), [...first.slice(0, 7), 201]);
  for (const answer of hanging.splice(0, 3)) answer();
  await settled();
  assert.deepEqual(numbers().slice(8), [301, 108], "the last place is for a fourth account");
  while (hanging.length > 0) {
    for (const answer of hanging.splice(0)) answer();
    await settled();
  }
  assert.deepEqual(numbers().slice(10), [202, 109, 110]);
  await relay.close();
});

test("[MU30] what another node left behind is looked for among all that waits, not among the newest", async () => {
  const asked: number[] = [];
  const { relay } = relayOver({
    waiting: async (afterId) => {
      asked.push(afterId);
      return { endpointIds: [], newestId: 9 };
    },
  }, () => 200);
  for (const look of [relay.start, () => relay.wake(null), relay.look]) {
    look();
    await settled();
  }
  assert.deepEqual(asked, [0, 9, 0]);
  await relay.close();
});
