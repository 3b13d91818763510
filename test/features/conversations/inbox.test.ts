// The inbox through the real server: queues in their order with their counts, search, notes, and
// the answers people have ready.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createSystem } from "#core/system.ts";
import { rowsBeside } from "#support/databases/beside.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
});

async function fresh() {
  const account = await server.newAccount();
  const { accounts } = server.app.features;
  const keyOf = async (name: string) => (await accounts.createKey(account.accountId, name)).token;
  const [ana, ben] = [await keyOf("Ana"), await keyOf("Ben")];
  const assistant = await newAssistant(server, { desk: { visitor_may_ask: true } }, account.key);
  const begin = (members: Record<string, unknown> = {}) =>
    newConversation(server, assistant.uuid, members);
  const read = async (key: string, query: string) =>
    (await server.call("GET", `/user/inbox?${query}`, { key })).body;
  const ids = async (key: string, query: string): Promise<string[]> =>
    (await read(key, query)).data.map(({ id }: { id: string }) => id);
  return { ...account, ana, ben, begin, read, ids };
}

const ask = (uuid: string) => server.call("POST", `/conversations/${uuid}/request-human`);
const take = (uuid: string, key: string) =>
  server.call("POST", `/user/conversations/${uuid}/take-over`, { key });

test("[DK12] the inbox: longest waiting first, mine only mine, all is every open one, each with its count", async () => {
  const { ana, ben, begin, read, ids } = await fresh();
  const [first, second, third] = [await begin(), await begin(), await begin()];
  await ask(second);
  await ask(first);
  await take(third, ana);
  assert.deepEqual(await ids(ana, "queue=waiting"), [second, first]);
  assert.deepEqual(await ids(ana, ""), [second, first], "waiting is what one sees first");
  assert.deepEqual(await ids(ana, "queue=mine"), [third]);
  assert.deepEqual(await ids(ben, "queue=mine"), []);
  assert.deepEqual((await ids(ben, "queue=all")).toSorted(), [first, second, third].toSorted());
  const page = await read(ana, "queue=waiting&per_page=1");
  assert.deepEqual(page.counts, { waiting: 2, mine: 1, all: 3 });
  assert.equal(page.me.name, "Ana");
  assert.deepEqual(page.data[0].last_message.content, "Hello");
  assert.deepEqual(await ids(ana, `queue=waiting&per_page=1&cursor=${page.next_cursor}`), [first]);
  assert.equal((await server.call("GET", "/user/inbox?cursor=x", { key: ana })).status, 422);
  await server.call("POST", `/user/conversations/${third}/end`, { key: ana });
  assert.deepEqual((await read(ana, "queue=all")).counts, { waiting: 2, mine: 0, all: 2 });
  const stranger = await server.newAccount();
  assert.deepEqual((await read(stranger.key, "queue=all")).data, []);
});

test("[DK13] inbox search covers messages and who wrote them; pattern characters are literal", async () => {
  const { ana, begin, ids } = await fresh();
  const one = await begin({ variables: { customer_name: "Zoë Zander" } });
  const other = await begin();
  await server.call("POST", `/conversations/${other}/messages`, { body: { message: "100% REFUND_please" } });
  assert.deepEqual(await ids(ana, "queue=all&search=refund"), [other]);
  assert.deepEqual(await ids(ana, `queue=all&search=${encodeURIComponent("100%")}`), [other]);
  assert.deepEqual(await ids(ana, `queue=all&search=${encodeURIComponent("1%0")}`), []);
  assert.deepEqual(await ids(ana, "queue=all&search=refundXplease"), []);
  assert.deepEqual(await ids(ana, "queue=all&search=zander"), [one]);
  await server.call("POST", `/user/conversations/${other}/end`, { key: ana });
  assert.deepEqual(await ids(ana, "queue=all"), [one]);
  assert.deepEqual(await ids(ana, "queue=all&search=refund"), [other], "also where it has ended");
});

test("[DK79] a visitor's name with capitals of any alphabet is found in any case", async () => {
  const { key, begin, ids } = await fresh();
  const uuid = await begin({ variables: { customer_name: "ÖZIL Ángel Чехов" } });
  for (const written of ["ÖZIL", "Özil", "özil", "Ángel", "ÁNGEL", "чехов"]) {
    const search = `search=${encodeURIComponent(written)}`;
    assert.deepEqual(await ids(key, `queue=all&${search}`), [uuid], written);
    const { body } = await server.call("GET", `/user/conversations?${search}`, { key });
    assert.deepEqual(body.data.map(({ id }: { id: string }) => id), [uuid], written);
  }
  assert.deepEqual(await ids(key, `queue=all&search=${encodeURIComponent("ozil")}`), []);
});

