// People at the desk, through the real server and a scripted model: who has a conversation, what
// they write in it, and what the assistant does meanwhile.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createParser } from "eventsource-parser";
import { holdWrites } from "#support/databases/beside.ts";
import { memberOf } from "#support/members.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" },
});
after(async () => {
  await server.close();
  await model.close();
});

const send = (uuid: string, message: string) =>
  server.call("POST", `/conversations/${uuid}/messages`, { body: { message } });
const at = (uuid: string, action: string, key: string, body?: object) =>
  server.call("POST", `/user/conversations/${uuid}/${action}`, { key, ...body ? { body } : {} });

interface Frame { type: string; id: string; [member: string]: unknown }

/** An account with two people's keys, and a conversation with its assistant. */
async function fresh(settings: Record<string, unknown> = {}) {
  const account = await server.newAccount();
  const { accounts } = server.app.features;
  const keyOf = async (name: string) => (await accounts.createKey(account.accountId, name)).token;
  const [ana, ben] = [await keyOf("Ana"), await keyOf("Ben")];
  const assistant = await newAssistant(server, settings, account.key);
  const uuid = await newConversation(server, assistant.uuid);
  return { ...account, ana, ben, assistant, uuid };
}

/** The stream from its beginning up to the frame that is waited for. */
async function framesUntil(
  path: string, key: string | null, isLast: (frame: Frame) => boolean,
): Promise<Frame[]> {
  const response = await fetch(`${server.url}/api${path}?after=0`, {
    headers: key === null ? {} : { Authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(10_000),
  });
  const frames: Frame[] = [];
  const parser = createParser({ onEvent: ({ data }) => frames.push(JSON.parse(data) as Frame) });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader && !frames.some(isLast)) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream ended");
    parser.feed(value);
  }
  await reader?.cancel();
  return frames.slice(0, frames.findIndex(isLast) + 1);
}

const historyOf = async (uuid: string): Promise<Record<string, unknown>[]> =>
  (await server.call("GET", `/conversations/${uuid}`)).body.history;
const spoken = (history: Record<string, unknown>[]): string[] =>
  history.map(({ role, content }) => `${String(role)}: ${String(content)}`);

test("[DK2] taking over, handing back and asking for a person are events in both streams and webhooks", async () => {
  const receiver = await startWebhookReceiver();
  const { ana, key, uuid } = await fresh();
  await server.call("POST", "/user/webhook-endpoints", {
    key, body: { url: receiver.url, events: ["desk_changed"] },
  });
  const asked = await at(uuid, "request-human", ana, { reason: "Wants a refund" });
  assert.equal(asked.status, 200);
  assert.equal(asked.body.desk, "waiting");
  const taken = await at(uuid, "take-over", ana);
  assert.equal(taken.body.desk, "person");
  assert.equal(taken.body.desk_holder.name, "Ana");
  assert.equal((await at(uuid, "take-over", ana)).status, 200, "again by the same: nothing new");
  assert.equal((await at(uuid, "hand-back", ana)).body.desk, "assistant");
  const isLast = ({ type, desk }: Frame) => type === "desk_changed" && desk === "assistant";
  const own = await framesUntil(`/conversations/${uuid}/stream`, null, isLast);
  const desk = own.filter(({ type }) => type === "desk_changed");
  const nameOf = (by: unknown): string => (by as { name: string }).name;
  assert.deepEqual(desk.map(({ desk: to, reason, by }) => [to, reason, nameOf(by)]), [
    ["waiting", "asked", "Ana"], ["person", "taken_over", "Ana"], ["assistant", "handed_back", "Ana"],
  ]);
  assert.deepEqual(own.map(({ id }) => Number(id)), own.map((_, index) => index + 1), "no holes");
  assert.ok(!JSON.stringify(own).includes("refund"), "visitors do not read notes");
  const all = await framesUntil("/user/stream", key, isLast);
  assert.deepEqual(all.filter(({ type }) => type === "desk_changed").map(({ desk }) => desk),
    ["waiting", "person", "assistant"]);
  assert.equal(all.find(({ type }) => type === "note_added")?.text, "Wants a refund");
  const [first] = await receiver.until(3);
  assert.deepEqual([first?.body.type, (first?.body.data as { desk: string }).desk],
    ["desk_changed", "waiting"]);
  const row = await server.call("GET", `/user/conversations/${uuid}`, { key });
  assert.deepEqual([row.body.data.desk, row.body.data.desk_reason, row.body.data.ai_enabled],
    ["assistant", "handed_back", true]);
  await receiver.close();
});

