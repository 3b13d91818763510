// Receivers as they are out there, and what becomes of a message with each.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { createServer, type AddressInfo, type Server } from "node:net";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { LIMITS } from "#core/limits.ts";
import { askUntil } from "#support/asking.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { startTestServer } from "#support/server.ts";
import { selfSignedCertificate } from "#support/vendors/realtime-server.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const system = createManualSystem();
const env = { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
const server = await startTestServer({ system, env });
const receiver = await startWebhookReceiver();
after(async () => {
  await server.close();
  await receiver.close();
});

interface Delivery {
  state: string;
  attempts: number;
  last_status: number | null;
  last_error: string | null;
  response: string | null;
  next_attempt_at: string;
}

/** A test message to an endpoint of its own, once it was tried. */
async function tried(url = receiver.url, at = server) {
  const { body: { data: { id } } } = await at.call("POST", "/user/webhook-endpoints", {
    body: { url, events: ["*"] },
  });
  await at.call("POST", `/user/webhook-endpoints/${id}/test`);
  const [delivery] = await askUntil(
    async () => (await at.call("GET", `/user/webhook-deliveries?endpoint_id=${id}`)).body
      .data as Delivery[],
    ([first]) => first?.attempts === 1);
  const endpoint = (await at.call("GET", `/user/webhook-endpoints/${id}`)).body.data;
  return { delivery: delivery!, endpoint };
}

test("[WH16] a response counts by its status, however long: an accepted message is not resent", async () => {
  receiver.answer((_, response) => void response.end("<p>Thanks".repeat(100_000)));
  assert.equal((await tried()).delivery.state, "delivered");
  receiver.answer((_, response) => void response.writeHead(410).end("x".repeat(100_000)));
  const { delivery, endpoint } = await tried();
  assert.deepEqual([delivery.state, delivery.last_status, endpoint.status], ["dead", 410, "disabled"]);
});

test("[WH20] a compressed response whose bytes are no text is reported as compressed", async () => {
  const packed = gzipSync("No such order");
  receiver.answer((_, response) =>
    void response.writeHead(400, { "content-encoding": "gzip" }).end(packed));
  const { delivery } = await tried();
  assert.deepEqual([delivery.last_status, delivery.response],
    [400, `(${packed.length} bytes, compressed as gzip)`]);
});

test("[WH17] a receiver's Retry-After is respected", async () => {
  const at = Math.ceil(system.now() / 1_000_000 + 600) * 1000;
  receiver.answer((_, response) =>
    void response.writeHead(503, { "retry-after": new Date(at).toUTCString() }).end());
  const { delivery } = await tried();
  assert.equal(Date.parse(delivery.next_attempt_at), at);
});

test("[MU3] only 2xx counts as accepted; Retry-After lengthens the wait, by a day at most, with 429 and 503", async () => {
  for (const [status, retryAfterS, waitS] of [
    [300, 600, 5], [500, 600, 5], [429, 1, 5], [503, 7 * 86_400, 86_400],
  ] as const) {
    receiver.answer((_, response) =>
      void response.writeHead(status, { "retry-after": String(retryAfterS) }).end());
    const { delivery } = await tried();
    assert.deepEqual([delivery.state, delivery.last_status], ["pending", status]);
    const waitedS = (Date.parse(delivery.next_attempt_at) - system.now() / 1000) / 1000;
    assert.ok(waitedS >= waitS && waitedS <= waitS * 1.1, `${status}: ${waitedS} s`);
  }
});

test("[MU18] what waits at an endpoint is sent at once when it is enabled, though it was active", async () => {
  receiver.answer((_, response) => void response.writeHead(500).end());
  const { endpoint: { id } } = await tried();
  receiver.answer(null);
  await server.call("PUT", `/user/webhook-endpoints/${id}`, { body: { status: "active" } });
  await askUntil(
    async () => (await server.call("GET", `/user/webhook-deliveries?endpoint_id=${id}`)).body.data,
    ([{ state }]) => state === "delivered");
});

test("[MU6] a receiver that does not answer in time is tried again", async (t) => {
  const hasty = await startTestServer({ env: { ...env, PARLEY_WEBHOOK_SECONDS_MAX: "1" } });
  t.after(hasty.close);
  receiver.answer(() => undefined);
  const { delivery } = await tried(receiver.url, hasty);
  assert.deepEqual(
    [delivery.state, delivery.last_error], ["pending", "the receiver did not answer in time"]);
});

test("[WH19] a delivery says why its receiver could not be reached", async (t) => {
  const portOf = async (receiving: Server): Promise<number> => {
    receiving.listen(0, "127.0.0.1");
    await once(receiving, "listening");
    t.after(() => receiving.close());
    return (receiving.address() as AddressInfo).port;
  };
  const silent = await portOf(createServer((socket) =>
    void socket.once("data", () => socket.destroy())));
  const odd = await portOf(createServer((socket) =>
    void socket.once("data", () => socket.end("220 mail.example ESMTP\r\n"))));
  const tls = await portOf(createTlsServer({ ...await selfSignedCertificate() }));
  const local = "127.0.0.1";
  for (const [url, why] of [
    [`http://${local}:${silent}/`, "it closed the connection without an answer"],
    [`http://${local}:${odd}/`, "its answer is not HTTP"],
    [`https://${local}:${tls}/`, "its certificate is not trusted"],
    [`https://${local}:${odd}/`, "the TLS handshake failed"],
    ["http://nobody.invalid/", "its host name does not resolve"],
  ] as const) {
    const { delivery } = await tried(url);
    assert.equal(delivery.last_error, `the receiver could not be reached: ${why}`);
  }
});

test("[WH110] a clock days ahead disables no endpoint that failed for a moment; one that stays ahead does", async () => {
  receiver.answer((_, response) => void response.writeHead(500).end());
  const { endpoint: { id } } = await tried();
  const read = async (path: string) => (await server.call("GET", path)).body.data;
  const attempts = async (): Promise<number> =>
    (await read(`/user/webhook-deliveries?endpoint_id=${id}`))[0].attempts;
  const statusAfter = async (stepMs: number): Promise<string> => {
    const before = await attempts();
    system.step(stepMs);
    system.advance(LIMITS.webhookWaitLookMs);
    await askUntil(attempts, (now) => now > before);
    return (await read(`/user/webhook-endpoints/${id}`)).status;
  };
  const ahead = 2 * LIMITS.webhookFailingMs;
  assert.equal(await statusAfter(ahead), "active");
  assert.equal(await statusAfter(-ahead), "active");
  system.advance(LIMITS.clockBelievedMs);
  assert.equal(await statusAfter(ahead), "active");
  await askUntil(async () => {
    system.advance(LIMITS.clockBelievedMs);
    return (await read(`/user/webhook-endpoints/${id}`)).status;
  }, (status) => status === "disabled");
});