test("[DK78] a conversation is unread on its row and by the filter alike, never for its last writer", async () => {
  const { ana, ben, begin, read, ids } = await fresh();
  const uuid = await begin();
  const says = (key: string) => server.call("POST", `/user/conversations/${uuid}/messages`, {
    key, body: { message: "I am here" },
  });
  const unreadBy = async (key: string): Promise<[boolean, string[]]> =>
    [(await read(key, "queue=all")).data[0].unread, await ids(key, "queue=all&unread=true")];
  assert.deepEqual(await unreadBy(ana), [true, [uuid]]);
  assert.equal((await says(ana)).status, 201);
  assert.deepEqual(await unreadBy(ana), [false, []]);
  assert.deepEqual(await unreadBy(ben), [true, [uuid]]);
  await server.call("POST", `/user/conversations/${uuid}/hand-back`, { key: ana });
  assert.equal((await says(ben)).status, 201);
  assert.deepEqual(await unreadBy(ana), [true, [uuid]]);
});

test("[DK14] notes are visible to the account only, with their author", async () => {
  const { ana, key, begin } = await fresh();
  const uuid = await begin();
  const path = `/user/conversations/${uuid}/notes`;
  const made = await server.call("POST", path, { key: ana, body: { text: "Call back" } });
  assert.equal(made.status, 201);
  assert.deepEqual([made.body.data.author.name, made.body.data.text], ["Ana", "Call back"]);
  assert.deepEqual((await server.call("GET", path, { key })).body, { data: [made.body.data] });
  assert.equal((await server.call("POST", path, { key: ana, body: { text: " " } })).status, 422);
  const stranger = await server.newAccount();
  for (const method of ["GET", "POST"]) {
    const foreign = await server.call(method, path, {
      key: stranger.key, ...method === "POST" ? { body: { text: "x" } } : {},
    });
    assert.equal(foreign.status, 404);
  }
  const seen = await server.call("GET", `/conversations/${uuid}`);
  assert.ok(!JSON.stringify(seen.body).includes("Call back"));
});

test("[DK15] canned replies: created, changed, deleted, shortcuts unique, per account", async () => {
  const { ana } = await fresh();
  const call = (method: string, path: string, body?: object, key = ana) =>
    server.call(method, `/user/canned-replies${path}`, { key, ...body ? { body } : {} });
  const made = await call("POST", "", { shortcut: "hours", text: "Hello {{customer_name}}" });
  assert.equal(made.status, 201);
  const { id } = made.body.data;
  assert.equal((await call("POST", "", { shortcut: "hours", text: "x" })).body.errors.shortcut.length, 1);
  assert.equal((await call("POST", "", { shortcut: "two words", text: "x" })).status, 422);
  const changed = await call("PUT", `/${id}`, { shortcut: "hours", text: "9 to 5" });
  assert.equal(changed.body.data.text, "9 to 5");
  const stranger = await server.newAccount();
  assert.equal((await call("PUT", `/${id}`, { shortcut: "h", text: "x" }, stranger.key)).status, 404);
  assert.equal((await call("PUT", `/${id + 1}`, { shortcut: "hours", text: "x" })).status, 404);
  assert.equal((await call("DELETE", `/${id}`, undefined, stranger.key)).status, 404);
  assert.deepEqual((await call("GET", "", undefined, stranger.key)).body, { data: [] });
  assert.deepEqual((await call("GET", "")).body, { data: [changed.body.data] });
  assert.equal((await call("DELETE", `/${id}`)).status, 200);
  assert.deepEqual((await call("GET", "")).body, { data: [] });
});

test("[NP8] while a conversation waits for a person its end is looked for once per timeout, and not missed", async () => {
  const real = createSystem();
  let aheadMicros = 0;
  const on = await startTestServer({
    system: { ...real, now: () => real.now() + aheadMicros },
  });
  const quick = await newAssistant(on, { conversation_inactivity_timeout: 60 });
  const uuid = await newConversation(on, quick.uuid);
  const desk = (what: string) => on.call("POST", `/user/conversations/${uuid}/${what}`, { body: {} });
  const startedAt = real.now();
  const looked = async (minutes: number) => {
    aheadMicros = minutes * 60_000_000;
    await on.app.features.conversations.sweep();
    const [row] = await rowsBeside<{ state: string; check_at: number }>(
      on.dataDir, "SELECT state, check_at FROM conversations WHERE uuid = @uuid", { uuid });
    return [row?.state, Math.floor(((row?.check_at ?? 0) - startedAt) / 60_000_000)];
  };
  assert.equal((await desk("request-human")).status, 200);
  assert.deepEqual(await looked(61), ["open", 121]);
  aheadMicros = 80 * 60_000_000;
  assert.equal((await desk("hand-back")).status, 200);
  assert.deepEqual(await looked(122), ["open", 140]);
  assert.equal((await looked(141))[0], "ended");
  await on.close();
});