test("[DK241] what a removed or demoted member or a revoked key had waits again, told as any request is", async () => {
  const { accountId, ana, assistant, key, uuid } = await fresh({
    desk: { office_hours: { time_zone: "UTC", hours: {}, message: "Later.", callback: false } },
  });
  const another = () => newConversation(server, assistant.uuid);
  const of = { removed: await another(), demoted: await another(), kept: await another() };
  const [removed, demoted, kept] = [
    await memberOf(server, "operator", key), await memberOf(server, "operator", key),
    await memberOf(server, "operator", key),
  ];
  await at(uuid, "take-over", ana);
  await removed.call("POST", `/user/conversations/${of.removed}/take-over`);
  await demoted.call("POST", `/user/conversations/${of.demoted}/take-over`);
  await kept.call("POST", `/user/conversations/${of.kept}/take-over`);
  await server.call("DELETE", `/user/members/${removed.id}`, { key });
  await server.call("PATCH", `/user/members/${demoted.id}`, { key, body: { role: "viewer" } });
  await server.app.features.accounts.revokeKey(accountId, Number(ana.split("|")[0]));
  for (const lost of [uuid, of.removed, of.demoted]) {
    const frames = await framesUntil(`/conversations/${lost}/stream`, null,
      ({ type, ai_enabled: answers }) => type === "ai_toggled" && answers === true);
    const { by, desk, holder, reason, away } = frames.at(-2)!;
    assert.deepEqual({ by, desk, holder, reason, away }, {
      by: { role: "rule" }, desk: "waiting", holder: null, reason: "lost",
      away: { message: "Later.", opens_at: null, callback: false },
    });
    model.script(() => ({ tokens: ["Here."] }));
    assert.equal((await send(lost, "Anybody?")).body.message, "Here.");
  }
  model.script(null);
  const { body } = await kept.call("GET", "/user/inbox?queue=waiting");
  assert.deepEqual(body.counts, { waiting: 3, mine: 1, all: 4 });
});

test("[DK3] two people cannot hold one conversation: the other always learns who has it", async () => {
  const { ana, ben, uuid } = await fresh();
  const outcomes = await Promise.all([at(uuid, "take-over", ana), at(uuid, "take-over", ben)]);
  assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), [200, 409]);
  const [loser, winner] = outcomes[0]?.status === 200 ? [ben, "Ana"] : [ana, "Ben"];
  const refused = await at(uuid, "take-over", loser);
  assert.deepEqual([refused.status, refused.body], [409, { message: `${winner} has this conversation.` }]);
  const message = await at(uuid, "messages", loser, { message: "Me too" });
  assert.deepEqual([message.status, message.body.message], [409, `${winner} has this conversation.`]);
  assert.ok(!spoken(await historyOf(uuid)).some((line) => line.includes("Me too")));
  const foreign = await server.newAccount();
  assert.equal((await at(uuid, "take-over", foreign.key)).status, 404);
  assert.equal((await at(uuid, "messages", foreign.key, { message: "x" })).status, 404);
});

