// The evaluation of chats that have ended: stored, told, once per end, also after a restart.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { createEvaluations, type Evaluated, type EvaluationStore } from "#features/conversations/evaluations.ts";
import { askUntil } from "#support/asking.ts";
import {
  newAssistant, newConversation, startTestServer, testDataDir, type TestServer,
} from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const dataDir = testDataDir();
let aheadMicros = 0;
const real = createSystem();
const system = { ...real, now: () => real.now() + aheadMicros };
const env = { PARLEY_MODEL_URL: model.url };
const server = await startTestServer({ env, dataDir, system });
after(async () => {
  await model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const TALK = {
  initial_message: "Hi there.", status: "active", post_call_evaluation: true,
  post_call_schema: [{ name: "happy", type: "bool", description: "Were they happy?" }],
  tools: [{ type: "end_call", description: "" }],
};

/** Messages end the conversation; its evaluation is this. */
const evaluations: unknown[] = [];
const answerAll = (evaluation: string, hold?: Promise<void>) => model.script(({ messages }) => {
  if (String(messages[0]?.content).includes("evaluate finished")) {
    evaluations.push(messages.at(-1)?.content);
    return { tokens: [evaluation], ...(hold ? { hold } : {}) };
  }
  if (messages.at(-1)?.role === "tool") return { tokens: ["Bye."] };
  if (messages.at(-1)?.content === "Stay") return { tokens: ["Fine."] };
  return { toolCalls: [{ id: "c", name: "end_conversation", arguments: "{}" }] };
});

/** The next evaluation the account is told of. */
const told = (on: TestServer): Promise<Record<string, unknown>> => new Promise((resolve) => {
  const stop = on.app.features.bus.subscribe(`account:${server.accountId}`, (notice) => {
    if (notice.kind !== "committed" || notice.event.type !== "conversation_evaluated") return;
    stop();
    resolve(JSON.parse(notice.event.json) as Record<string, unknown>);
  });
});
const say = (uuid: string, message = "Good bye") =>
  server.call("POST", `/conversations/${uuid}/messages`, { body: { message } });
const recordOf = async (uuid: string, on: TestServer = server) => {
  const { status, body } = await on.call("GET", `/user/conversations/${uuid}`, { key: server.key });
  assert.equal(status, 200);
  return [body.data.evaluation, body.data.evaluation_error];
};

test("[CV504] an evaluation with only the offline model says what to set up, and no model is asked", async () => {
  const bare = await startTestServer();
  try {
    assert.equal(bare.accountId, server.accountId);
    const uuid = await newConversation(bare, (await newAssistant(bare, TALK)).uuid);
    const sent = await bare.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hi" } });
    assert.equal(sent.status, 200);
    const evaluated = told(bare);
    assert.equal((await bare.call("POST", `/user/conversations/${uuid}/end`)).status, 200);
    assert.deepEqual(await evaluated, {
      type: "conversation_evaluated", conversation_id: uuid, evaluation: {}, evaluation_error:
        "The offline model cannot evaluate: set up a model server (PARLEY_MODEL_URL).",
    });
  } finally {
    await bare.close();
  }
});

test("[CV129] an ended chat is evaluated once, with or without a webhook, after a restart too", async () => {
  const assistant = await newAssistant(server, { ...TALK, conversation_inactivity_timeout: 5 });
  const uuid = await newConversation(server, assistant.uuid);
  answerAll("{\"happy\":true}");
  assert.deepEqual(await recordOf(uuid), [null, null]);
  const balance = async () => (await server.call("GET", "/user/me")).body.total_balance as number;
  const before = await balance();
  const first = told(server);
  assert.equal((await say(uuid)).status, 200);
  assert.deepEqual(await first, {
    type: "conversation_evaluated", conversation_id: uuid, evaluation: { happy: true },
    evaluation_error: null,
  });
  assert.deepEqual(await recordOf(uuid), [{ happy: true }, null]);
  assert.equal(Math.round((before - await balance()) * 100), 1, "the reply alone costs");
  assert.equal(evaluations.length, 1);
  assert.match(String(evaluations[0]), /Customer: Good bye\nAI: Bye\./);

  // It goes on, and ends anew by going quiet; one nobody wrote in is not asked about.
  const silent = await newConversation(server, assistant.uuid);
  answerAll("Happy, I think.");
  assert.equal((await say(uuid, "Stay")).status, 200);
  assert.deepEqual(await recordOf(uuid), [{ happy: true }, null]);
  aheadMicros = 10 * 60_000_000;
  const second = told(server);
  await server.app.features.conversations.sweep();
  assert.deepEqual([(await second).conversation_id, (await second).evaluation], [uuid, {}]);
  assert.deepEqual(await recordOf(uuid), [{}, "The model's answer was not a JSON object."]);
  assert.deepEqual(await recordOf(silent), [null, null]);
  const { body: list } = await server.call("GET", "/user/conversations");
  assert.deepEqual(
    list.data.map((row: { evaluation: unknown }) => row.evaluation), [null, {}]);

  // The server stops in the middle of one.
  const asked = evaluations.length;
  answerAll("{\"happy\":false}", new Promise(() => undefined));
  const { requests } = model.counts;
  assert.equal((await say(uuid)).status, 200);
  await model.waitFor("requests", requests + 3);
  assert.equal(evaluations.length, asked + 1);
  await server.close();
  const { promise: hold, resolve: release } = Promise.withResolvers<undefined>();
  answerAll("{\"happy\":false}", hold);
  const again = await startTestServer({ env, dataDir, system });
  const third = told(again);
  release(undefined);
  assert.deepEqual((await third).evaluation, { happy: false });
  assert.deepEqual(await recordOf(uuid, again), [{ happy: false }, null]);
  assert.equal(evaluations.length, asked + 2);
  await again.close();
});

const CHAT = { id: 1, uuid: "u", accountId: 1, assistantId: 1, endedAt: 1 };

/** Evaluations over a store that answers when the test says, as a database at a distance does. */
function evaluationsOver(
  store: Pick<EvaluationStore, "due" | "find">,
  { evaluate, stored = () => undefined }: {
    evaluate(): Promise<void>; stored?: (result: Evaluated) => void;
  },
) {
  return createEvaluations({
    store: {
      ...store,
      evaluated: (result) => {
        stored(result);
        return Promise.resolve([]);
      },
    },
    evaluate: async () => {
      await evaluate();
      return { values: {}, error: null };
    },
    isOurs: () => true, atOnceMax: 4, bus: createMemoryBus(), system: real,
    log: createLogger("silent"),
  });
}

test("[CV134] a due list read before an evaluation was stored does not repeat and charge it", async () => {
  const reads: ((due: typeof CHAT[]) => void)[] = [];
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const stored = Promise.withResolvers<unknown>();
  let paid = 0;
  const evaluations = evaluationsOver({
    due: () => new Promise((resolve) => reads.push(resolve)),
    find: () => Promise.resolve({ isDue: false, values: {} }),
  }, {
    evaluate: async () => {
      paid += 1;
      asked.resolve();
      await answer.promise;
    },
    stored: stored.resolve,
  });
  const read = async (due: typeof CHAT[]): Promise<void> => {
    while (reads.length === 0) await setImmediate();
    reads.shift()?.(due);
  };
  evaluations.start();
  await read([CHAT]);
  await asked.promise;
  evaluations.wake();
  // The second look has begun, and is answered from what was true then.
  while (reads.length === 0) await setImmediate();
  answer.resolve();
  await stored.promise;
  await setImmediate();
  await read([CHAT]);
  await read([]);
  assert.equal(paid, 1);
  // The chat went on, and has ended again.
  evaluations.wake();
  await read([{ ...CHAT, endedAt: 2 }]);
  while (paid < 2) await setImmediate();
  await read([]);
  await evaluations.close();
});

test("[CV135] a webhook that asks for an evaluation while it is being stored gets it", async () => {
  let isDue = true;
  const [evaluated, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const stored = Promise.withResolvers<unknown>();
  let reads = 0;
  const evaluations = evaluationsOver({
    due: () => Promise.resolve(isDue ? [CHAT] : []),
    find: async () => {
      const read = { isDue, values: { happy: true } };
      reads += 1;
      if (reads === 1) await late.promise;
      return read;
    },
  }, {
    evaluate: () => evaluated.promise,
    stored: () => {
      isDue = false;
      stored.resolve(null);
    },
  });
  evaluations.start();
  const values = evaluations.valuesOf(CHAT.uuid);
  evaluated.resolve();
  await stored.promise;
  await setImmediate();
  late.resolve();
  assert.deepEqual(await values, { happy: true });
  await evaluations.close();
});

test("[CV716] an evaluation that fails by a defect is recorded as failed, and its place is free", async () => {
  const due = new Map([1, 2, 3, 4, 5].map((id) => [id, { ...CHAT, id, uuid: `u${id}` }]));
  const { promise: last, resolve: atLast } = Promise.withResolvers<void>();
  const errors: (string | null)[] = [];
  let asked = 0;
  const evaluations = evaluationsOver({
    due: () => Promise.resolve([...due.values()]),
    find: (uuid) => Promise.resolve({ isDue: due.has(Number(uuid.slice(1))), values: {} }),
  }, {
    evaluate: async () => {
      asked += 1;
      if (asked <= 4) throw new TypeError("a defect");
    },
    stored: ({ id, error }) => {
      due.delete(id);
      errors.push(error);
      if (due.size === 0) atLast();
    },
  });
  evaluations.start();
  await last;
  assert.deepEqual(errors, [...Array<string>(4).fill("The evaluation failed."), null]);
  assert.deepEqual(await evaluations.valuesOf("u1"), {}, "its webhook waits no longer");
  assert.equal(asked, 5);
  await evaluations.close();
});

test("[CV717] evaluations take turns by account", async () => {
  const hold = Promise.withResolvers<void>();
  const shared = await startTestServer({ env: { ...env, PARLEY_EVALUATIONS_MAX: "1" } });
  try {
    answerAll('{"happy": true}', hold.promise);
    const before = evaluations.length;
    const other = await shared.newAccount();
    for (const [key, names] of [[shared.key, ["one", "two", "three"]], [other.key, ["four"]]] as const) {
      const { uuid: assistant } = await newAssistant(shared, TALK, key);
      for (const name of names) {
        const uuid = await newConversation(shared, assistant);
        await shared.call("POST", `/conversations/${uuid}/messages`, { body: { message: name } });
      }
    }
    hold.resolve();
    await askUntil(async () => evaluations.length - before, (count) => count === 4);
    const order = evaluations.slice(before).map((text) => /one|two|three|four/.exec(String(text))?.[0]);
    assert.deepEqual(order, ["one", "four", "two", "three"]);
  } finally {
    await shared.close();
  }
});
