// Webhooks of the real process to receivers that fail a third of the time, while it is killed again
// and again: nothing is lost, nothing out of order, little twice. `npm run prove` does it whole.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import { askUntil } from "#support/asking.ts";
import { startProcess, type Running } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver, type Received } from "#support/webhook-receiver.ts";

const ENDPOINTS = IS_PROOF ? 20 : 4;
const MESSAGES = IS_PROOF ? 2500 : 100;
const KILLS = IS_PROOF ? 20 : 2;
const SENDERS = 8;
const DUPLICATES_MAX = 0.01;

interface Event {
  id: string;
  type: string;
}

/** The server as it is now; every request goes to whichever process that is. */
class Server {
  readonly #dataDir: string;
  readonly #env: Record<string, string>;
  #running: Promise<Running>;
  key = "";

  constructor(dataDir: string, env: Record<string, string>) {
    this.#dataDir = dataDir;
    this.#env = env;
    this.#running = startProcess(dataDir, env);
  }

  /** Again and again, until a process has answered. */
  async call<T>(method: string, path: string, body?: object): Promise<T> {
    for (;;) {
      const { url, key } = await this.#running;
      this.key ||= key ?? "";
      try {
        const response = await fetch(`${url}/api${path}`, {
          method,
          headers: {
            "Authorization": `Bearer ${this.key}`, "Content-Type": "application/json",
            "Idempotency-Key": `${path} ${JSON.stringify(body)}`,
          },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
        if (response.status < 500) return await response.json() as T;
      } catch {
        // Killed in the middle: the next process is on its way.
      }
    }
  }

  async stop(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const { process: child } = await this.#running;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  async killAndStart(): Promise<void> {
    const { process: child } = await this.#running;
    // Who is cut off waits for the next process from before this one dies.
    this.#running = once(child, "exit").then(() => startProcess(this.#dataDir, this.#env));
    child.kill("SIGKILL");
    await this.#running;
  }
}

/**
 * Fails three in ten times: by status, by reset, and once in two hundred by saying nothing. What is
 * taken is checked as it comes, as a signature is good for minutes only.
 */
function answerBadly(taken: Received[], check: (message: Received) => void) {
  return (message: Received, response: ServerResponse): void => {
    const chance = Math.random();
    if (chance < 0.005) return;
    if (chance < 0.15) return void response.destroy();
    if (chance < 0.3) return void response.writeHead(chance < 0.2 ? 500 : 404).end();
    check(message);
    taken.push(message);
    response.end();
  };
}

/** Messages in the log after a position, and where it ends. */
async function eventsAfter(server: Server, position: string) {
  const ids: string[] = [];
  let next = position;
  for (let hasMore = true; hasMore;) {
    const page = await server.call<{ data: Event[]; next: string; has_more: boolean }>(
      "GET", `/user/events?limit=500&after=${next}`);
    ids.push(...page.data.filter(({ type }) => type === "message_added").map(({ id }) => id));
    ({ next, has_more: hasMore } = page);
  }
  return { ids, next };
}

test("[WH12] killed repeatedly while receivers fail: each message arrives, in order, signed, rarely twice", { timeout: 900_000 }, async (context) => {
  const model = await startScriptedModel({ tokens: 3, record: false });
  const receiver = await startWebhookReceiver();
  const taken: Received[] = [];
  const checks = new Map<string, Webhook>();
  const badlySigned: unknown[] = [];
  receiver.answer(answerBadly(taken, ({ path, text, headers }) => {
    try {
      checks.get(path)!.verify(text, headers as Record<string, string>);
    } catch (error) {
      badlySigned.push(error);
    }
  }));
  const dataDir = testDataDir();
  const server = new Server(dataDir, {
    PARLEY_MODEL_URL: model.url,
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
    PARLEY_WEBHOOK_SECONDS_MAX: "1",
    PARLEY_WEBHOOK_RETRY_SECONDS: Array(40).fill("0.01").join(","),
    PARLEY_RATE_LIMITS: "off",
  });
  context.after(async () => {
    await server.stop("SIGTERM");
    await Promise.all([model.close(), receiver.close()]);
    rmSync(dataDir, { recursive: true });
  });
  const { data: { uuid } } = await server.call<{ data: { uuid: string } }>(
    "POST", "/user/assistant", assistantBody());
  for (let number = 0; number < ENDPOINTS; number += 1) {
    const { data } = await server.call<{ data: { secret: string } }>(
      "POST", "/user/webhook-endpoints",
      { url: `${receiver.url}/${number}`, events: ["message_added"] });
    checks.set(`/${number}`, new Webhook(data.secret));
  }
  const { next: start } = await eventsAfter(server, "0");
  let left = MESSAGES;
  const sending = Array.from({ length: SENDERS }, async (_, sender) => {
    const { conversation_id: id } = await server.call<{ conversation_id: string }>(
      "POST", "/conversations", { assistant_id: uuid, type: "test", variables: { sender } });
    for (let number = 0; left > 0; number += 1) {
      left -= 1;
      await server.call("POST", `/conversations/${id}/messages`, { message: `Message ${number}` });
    }
  });
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const target = (kill / (KILLS + 1)) * MESSAGES * 2 * ENDPOINTS * 1.4;
    await receiver.until(Math.round(target));
    await server.killAndStart();
  }
  await Promise.all(sending);
  const pending = async (): Promise<number> => (await server.call<{ total: number }>(
    "GET", "/user/webhook-deliveries?state=pending&per_page=1")).total;
  await askUntil(pending, (count) => count === 0);

  const { ids: expected } = await eventsAfter(server, start);
  assert.ok(expected.length >= MESSAGES);
  let duplicates = 0;
  assert.deepEqual(badlySigned, []);
  for (const path of checks.keys()) {
    const mine = taken.filter((message) => message.path === path);
    const ids = mine.map(({ body }) => String(body.id));
    const once = [...new Set(ids)];
    assert.deepEqual(once, expected, `what ${path} was sent, in order`);
    duplicates += ids.length - once.length;
    const messageIds = new Map<string, string>();
    for (const { id, body } of mine) {
      assert.equal(messageIds.get(String(body.id)) ?? id, id, "the same at every attempt");
      messageIds.set(String(body.id), id);
    }
  }
  const total = expected.length * ENDPOINTS;
  assert.ok(duplicates / total < DUPLICATES_MAX, `${duplicates} of ${total}`);
  console.log(`${total} deliveries, ${receiver.received.length} attempts, ${duplicates} twice`);
});