test("[DK4] taking over stops the running reply as a stop does; the assistant is silent until handed back", async () => {
  const { ana, key, uuid } = await fresh();
  const gate = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["one ", "two"], hold: gate.promise, holdAfter: 1 }));
  const answered = send(uuid, "Hello");
  await framesUntil(`/conversations/${uuid}/stream`, null, ({ type }) => type === "reply_delta");
  assert.equal((await at(uuid, "take-over", ana)).status, 200);
  gate.resolve();
  assert.equal((await answered).body.stopped, true);
  const requests = model.counts.requests;
  const stored = await send(uuid, "Anybody?");
  assert.deepEqual(stored.body, { status: true, message: "", function_calls: [], ai_disabled: true });
  assert.equal((await at(uuid, "messages", ana, { message: "Ana here" })).status, 201);
  await send(uuid, "Hi Ana");
  assert.equal(model.counts.requests, requests, "nobody asked the model");
  assert.equal((await server.call("GET", "/user/me", { key })).body.total_balance, 4.99);
  await at(uuid, "hand-back", ana);
  model.script((body) => {
    assert.deepEqual(body.messages.slice(1).map(({ role, content }) => [role, content]), [
      ["assistant", "Hello"], ["user", "Hello"], ["assistant", "one "], ["user", "Anybody?"],
      ["assistant", "[Ana, a colleague]: Ana here"], ["user", "Hi Ana"], ["user", "And you?"],
    ]);
    assert.match(String(body.messages[0]?.content), /written by a person of the team/);
    return { tokens: ["Back."] };
  });
  assert.equal((await send(uuid, "And you?")).body.message, "Back.");
  model.script(null);
  assert.deepEqual(spoken(await historyOf(uuid)), [
    "assistant: Hello", "user: Hello", "assistant: one ", "user: Anybody?", "operator: Ana here",
    "user: Hi Ana", "user: And you?", "assistant: Back.",
  ]);
  const desk = await framesUntil(`/conversations/${uuid}/stream`, null,
    ({ type, desk: to }) => type === "desk_changed" && to === "person");
  assert.equal(desk.at(-2)?.type, "message_added", "the reply was over before the desk changed");
});

test("[DK5] a person's message: 201 with its author, free, once per key; its sender holds the conversation", async () => {
  const { ana, ben, key, uuid } = await fresh();
  const write = (by: string, message: string, idempotencyKey: string) => server.call(
    "POST", `/user/conversations/${uuid}/messages`,
    { key: by, body: { message }, headers: { "Idempotency-Key": idempotencyKey } });
  const both = await Promise.all([write(ana, "Hello, Ana here", "m1"), write(ana, "Hello, Ana here", "m1")]);
  for (const { status, body } of both) {
    assert.equal(status, 201);
    const { created_at: createdAt, author, ...rest } = body.message;
    assert.deepEqual(rest, { role: "operator", content: "Hello, Ana here" });
    assert.equal(author.name, "Ana");
    assert.match(createdAt, /Z$/);
  }
  assert.deepEqual(both[0]?.body, both[1]?.body);
  assert.equal((await write(ana, "Something else", "m1")).status, 422);
  assert.equal((await at(uuid, "messages", ana, { message: " " })).status, 422);
  assert.equal((await at(uuid, "messages", ana, { message: "x".repeat(2001) })).status, 422);
  const row = await server.call("GET", `/user/conversations/${uuid}`, { key });
  assert.deepEqual([row.body.data.desk, row.body.data.desk_holder.name, row.body.data.total_cost],
    ["person", "Ana", 0]);
  assert.deepEqual((await historyOf(uuid)).at(-1), {
    role: "operator", content: "Hello, Ana here", author: row.body.data.desk_holder,
  });
  await at(uuid, "hand-back", ana);
  const again = await write(ana, "Hello, Ana here", "m1");
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  const after = await server.call("GET", `/user/conversations/${uuid}`, { key });
  assert.equal(after.body.data.desk, "assistant", "a repeat takes nothing over");
  assert.equal((await write(ben, "Ben now", "m2")).status, 201);
  const owned = await server.call("GET", `/user/conversations/${uuid}/messages`, { key });
  assert.deepEqual(owned.body.data.map(({ role }: { role: string }) => role),
    ["assistant", "operator", "operator"]);
});

