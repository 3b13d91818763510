// The promises about money over three nodes, real processes, while nodes, their sessions with the
// database, NATS and PostgreSQL itself are killed. Longer in `npm run prove`.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { askUntil } from "#support/asking.ts";
import { startPostgresPair, type PostgresPair } from "#support/databases/postgres-pair.ts";
import { withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodeProcesses, type NodeProcesses } from "#support/nodes/node-processes.ts";
import { IS_PROOF } from "#support/proof.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const CLIENTS = IS_PROOF ? 24 : 6;
const SENDS = IS_PROOF ? 400 : 8;
const KILLS = IS_PROOF ? 60 : 2;
const NATS_KILLS = IS_PROOF ? 10 : 1;
const FAILOVERS = IS_PROOF ? 6 : 1;
/** Between two sessions that are ended. */
const SESSION_MS = IS_PROOF ? 50 : 250;
const CUTS_OF_100 = 5;

const skip = withoutPostgres || withoutNats;
const model = await startScriptedModel({ tokens: 5, gapMs: 2, record: false });
const receiver = await startWebhookReceiver();
let nodes: NodeProcesses;
let database: PostgresPair;
before(async () => {
  if (skip) return;
  database = await startPostgresPair();
  nodes = await startNodeProcesses({
    database, count: 3, cuts: CUTS_OF_100,
    env: () => (
      { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" }),
  });
});
after(async () => {
  if (!skip) await nodes.close();
  await Promise.all([model.close(), receiver.close()]);
});

interface Sent {
  uuid: string;
  idempotencyKey: string;
  message: string;
  answer: string;
}

/** Does it so often while the clients send, and reports how often it has. */
async function during(sending: Promise<unknown>, gapMs: number, work: () => Promise<void>) {
  let isOver = false;
  void sending.finally(() => (isOver = true));
  let times = 0;
  for (; !isOver; times += 1) {
    await sleep(gapMs);
    await work();
  }
  return times;
}

test("[BL240] nodes, sessions, NATS and PostgreSQL's primary killed at random: one charge a message, answers kept, webhooks in order", { skip, timeout: 3_000_000 }, async () => {
  const { assistant, key } = nodes;
  await nodes.ask("POST", "/user/webhook-endpoints", {
    key, body: { url: receiver.url, events: ["message_added"] },
  });
  const sent: Sent[] = [];
  let wake = (): void => undefined;
  const client = async (number: number): Promise<void> => {
    const { conversation_id: uuid } = await nodes.ask<{ conversation_id: string }>(
      "POST", "/conversations", { body: { assistant_id: assistant } });
    for (let count = 0; count < SENDS; count += 1) {
      const idempotencyKey = `c${number}-${count}`;
      const message = `message ${idempotencyKey}`;
      const { message: answer } = await nodes.ask<{ message: string }>(
        "POST", `/conversations/${uuid}/messages`, { body: { message }, idempotencyKey });
      sent.push({ uuid, idempotencyKey, message, answer });
      wake();
    }
  };
  const sending = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  const total = CLIENTS * SENDS;
  const reaching = async (share: number): Promise<void> => {
    while (sent.length < total * share) await new Promise<void>((resolve) => (wake = resolve));
  };
  const killing = async (): Promise<void> => {
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await reaching(kill / (KILLS + 2));
      if (kill <= NATS_KILLS) {
        await nodes.nats.kill();
        await nodes.nats.start();
      }
      if (kill > KILLS - FAILOVERS) await database.failOver();
      await nodes.replace();
    }
  };
  const [ended] = await Promise.all([
    during(sending, SESSION_MS, nodes.endSession), killing(), sending,
  ]);
  assert.ok(ended > 0);
  await nodes.settled();

  for (const { uuid, idempotencyKey, message, answer } of sent) {
    const again = await nodes.ask<{ message: string }>(
      "POST", `/conversations/${uuid}/messages`, { body: { message }, idempotencyKey });
    assert.equal(again.message, answer, idempotencyKey);
  }
  const [counts] = await nodes.database.query<Record<string, string>>(`
    SELECT (SELECT count(*) FROM ledger WHERE kind = 'message') AS charged,
      (SELECT count(*) FROM turns WHERE state = 'done' AND idempotency_key IS NOT NULL) AS done,
      (SELECT count(*) FROM turns WHERE state <> 'done') AS other,
      (SELECT count(*) FROM reservations) AS reserved`);
  assert.deepEqual(counts, {
    charged: String(total), done: String(total), other: "0", reserved: "0",
  });
  assert.match(await nodes.cli(["ledger", "verify"]), /^the ledger is correct: 1 accounts/);
  const holes = await nodes.database.query(`
    SELECT conversation_id FROM events WHERE conversation_id IS NOT NULL
    GROUP BY conversation_id HAVING count(*) <> max(sequence)`);
  assert.deepEqual(holes, []);
  await checkWebhooks(nodes);
});

/** Each event came, those that came first in the order of the log; some may have come again. */
async function checkWebhooks({ ask, key }: NodeProcesses): Promise<void> {
  const ids: string[] = [];
  let next = "0";
  for (let hasMore = true; hasMore;) {
    const page = await ask<{
      data: { id: string; type: string }[]; next: string; has_more: boolean;
    }>("GET", `/user/events?limit=500&after=${next}`, { key });
    ids.push(...page.data.filter(({ type }) => type === "message_added").map(({ id }) => id));
    ({ next, has_more: hasMore } = page);
  }
  const last = ids.at(-1);
  await askUntil(() => receiver.received.some(({ body }) => body.id === last), Boolean);
  const first = [...new Set(receiver.received.map(({ body }) => String(body.id)))];
  assert.ok(first.length > 0);
  assert.deepEqual(first, ids.slice(-first.length));
}
