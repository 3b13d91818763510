// Watchers over three nodes, real processes, that come back at whichever node with the last id they
// have, while nodes and NATS are killed: each sees every event once, in order, and replies whole.
// Longer in `npm run prove`.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createParser } from "eventsource-parser";
import { askUntil } from "#support/asking.ts";
import { withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodeProcesses, type NodeProcesses } from "#support/nodes/node-processes.ts";
import { IS_PROOF } from "#support/proof.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const CONVERSATIONS = IS_PROOF ? 16 : 4;
const SENDS = IS_PROOF ? 200 : 6;
const WATCHERS = IS_PROOF ? 4 : 2;
const KILLS = IS_PROOF ? 30 : 1;
/** Longest that a watcher stays at one node. */
const STAY_MS = 1500;
const REPLY = { tokens: ["One ", "two ", "three ", "four ", "five."], gapMs: 25 };

const skip = withoutPostgres || withoutNats;
const model = await startScriptedModel({ record: false });
model.script(() => REPLY);
let nodes: NodeProcesses;
before(async () => {
  if (skip) return;
  nodes = await startNodeProcesses({ count: 3, env: () => ({ PARLEY_MODEL_URL: model.url }) });
});
after(async () => {
  if (!skip) await nodes.close();
  await model.close();
});

interface Frame {
  id?: string;
  type: string;
  turn_id?: number | null;
  text?: string;
  message?: { role: string; content: string };
}

/** These have the id of the event they follow. */
const PASSING = new Set([
  "reply_start", "reply_delta", "reply_end", "function_call_start", "function_call_end",
]);
const isCommitted = ({ id, type }: Frame): boolean => id !== undefined && !PASSING.has(type);

/** Follows a conversation from its beginning, a while at one node and then at another. */
function watch(uuid: string) {
  const frames: Frame[] = [];
  const leaving = new AbortController();
  let joined = 0;
  const stay = async (): Promise<void> => {
    const lastId = frames.findLast(({ id }) => id !== undefined)?.id ?? "0";
    const away = AbortSignal.any([
      leaving.signal, AbortSignal.timeout(Math.ceil(Math.random() * STAY_MS)),
    ]);
    const parser = createParser({
      onEvent: ({ data }) => void frames.push(JSON.parse(data) as Frame),
    });
    const { ok, body } = await fetch(`${nodes.door()}/api/conversations/${uuid}/stream`, {
      headers: { "Last-Event-ID": lastId }, signal: away,
    });
    if (!ok) return;
    joined += 1;
    const decoder = new TextDecoder();
    for await (const chunk of body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
  };
  const follow = async (): Promise<void> => {
    while (!leaving.signal.aborted) {
      // Its time was over, or the node is gone: on to another one.
      await stay().catch(() => undefined);
      await sleep(10);
    }
  };
  const followed = follow();
  return {
    frames,
    joined: () => joined,
    leave: async () => {
      leaving.abort();
      await followed;
    },
  };
}

type Watcher = ReturnType<typeof watch>;

const reached = ({ frames }: Watcher): number =>
  Number(frames.findLast(isCommitted)?.id ?? 0);

/** Each committed event once and in order; what was heard of a reply is the reply. */
function check({ frames }: Watcher, log: Frame[]): void {
  const heard = new Map<number, string>();
  const committed: Frame[] = [];
  for (const frame of frames) {
    const { turn_id: turnId, text, message, type } = frame;
    if (type === "reply_delta") {
      heard.set(Number(turnId), (heard.get(Number(turnId)) ?? "") + text);
    }
    if (!isCommitted(frame)) continue;
    committed.push(frame);
    if (type === "reply_failed") heard.delete(Number(turnId));
    if (message?.role === "assistant" && typeof turnId === "number") {
      assert.equal(heard.get(turnId), message.content, `the reply of turn ${turnId}`);
    }
  }
  assert.deepEqual(committed.map(({ id }) => Number(id)), log.map((_, index) => index + 1));
  assert.deepEqual(committed.map(({ type }) => type), log.map(({ type }) => type));
}

async function converse(uuid: string, onSent: () => void): Promise<void> {
  for (let count = 0; count < SENDS; count += 1) {
    const message = `message ${count}`;
    const { message: answer } = await nodes.ask<{ message: string }>(
      "POST", `/conversations/${uuid}/messages`, { body: { message }, idempotencyKey: message });
    assert.equal(answer, REPLY.tokens.join(""));
    onSent();
  }
}

test("[WI60] watchers reconnecting while nodes and NATS are killed see each event once, in order, replies whole", { skip, timeout: 3_000_000 }, async () => {
  const uuids = await Promise.all(Array.from({ length: CONVERSATIONS }, async () =>
    (await nodes.ask<{ conversation_id: string }>(
      "POST", "/conversations", { body: { assistant_id: nodes.assistant } })).conversation_id));
  const watched = uuids.map((uuid) =>
    ({ uuid, watchers: Array.from({ length: WATCHERS }, () => watch(uuid)) }));
  let sent = 0;
  let wake = (): void => undefined;
  const sending = Promise.all(uuids.map((uuid) => converse(uuid, () => {
    sent += 1;
    wake();
  })));
  const killing = async (): Promise<void> => {
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const goal = (CONVERSATIONS * SENDS * kill) / (KILLS + 1);
      while (sent < goal) await new Promise<void>((resolve) => (wake = resolve));
      await nodes.nats.kill();
      await sleep(500);
      await nodes.nats.start();
      await nodes.replace();
    }
  };
  try {
    await Promise.all([sending, killing()]);
    await nodes.settled();
    await checkAll(watched);
  } finally {
    await Promise.all(watched.flatMap(({ watchers }) => watchers.map(({ leave }) => leave())));
  }
});

async function checkAll(watched: { uuid: string; watchers: Watcher[] }[]): Promise<void> {
  for (const { uuid, watchers } of watched) {
    const rows = await nodes.database.query<{ type: string }>(`
      SELECT e.type FROM events e JOIN conversations c ON c.id = e.conversation_id
      WHERE c.uuid = $1 ORDER BY e.sequence`, [uuid]);
    for (const watcher of watchers) {
      await askUntil(() => reached(watcher), (sequence) => sequence >= rows.length);
      check(watcher, rows);
      assert.ok(watcher.joined() > 1, "it came back at least once");
    }
  }
}