test("[DK6] a visitor asks for a person where allowed; the assistant goes on answering until one comes", async () => {
  const closed = await fresh();
  const refused = await server.call("POST", `/conversations/${closed.uuid}/request-human`);
  assert.deepEqual([refused.status, refused.body.status], [403, false]);
  const { ana, uuid } = await fresh({ desk: { visitor_may_ask: true } });
  const asked = await server.call("POST", `/conversations/${uuid}/request-human`);
  assert.deepEqual([asked.status, asked.body], [200, { status: true, desk: "waiting", away: null }]);
  let prompt = "";
  model.script((body) => {
    prompt = String(body.messages[0]?.content);
    return { tokens: ["Somebody will come."] };
  });
  assert.equal((await send(uuid, "Where are they?")).body.message, "Somebody will come.");
  model.script(null);
  assert.match(prompt, /has been asked to join/);
  await at(uuid, "take-over", ana);
  const read = await server.call("GET", `/conversations/${uuid}`);
  assert.deepEqual([read.body.desk, read.body.desk_holder.name], ["person", "Ana"]);
});

test("[DK7] request_human takes effect once the reply is stored, with a note visitors cannot read", async () => {
  const { key, uuid } = await fresh({ desk: { assistant_may_ask: true } });
  const offered: unknown[] = [];
  model.script((body) => {
    offered.push(JSON.stringify(body.tools ?? []));
    if (body.messages.at(-1)?.role === "user") {
      const args = { reason: "Refund", summary: "Order 4711 came broken." };
      return {
        tokens: [], finishReason: "tool_calls",
        toolCalls: [{ id: "c1", name: "request_human", arguments: JSON.stringify(args) }],
      };
    }
    return { tokens: ["I have asked a colleague."] };
  });
  const reply = await send(uuid, "I want a refund");
  assert.equal(reply.body.message, "I have asked a colleague.");
  assert.match(String(offered[0]), /request_human/);
  const frames = await framesUntil(`/conversations/${uuid}/stream`, null,
    ({ type }) => type === "desk_changed");
  const changed = frames.at(-1);
  assert.deepEqual([changed?.desk, changed?.by, changed?.reason],
    ["waiting", { role: "assistant" }, "asked"]);
  assert.equal(frames.at(-2)?.type, "message_added", "after the reply is stored");
  model.script((body) => {
    offered.push(JSON.stringify(body.tools ?? []));
    return { tokens: ["Yes."] };
  });
  await send(uuid, "Thank you");
  model.script(null);
  assert.doesNotMatch(String(offered.at(-1)), /request_human/, "once is enough");
  const note = await framesUntil("/user/stream", key, ({ type }) => type === "note_added");
  assert.deepEqual([note.at(-1)?.text, note.at(-1)?.author],
    ["Refund\nOrder 4711 came broken.", null]);
});

test("[DK8] enable-ai and disable-ai are the desk's older names, also for a conversation a person holds", async () => {
  const { ana, ben, uuid } = await fresh();
  const toggle = (action: string, key: string) =>
    server.call("POST", `/automate/conversations/${uuid}/${action}`, { key });
  assert.deepEqual((await toggle("disable-ai", ana)).body, { status: true, ai_enabled: false });
  assert.deepEqual((await toggle("disable-ai", ben)).body, { status: true, ai_enabled: false });
  const row = await server.call("GET", `/user/conversations/${uuid}`, { key: ben });
  assert.deepEqual([row.body.data.desk, row.body.data.desk_holder], ["person", null], "nobody is named");
  assert.deepEqual((await toggle("enable-ai", ben)).body, { status: true, ai_enabled: true });
  const frames = await framesUntil(`/conversations/${uuid}/stream`, null,
    ({ type, ai_enabled: isOn }) => type === "ai_toggled" && isOn === true);
  assert.deepEqual(frames.filter(({ type }) => type !== "conversation_created" && type !== "message_added")
    .map(({ type, desk, ai_enabled: isOn }) => [type, desk ?? isOn]), [
    ["desk_changed", "person"], ["ai_toggled", false],
    ["desk_changed", "assistant"], ["ai_toggled", true],
  ]);
});

