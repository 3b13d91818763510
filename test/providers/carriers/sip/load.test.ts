// Many calls over SIP at once, while other conversations are charged and a document is read: none
// fails, and every frame is on time at the far end's socket. bench/sip.ts does it with more.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { percentile } from "#bench/report.ts";
import { flow, makePdf } from "#support/documents/documents.ts";
import { IS_PROOF } from "#support/proof.ts";
import { newConversation } from "#support/server.ts";
import type { RtpFigures } from "#support/sip/rtp-peer.ts";
import { startSipWorld, type SipWorld } from "#support/sip/server-with-sip.ts";
import { noSipp, startSipp } from "#support/sip/sipp.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noSipp();
const CALLS = 30;
const PER_SECOND = 10;
const CALL_MS = IS_PROOF ? 5000 : 2500;
/** Calls of an account at a time, by its plan. */
const PER_ACCOUNT = 10;
/** What the machine itself adds is not held against the server. */
const LATE_MAX_MS = 15;

const file = (path: string): URL => new URL(path, import.meta.url);

/** Numbers that are answered, of as many accounts as the plan asks for. */
async function desks(world: SipWorld): Promise<string[]> {
  const numbers: string[] = [];
  for (let number = 0; number < CALLS / PER_ACCOUNT; number += 1) {
    const { key } = await world.server.newAccount({ balance: "1000.00" });
    const trunk = await world.trunk({}, key);
    await world.assistant(trunk.id, { initial_message: "Hello and welcome. ".repeat(8) }, key);
    numbers.push(trunk.number);
  }
  return numbers;
}

/** A busy machine charges them more slowly than its calls last. */
const MESSAGES_MIN = 20;

/** Messages to a widget, one after the other, until told to stop; resolves to how many. */
async function charge(world: SipWorld, isOver: () => boolean): Promise<number> {
  const { uuid } = await world.assistant(null);
  let sent = 0;
  for (let conversation = ""; !isOver() || sent <= MESSAGES_MIN; sent += 1) {
    if (sent % 20 === 0) conversation = await newConversation(world.server, uuid);
    const { status, body } = await world.server.call(
      "POST", `/conversations/${conversation}/messages`, { body: { message: "When?" } });
    assert.equal(status, 200, JSON.stringify(body));
  }
  return sent;
}

/** Documents of a hundred pages, one after the other. */
async function extract(world: SipWorld, isOver: () => boolean): Promise<number> {
  const page = flow(Array.from({ length: 45 }, (_, line) => `${line}. Guests may cancel until six.`));
  const pdf = makePdf(Array.from({ length: 60 }, () => page));
  const made = await world.server.call("POST", "/user/knowledgebases", { body: { name: "Book" } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  let count = 0;
  for (; !isOver(); count += 1) {
    const form = new FormData();
    form.set("name", `Book ${count}`);
    form.set("type", "pdf");
    form.set("file", new Blob([new Uint8Array(pdf)], { type: "application/pdf" }), "book.pdf");
    const response = await fetch(
      `${world.server.url}/api/user/knowledgebases/${made.body.data.id}/documents`,
      { method: "POST", headers: { authorization: `Bearer ${world.server.key}` }, body: form });
    assert.equal(response.status, 201, await response.clone().text());
    const { data } = await response.json() as { data: { id: number } };
    await read(world, made.body.data.id as number, data.id);
  }
  return count;
}

/** Until the document is not waited for any more. */
async function read(world: SipWorld, base: number, id: number): Promise<void> {
  const path = `/user/knowledgebases/${base}/documents/${id}`;
  for (;;) {
    const { body } = await world.server.call("GET", path);
    if (body.data.status === "active") return;
    assert.ok(["pending", "processing"].includes(body.data.status as string), JSON.stringify(body));
  }
}

test("[SC45] dozens of calls beside messages and document imports: none fails, no frame is late", { skip, timeout: 180_000 }, async (t) => {
  const model = await startScriptedModel();
  const world = await startSipWorld({ PARLEY_MODEL_URL: model.url, PARLEY_CALLS_MAX: "1000" });
  after(async () => {
    await world.server.close();
    await model.close();
  });
  const numbers = await desks(world);
  const peer = new Worker(file("../../../support/sip/rtp-peer.ts"));
  const timer = new Worker(file("../../../../bench/voice-timer.ts"));
  t.after(() => Promise.all([peer.terminate(), timer.terminate()]));
  const [rtpPort] = await once(peer, "message") as [number];
  let isOver = false;
  const others = Promise.all([charge(world, () => isOver), extract(world, () => isOver)]);
  const phones = await startSipp({
    scenario: "load", to: world.sipPort, numbers, calls: CALLS, perSecond: PER_SECOND,
    pauseMs: CALL_MS, keys: { rtp_port: String(rtpPort) },
  });
  await phones.done.finally(() => (isOver = true));
  const [charged, documents] = await others;
  timer.postMessage("stop");
  const [bareMs] = await once(timer, "message") as [number[]];
  peer.postMessage("stop");
  const [figures] = await once(peer, "message") as [RtpFigures];
  const [p50, p99, p999, max] = [50, 99, 99.9, 100]
    .map((part) => percentile(figures.latenessMs, part)) as [number, number, number, number];
  const [bare99, bareMax] = [99, 100].map((part) => percentile(bareMs, part)) as [number, number];
  t.diagnostic(`${CALLS} calls, ${figures.packets} packets: late p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} max ${max.toFixed(1)} ms; a bare timer p99 ${bare99.toFixed(1)} max ${bareMax.toFixed(1)} ms; ${charged} messages, ${documents} documents`);
  assert.deepEqual([figures.streams, figures.lost], [CALLS, 0]);
  // While the machine stalled, nobody could have sent.
  const least = CALLS * ((CALL_MS - bareMax) / 20) * 0.9;
  assert.ok(figures.packets >= least, `${figures.packets} of ${least}`);
  assert.ok(charged > MESSAGES_MIN && documents > 0, `${charged} ${documents}`);
  assert.ok(p99 <= LATE_MAX_MS + 2 * bare99, `${p99} ${bare99}`);
  // One packet in thousands may meet a stall of the machine that the bare timer slept through.
  assert.ok(p999 <= LATE_MAX_MS + 2 * bareMax, `${p999} ${bareMax}`);
});
