// Parts of webhooks by themselves: what they ask of their store and of receivers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import type { Outbound } from "#outbound/request.ts";
import { createInboundAsk } from "#features/webhooks/inbound-webhook.ts";
import { createWebhooks, type Endpoint, type WebhookStore } from "#features/webhooks/webhooks.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const system = createManualSystem();
const endpoint = { id: 4, accountId: 1, purpose: "account", status: "active" } as Endpoint;
const webhooksOver = (store: Partial<WebhookStore>) => createWebhooks({
  store: store as WebhookStore, system, secret: "secret", endpointsMax: 9, wake: () => undefined,
});

test("[MU27] an endpoint is deleted in steps until it is gone", async () => {
  const steps = [{ isGone: false }, { isGone: false }, { isGone: true }];
  await webhooksOver({
    endpoint: async () => endpoint, deleteEndpoint: async () => steps.shift() ?? null,
  }).remove(1, 4);
  assert.deepEqual(steps, []);
});

test("[MU28] what was delivered is kept for a week, what was given up for thirty days", async () => {
  const asked: unknown[] = [];
  await webhooksOver({
    trim: async (args) => {
      asked.push(args);
      return 0;
    },
  }).trim(50);
  const daysAgo = (days: number): number => system.now() - days * 86_400_000_000;
  assert.deepEqual(asked, [{ deliveredBefore: daysAgo(7), deadBefore: daysAgo(30), rows: 50 }]);
});

test("[MU29] the webhook before a call is signed, and an answer other than 2xx sets no variables", async () => {
  let status = 200;
  let headers: Record<string, string> = {};
  const ask = createInboundAsk({
    store: { assistantEndpoint: async () => endpoint } as unknown as WebhookStore,
    outbound: {
      request: async (request: Parameters<Outbound["request"]>[0]) => {
        headers = request.headers ?? {};
        return { kind: "reply", status, headers: {}, body: Buffer.from("{\"name\":\"Eva\"}") };
      },
      close: async () => undefined,
    },
    signingSecrets: () => ["whsec_c2VjcmV0"], system, log: createLogger("silent"),
  });
  const facts = {
    url: "https://hooks.example.com/", accountId: 1, assistantId: 7, callId: 5,
    customerPhone: null, assistantPhone: null, variables: {},
  };
  assert.deepEqual(await ask(facts), { name: "Eva" });
  assert.equal(headers["webhook-id"], "msg_call_5");
  assert.match(headers["webhook-signature"] ?? "", /^v1,/);
  for (status of [302, 404, 500]) assert.deepEqual(await ask(facts), {});
});