test("[DK9] a person ends a conversation; if it continues, the assistant has it", async () => {
  const { ana, key, uuid } = await fresh();
  await at(uuid, "take-over", ana);
  assert.deepEqual((await at(uuid, "end", ana)).body, { desk: "assistant" });
  const frames = await framesUntil(`/conversations/${uuid}/stream`, null,
    ({ type, desk }) => type === "desk_changed" && desk === "assistant");
  assert.deepEqual(frames.slice(-2).map(({ type, reason }) => [type, reason]),
    [["conversation_ended", "operator"], ["desk_changed", "ended"]]);
  assert.notEqual((await send(uuid, "One more thing")).body.message, "");
  const row = await server.call("GET", `/user/conversations/${uuid}`, { key });
  assert.equal(row.body.data.desk, "assistant");
});

test("[DK11] rules of an assistant ask for a person: a word, tool failures in a row, failed replies too", async () => {
  const { key, assistant } = await fresh({
    desk: { words: ["human", "talk to"], after_tool_failures: 2, after_unanswered: 2 },
  });
  const begin = () => newConversation(server, assistant.uuid);
  const reasonOf = async (uuid: string): Promise<string | null> => {
    const { body } = await server.call("GET", `/user/conversations/${uuid}`, { key });
    return body.data.desk === "waiting" ? body.data.desk_reason : null;
  };
  const byWord = await begin();
  await send(byWord, "The humane way");
  assert.equal(await reasonOf(byWord), null);
  let prompt = "";
  model.script((body) => {
    prompt = String(body.messages[0]?.content);
    return { tokens: ["Yes."] };
  });
  assert.equal((await send(byWord, "Can I TALK, to somebody?")).body.message, "Yes.");
  assert.match(prompt, /has been asked to join/, "the reply knows of it");
  const frames = await framesUntil(`/conversations/${byWord}/stream`, null,
    ({ type }) => type === "desk_changed");
  assert.deepEqual([frames.at(-1)?.by, frames.at(-1)?.reason], [{ role: "rule" }, "words"]);

  const byTool = await begin();
  model.script((body) => body.messages.at(-1)?.role === "user"
    ? {
        tokens: [], finishReason: "tool_calls",
        toolCalls: [{ id: "c", name: "nothing_like_it", arguments: "{}" }],
      }
    : { tokens: ["Sorry."] });
  await send(byTool, "One");
  assert.equal(await reasonOf(byTool), null);
  await send(byTool, "Two");
  assert.equal(await reasonOf(byTool), "tool_failures");

  const byFailure = await begin();
  model.script(() => ({ status: 400 }));
  assert.equal((await send(byFailure, "One")).status, 400);
  assert.equal(await reasonOf(byFailure), null);
  assert.equal((await send(byFailure, "Two")).status, 400);
  assert.equal(await reasonOf(byFailure), "unanswered");
  model.script(null);
});

test("[DK80] switching the AI off at the moment somebody takes over is done, not refused", async () => {
  const { uuid, ana, ben } = await fresh();
  const held = await holdWrites(server.dataDir);
  const taken = at(uuid, "take-over", ana);
  const off = server.call("POST", `/automate/conversations/${uuid}/disable-ai`, { key: ben });
  // Both have read who has the conversation once a later request has been answered.
  await at(uuid, "take-over", "unknown");
  await held.letGo();
  assert.equal((await taken).body.desk_holder.name, "Ana");
  const { status, body } = await off;
  assert.deepEqual([status, body], [200, { status: true, ai_enabled: false }]);
});

test("[DK77] a failed message sent again while a person has the conversation is stored, not answered", async () => {
  const { uuid, ana, key } = await fresh();
  const retry = () => server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "Help" }, headers: { "Idempotency-Key": "k" },
  });
  model.script(() => ({ status: 400 }));
  assert.equal((await retry()).status, 400);
  model.script(null);
  await at(uuid, "take-over", ana);
  const balance = async () => (await server.call("GET", "/user/me", { key })).body.total_balance;
  const [asked, before] = [model.counts.requests, await balance()];
  for (const { status, body } of [await retry(), await retry()]) {
    assert.deepEqual([status, body.ai_disabled, body.message], [200, true, ""]);
  }
  assert.deepEqual(spoken(await historyOf(uuid)), ["assistant: Hello", "user: Help"]);
  assert.deepEqual([model.counts.requests, await balance()], [asked, before]);
  await at(uuid, "hand-back", ana);
  assert.equal((await send(uuid, "And now?")).status, 200);
});

test("[DK16] typing is shown to watchers both ways and never stored", async () => {
  const { ana, uuid } = await fresh();
  await at(uuid, "take-over", ana);
  const typed = framesUntil(`/conversations/${uuid}/stream`, null, ({ type }) => type === "typing_ended");
  let isSeen = false;
  void typed.then(() => (isSeen = true));
  // Until the stream is there nobody sees it.
  while (!isSeen) {
    const visitor = await server.call(
      "POST", `/conversations/${uuid}/typing`, { body: { typing: true } });
    assert.deepEqual([visitor.status, visitor.body], [200, { status: true }]);
    await at(uuid, "typing", ana, { typing: true });
    await at(uuid, "typing", ana, { typing: false });
  }
  const frames = (await typed).filter(({ type }) => type.startsWith("typing_"));
  assert.equal(frames.at(-1)?.id, undefined, "no part of the log");
  assert.equal((frames.at(-1)?.by as { name: string }).name, "Ana");
  const again = await framesUntil(`/conversations/${uuid}/stream`, null,
    ({ type }) => type === "ai_toggled");
  assert.ok(!again.some(({ type }) => type.startsWith("typing_")));
  const stranger = await server.newAccount();
  assert.equal((await at(uuid, "typing", stranger.key, { typing: true })).status, 404);
});

test("[DK17] a conversation can be assigned to a person, whoever holds it", async () => {
  const { ana, ben, uuid } = await fresh();
  const me = async (key: string) => (await server.call("GET", "/user/inbox", { key })).body.me;
  await at(uuid, "take-over", ana);
  const given = await at(uuid, "assign", ana, { to: (await me(ben)).id });
  assert.deepEqual([given.body.desk, given.body.desk_holder.name, given.body.desk_reason],
    ["person", "Ben", "assigned"]);
  assert.equal((await at(uuid, "messages", ana, { message: "Still me" })).status, 409);
  assert.equal((await at(uuid, "messages", ben, { message: "Ben now" })).status, 201);
  const stranger = await server.newAccount();
  for (const to of ["key:0", "nobody", (await me(stranger.key)).id as string]) {
    assert.equal((await at(uuid, "assign", ana, { to })).status, 422);
  }
});

test("[DK322] a conversation is not assigned to a key that may not answer", async () => {
  const { accountId, ana, uuid } = await fresh();
  const { createKey } = server.app.features.accounts;
  const { key: reading } = await createKey(accountId, "Reads", { scopes: ["read"] });
  const { key: viewing } = await createKey(accountId, "Views", { role: "viewer" });
  for (const { id } of [reading, viewing]) {
    const refused = await at(uuid, "assign", ana, { to: `key:${id}` });
    assert.equal(refused.status, 422);
    assert.deepEqual(refused.body.errors, { to: ["The selected to is invalid."] });
  }
});
