// Office hours, callbacks, read positions and labels, through the real server.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Assistant } from "#features/assistants/assistants.ts";
import { awayOf } from "#features/conversations/desk/office-hours.ts";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { newAssistant, newConversation, openBeside, startTestServer } from "#support/server.ts";
import { startMailServer } from "#support/vendors/mail-server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" },
});
const stored = await openBeside(server.dataDir);
after(async () => {
  await stored.close();
  await server.close();
  await model.close();
});

const EVER = [{ from: "00:00", to: "24:00" }];
const ALWAYS = Object.fromEntries([
  "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
].map((day) => [day, EVER]));
const CLOSED = { time_zone: "Europe/Berlin", hours: {}, message: "Back on Monday.", callback: true };

async function fresh(officeHours: object | null) {
  const account = await server.newAccount();
  const { token: ana } = await server.app.features.accounts.createKey(account.accountId, "Ana");
  const assistant = await newAssistant(server, {
    desk: { visitor_may_ask: true, assistant_may_ask: true, office_hours: officeHours },
  }, account.key);
  const uuid = await newConversation(server, assistant.uuid);
  const inbox = async (query: string) =>
    (await server.call("GET", `/user/inbox?${query}`, { key: ana })).body;
  return { ...account, ana, assistant, uuid, inbox };
}

const newest = async (accountId: number, type: string): Promise<Record<string, unknown> | null> => {
  const events = await stored.events.ofAccount(accountId, 0, 1000);
  const found = events.findLast((event) => event.type === type);
  return found ? JSON.parse(found.json) as Record<string, unknown> : null;
};

test("[DK21] office hours follow their zone's wall clock except on holidays, across clock changes too", () => {
  const hours = { friday: [{ from: "13:00", to: "17:00" }, { from: "09:00", to: "12:00" }], sunday: EVER };
  const assistant = (office: object | null) => ({
    settings: { timezone: "UTC", desk: { office_hours: office } } as unknown as AssistantSettings,
  }) as Assistant;
  const at = (iso: string, office: object | null) =>
    awayOf(assistant(office), Date.parse(iso) * 1000);
  const berlin = { time_zone: "Europe/Berlin", hours, holidays: ["2026-11-27"] };
  const opens = (iso: string) => at(iso, berlin)?.opens_at ?? null;
  assert.equal(at("2026-11-20T03:00:00Z", null), null, "nobody has said");
  assert.equal(opens("2026-11-20T07:59:59Z"), "2026-11-20T08:00:00.000000Z");
  assert.equal(opens("2026-11-20T08:00:00Z"), null, "open from the first moment");
  assert.equal(opens("2026-11-20T11:00:00Z"), "2026-11-20T12:00:00.000000Z", "noon");
  assert.equal(opens("2026-11-20T15:59:59Z"), null);
  assert.equal(opens("2026-11-20T16:00:00Z"), "2026-11-21T23:00:00.000000Z", "Sunday's midnight");
  assert.equal(opens("2026-11-22T23:30:00Z"), "2026-11-28T23:00:00.000000Z", "not on the holiday");
  assert.equal(opens("2026-06-19T06:59:00Z"), "2026-06-19T07:00:00.000000Z", "in summer");
  assert.equal(opens("2026-10-25T22:59:00Z"), null, "a Sunday of 25 hours");
  assert.deepEqual(at("2026-11-20T03:00:00Z", CLOSED),
    { message: "Back on Monday.", opens_at: null, callback: true });
  assert.equal(at("2026-11-20T08:30:00Z", { hours })?.opens_at, "2026-11-20T09:00:00.000000Z",
    "without a zone the assistant's");
});

test("[DK22] a request for a person outside office hours waits, and every way of asking says so", async () => {
  const { uuid, accountId, assistant, ana } = await fresh(CLOSED);
  const away = { message: "Back on Monday.", opens_at: null, callback: true };
  assert.deepEqual((await server.call("GET", `/widget/${assistant.uuid}`)).body.away, away);
  const asked = await server.call("POST", `/conversations/${uuid}/request-human`);
  assert.deepEqual(asked.body, { status: true, desk: "waiting", away });
  assert.deepEqual((await newest(accountId, "desk_changed"))?.away, away);
  const other = await newConversation(server, assistant.uuid);
  let told = "";
  model.script((body) => {
    told = JSON.stringify(body.messages);
    const args = JSON.stringify({ reason: "angry", summary: "late order" });
    return body.messages.at(-1)?.role === "user"
      ? {
          tokens: [], finishReason: "tool_calls",
          toolCalls: [{ id: "c1", name: "request_human", arguments: args }],
        }
      : { tokens: ["Somebody will call."] };
  });
  await server.call("POST", `/conversations/${other}/messages`, { body: { message: "A person!" } });
  model.script(null);
  assert.deepEqual((await newest(accountId, "desk_changed"))?.away, away);
  assert.match(told, /Nobody of the team is there now/);
  assert.match(told, /Back on Monday/);
  const open = await fresh({ hours: ALWAYS });
  assert.deepEqual((await server.call("POST", `/conversations/${open.uuid}/request-human`)).body,
    { status: true, desk: "waiting", away: null });
  for (const wrong of [
    { hours: { monday: [{ from: "9", to: "17:00" }] } }, { hours: {}, time_zone: "Nowhere" },
    { hours: {}, holidays: ["2026-13-01"] },
  ]) {
    const refused = await server.call("PUT", `/user/assistant/${assistant.id}`, {
      key: ana, body: { desk: { office_hours: wrong } },
    });
    assert.equal(refused.status, 422, JSON.stringify(wrong));
  }
});

test("[DK23] a callback: an inbox item and a webhook, hidden from the visitor's stream, open until done", async () => {
  const receiver = await startWebhookReceiver();
  const { uuid, key, ana, inbox, assistant } = await fresh(CLOSED);
  await server.call("POST", "/user/webhook-endpoints", {
    key, body: { url: receiver.url, events: ["callback_requested", "callback_done"] },
  });
  const ask = (body: object, to = uuid) =>
    server.call("POST", `/conversations/${to}/callback`, { body });
  for (const [body, field] of [
    [{ name: "Bo" }, "phone"], [{ name: " ", phone: "123456" }, "name"],
    [{ name: "Bo", phone: "call me" }, "phone"], [{ name: "Bo", email: "bo" }, "email"],
  ] as const) {
    const refused = await ask(body);
    assert.deepEqual([refused.status, Object.keys(refused.body.errors)], [422, [field]]);
  }
  const first = await ask({ name: "Bo", phone: "+49 30 1234" });
  assert.equal(first.status, 201);
  const again = await ask({ name: "Bo", email: "bo@example.com", wish: "My order", time: "after 5" });
  const { callback } = again.body;
  assert.deepEqual({ ...callback, created_at: "" }, {
    id: first.body.callback.id, name: "Bo", phone: null, email: "bo@example.com",
    wish: "My order", time: "after 5", created_at: "", done_at: null,
  });
  const [row] = (await inbox("queue=waiting&callback=true")).data;
  assert.deepEqual([row.id, row.callback, row.desk_reason], [uuid, callback, "callback"]);
  const stream = await stored.events.ofConversation(uuid, 0, 100);
  assert.ok(!JSON.stringify(stream).includes("1234"), "strangers do not read it");
  const done = await server.call("POST", `/user/conversations/${uuid}/callback/done`, { key: ana });
  assert.equal(done.status, 200);
  assert.notEqual(done.body.data.done_at, null);
  const twice = await server.call("POST", `/user/conversations/${uuid}/callback/done`, { key: ana });
  assert.equal(twice.status, 404);
  assert.deepEqual((await inbox("queue=waiting&callback=true")).data, []);
  const all = await server.call("GET", `/user/conversations/${uuid}/callbacks`, { key: ana });
  assert.deepEqual(all.body.data, [done.body.data]);
  const told = await receiver.until(3);
  assert.deepEqual(told.map(({ body }) => body.type).toSorted(),
    ["callback_done", "callback_requested", "callback_requested"]);
  await receiver.close();
  const stranger = await server.newAccount();
  for (const [method, path] of [["GET", "callbacks"], ["POST", "callback/done"]] as const) {
    const foreign = await server.call(
      method, `/user/conversations/${uuid}/${path}`, { key: stranger.key });
    assert.equal(foreign.status, 404);
  }
  await server.call("PUT", `/user/assistant/${assistant.id}`, {
    key, body: { desk: { office_hours: { hours: {} } } },
  });
  assert.equal((await ask({ name: "Bo", phone: "123456" })).status, 403);
});

test("[DK24] reading is one event in both streams per message; until then the conversation is unread", async () => {
  const { uuid, ana, accountId, inbox } = await fresh(null);
  const { token: ben } = await server.app.features.accounts.createKey(accountId, "Ben");
  const count = async (): Promise<number> =>
    (await stored.events.ofConversation(uuid, 0, 100))
      .filter(({ type }) => type === "conversation_read").length;
  const visitorReads = () => server.call("POST", `/conversations/${uuid}/read`);
  const reads = (key: string) => server.call("POST", `/user/conversations/${uuid}/read`, { key });
  assert.equal((await visitorReads()).status, 200);
  assert.equal(await count(), 0, "no person has written");
  assert.deepEqual((await inbox("queue=all&unread=true")).data.map(({ id }: { id: string }) => id), [uuid]);
  await reads(ana);
  await reads(ana);
  assert.equal(await count(), 1);
  assert.deepEqual((await inbox("queue=all&unread=true")).data, []);
  await server.call("POST", `/user/conversations/${uuid}/messages`, {
    key: ben, body: { message: "Ben is here" },
  });
  const [row] = (await inbox("queue=all")).data;
  assert.deepEqual([row.unread, row.visitor_read_at], [true, null]);
  await visitorReads();
  await visitorReads();
  assert.equal(await count(), 2);
  const [, last] = (await stored.events.ofConversation(uuid, 0, 100))
    .filter(({ type }) => type === "conversation_read");
  const event = JSON.parse(last?.json ?? "{}") as { by: unknown; read_at: string };
  assert.deepEqual(event.by, { role: "visitor" });
  assert.equal((await inbox("queue=all")).data[0].visitor_read_at, event.read_at);
  const stranger = await server.newAccount();
  assert.equal((await reads(stranger.key)).status, 404);
});

test("[DK25] conversations have account labels, by which the inbox is filtered", async () => {
  const { uuid, ana, key, inbox, assistant } = await fresh(null);
  const other = await newConversation(server, assistant.uuid);
  const label = async (name: string, owner = key): Promise<number> =>
    (await server.call("POST", "/user/label", { key: owner, body: { name, color: "teal" } })).body.data.id;
  const [refunds, urgent] = [await label("Refunds"), await label("Urgent")];
  const set = (ids: number[], to = uuid) =>
    server.call("PUT", `/user/conversations/${to}/labels`, { key: ana, body: { label_ids: ids } });
  assert.equal((await set([urgent, refunds, urgent])).status, 200);
  await set([urgent], other);
  const ids = async (id: number): Promise<string[]> =>
    (await inbox(`queue=all&label_id=${id}`)).data.map((row: { id: string }) => row.id);
  assert.deepEqual(await ids(refunds), [uuid]);
  assert.deepEqual((await ids(urgent)).toSorted(), [uuid, other].toSorted());
  const [row] = (await inbox(`queue=all&label_id=${refunds}`)).data;
  assert.deepEqual(row.labels, [
    { id: refunds, name: "Refunds", color: "teal" }, { id: urgent, name: "Urgent", color: "teal" },
  ]);
  const read = await server.call("GET", `/user/conversations/${uuid}/labels`, { key: ana });
  assert.deepEqual(read.body.data, row.labels);
  const stranger = await server.newAccount();
  const foreign = await label("Theirs", stranger.key);
  assert.equal((await set([foreign])).status, 422);
  assert.equal((await server.call("DELETE", `/user/label/${refunds}`, { key })).status, 200);
  assert.deepEqual((await inbox(`queue=all&assistant_id=${assistant.id}`)).data
    .map(({ labels }: { labels: unknown[] }) => labels.length), [1, 1]);
  await set([]);
  assert.deepEqual(await ids(urgent), [other]);
});

test("[DK27] a waiting visitor and a callback each send mail to the notified, up to a limit", async (context) => {
  const mails = await startMailServer();
  const posting = await startTestServer({
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_PUBLIC_URL: "https://talk.example.com",
      PARLEY_SMTP_URL: mails.url, PARLEY_SMTP_FROM: "Parley <parley@example.com>",
    },
  });
  context.after(async () => {
    await posting.close();
    await mails.close();
  });
  const assistant = await newAssistant(posting, {
    name: "Front desk",
    desk: { visitor_may_ask: true, notify_emails: ["ana@example.com"], office_hours: CLOSED },
  }, posting.key);
  const uuid = await newConversation(posting, assistant.uuid, {
    variables: { customer_name: "Zoë\r\nBcc: eve@example.com" },
  });
  await posting.call("POST", `/conversations/${uuid}/request-human`);
  await mails.until(1);
  await posting.call("POST", `/conversations/${uuid}/callback`, {
    body: { name: "Zoë", email: "zoe@example.com", wish: "My order" },
  });
  const [waits, callback] = await mails.until(2);
  assert.deepEqual(waits?.to, ["ana@example.com"]);
  assert.doesNotMatch(waits?.raw ?? "", /^Bcc:/m);
  assert.ok(waits?.text.includes(`https://talk.example.com/#/inbox/${uuid}`));
  assert.equal((await fetch(`${posting.url}/`)).status, 200, "where the link leads");
  assert.match(callback?.text ?? "", /^Name: Zoë\r?\nE-mail: zoe@example\.com\r?\nWish: My order/);
  assert.match(callback?.raw ?? "", /^Reply-To: zoe@example\.com/m);
  for (let number = 0; number < 40; number += 1) {
    await posting.call("POST", `/user/conversations/${uuid}/hand-back`);
    await posting.call("POST", `/conversations/${uuid}/request-human`);
  }
  await mails.until(30);
  await posting.close();
  assert.equal(mails.taken.length, 30);
});

test("[DK28] a visitor reads their place in line and who answers with which picture, in their own chat", async () => {
  const { uuid, ana, assistant } = await fresh(null);
  const view = async (of: string) => (await server.call("GET", `/conversations/${of}/desk`)).body;
  assert.deepEqual(await view(uuid), { status: true, desk: "assistant", place: null, holder: null });
  const second = await newConversation(server, assistant.uuid);
  const ask = (one: string) => server.call("POST", `/conversations/${one}/request-human`);
  for (const one of [uuid, second]) await ask(one);
  const stranger = await fresh(null);
  await server.call("POST", `/conversations/${stranger.uuid}/request-human`);
  assert.deepEqual(
    (await Promise.all([uuid, second, stranger.uuid].map(view))).map(({ place }) => place),
    [1, 2, 1]);
  const avatar = "data:image/png;base64,iVBORw0KGgo=";
  const set = (value: unknown) =>
    server.call("PUT", "/user/avatar", { key: ana, body: { avatar: value } });
  for (const wrong of ["https://x.example/a.png", "data:image/svg+xml;base64,AAAA", `${avatar}"`]) {
    assert.equal((await set(wrong)).status, 422, wrong);
  }
  assert.equal((await set(avatar)).status, 200);
  await server.call("POST", `/user/conversations/${uuid}/take-over`, { key: ana });
  const { desk, place, holder } = await view(uuid);
  assert.deepEqual([desk, place, holder.name, holder.avatar], ["person", null, "Ana", avatar]);
  assert.equal((await view(second)).place, 1);
  await set(null);
  assert.equal((await view(uuid)).holder.avatar, null);
  assert.deepEqual((await server.call("GET", "/user/avatar", { key: ana })).body, { avatar: null });
});

test("[DK29] a visitor can have the chat e-mailed where allowed, a few times an hour", async (context) => {
  const mails = await startMailServer();
  const posting = await startTestServer({
    env: {
      PARLEY_MODEL_URL: model.url,
      PARLEY_SMTP_URL: mails.url, PARLEY_SMTP_FROM: "Parley <parley@example.com>",
    },
  });
  context.after(async () => {
    await posting.close();
    await mails.close();
  });
  model.script(() => ({ tokens: ["At nine."] }));
  const begin = async (transcripts: boolean) => {
    const { uuid } = await newAssistant(posting, {
      name: "Front\r\ndesk", widget_settings: { transcripts },
    }, posting.key);
    const { body } = await posting.call("GET", `/widget/${uuid}`);
    assert.equal(body.transcripts, transcripts);
    return newConversation(posting, uuid);
  };
  const send = (uuid: string, email: string) =>
    posting.call("POST", `/conversations/${uuid}/transcript`, { body: { email } });
  assert.equal((await send(await begin(false), "zoe@example.com")).status, 403);
  const uuid = await begin(true);
  assert.equal((await send(uuid, "zoe@example.com")).status, 422, "nothing was said");
  await posting.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  for (const wrong of ["zoe", "zoe@example.com\r\nBcc: eve@example.com", "a@b.c, d@e.f"]) {
    assert.equal((await send(uuid, wrong)).status, 422, wrong);
  }
  assert.equal((await send(uuid, "zoe@example.com")).status, 202);
  const [mail] = await mails.until(1);
  assert.deepEqual(mail?.to, ["zoe@example.com"]);
  assert.match(mail?.raw ?? "", /^Subject: Your chat with Front desk/m);
  assert.match(mail?.text ?? "", /You \(.*\):\s+When\?\s+Front\s+desk \(.*\):\s+At nine\./);
  assert.deepEqual(
    [(await send(uuid, "a@example.com")).status, (await send(uuid, "b@example.com")).status], [202, 202]);
  const refused = await send(uuid, "c@example.com");
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  await posting.close();
  assert.equal(mails.taken.length, 3);
});

test("[DK30] ratings of a reply and of the chat reach webhooks, once per change", async (context) => {
  const receiver = await startWebhookReceiver();
  context.after(() => receiver.close());
  const { uuid, key } = await fresh(null);
  await server.call("POST", "/user/webhook-endpoints", {
    key, body: { url: receiver.url, events: ["reply_rated", "conversation_rated"] },
  });
  model.script(() => ({ tokens: ["At nine."] }));
  await server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  const { data } = (await server.call("GET", "/user/events?per_page=100", { key })).body;
  const turn = (data as { type: string; turn_id?: number }[])
    .find(({ type, turn_id: id }) => type === "message_added" && id)?.turn_id;
  const rate = (rating: unknown) =>
    server.call("POST", `/conversations/${uuid}/ratings`, { body: { turn_id: turn, rating } });
  await rate("up");
  await rate("up");
  await rate(null);
  await server.call("POST", `/conversations/${uuid}/satisfaction`, { body: { score: 4, comment: "Quick." } });
  const bodies = (await receiver.until(3))
    .map(({ body }) => body as { type: string; data: object });
  const of = (name: string) => bodies.filter(({ type }) => type === name).map((body) => body.data);
  // Deliveries of one endpoint may overtake each other.
  const thumbs = of("reply_rated") as { rating: unknown; turn_id: number; conversation_id: string }[];
  assert.deepEqual(thumbs.map(({ rating }) => rating).sort(), ["up", null].sort());
  assert.ok(thumbs.every((one) => one.turn_id === turn && one.conversation_id === uuid));
  const [rated] = of("conversation_rated") as { score: number; comment: string }[];
  assert.deepEqual([rated?.score, rated?.comment], [4, "Quick."]);
});

test("[CV500] a conversation is deleted with its messages and events, not mid-reply; ledger and audit stay", async () => {
  const { key, ana, accountId, uuid } = await fresh(null);
  const say = (message: string) =>
    server.call("POST", `/conversations/${uuid}/messages`, { body: { message } });
  assert.equal((await say("My secret is plum")).status, 200);
  await server.call("POST", `/user/conversations/${uuid}/notes`, { key: ana, body: { text: "plum" } });
  await server.call("POST", `/user/conversations/${uuid}/read`, { key: ana, body: {} });
  const gate = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["one ", "two"], hold: gate.promise, holdAfter: 1 }));
  const pending = say("And more");
  // Once the message is stored, the reply to it is being written.
  let last = await newest(accountId, "message_added");
  while (!JSON.stringify(last).includes("And more")) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    last = await newest(accountId, "message_added");
  }
  const remove = () => server.call("DELETE", `/user/conversations/${uuid}`, { key: ana });
  assert.equal((await remove()).status, 409);
  gate.resolve();
  assert.equal((await pending).status, 200);
  model.script(null);
  const before = (await server.call("GET", "/user/me", { key })).body.total_balance;
  const gone = await remove();
  assert.deepEqual([gone.status, gone.body], [200, { message: "Conversation deleted successfully" }]);
  assert.equal((await remove()).status, 404);
  for (const path of [`/user/conversations/${uuid}`, `/user/conversations/${uuid}/messages`]) {
    assert.equal((await server.call("GET", path, { key })).status, 404, path);
  }
  assert.equal((await say("Are you there?")).status, 404);
  assert.deepEqual((await server.call("GET", "/user/conversations", { key })).body.data, []);
  const events = await stored.events.ofAccount(accountId, 0, 1000);
  assert.ok(events.every(({ json }) => !json.includes("plum")), "no event says it");
  assert.deepEqual(events.map(({ accountSequence }) => accountSequence),
    events.map((_, index) => index + 1), "the account's numbering has no holes");
  assert.deepEqual(await newest(accountId, "conversation_deleted"),
    { type: "conversation_deleted", conversation_id: uuid });
  assert.equal((await server.call("GET", "/user/me", { key })).body.total_balance, before);
  assert.equal((await server.call("GET", "/user/ledger/verification", { key })).body.ok, true);
  // A conversation that comes after it is none of its ids again: its reply has its own charge.
  const { uuid: next } = await fresh(null);
  assert.equal((await server.call("POST", `/conversations/${next}/messages`, {
    body: { message: "Hello" },
  })).status, 200);
  assert.deepEqual((await auditBeside(server.dataDir)).problems, []);
  const noted = await server.call("GET", "/user/audit?action=conversation.delete", { key });
  assert.deepEqual(noted.body.data.map((entry: { actor: { name: string }; object: object }) =>
    [entry.actor.name, entry.object]), [["Ana", { type: "conversation", id: uuid }]]);
});

test("[CV501] conversations are deleted or labelled in bulk, each audited; no others are touched", async () => {
  const { key, assistant, uuid: kept } = await fresh(null);
  const other = await fresh(null);
  const uuids = [kept];
  while (uuids.length < 4) uuids.push(await newConversation(server, assistant.uuid));
  const [, ...some] = uuids;
  const ids = [...some, other.uuid];
  const label = await server.call("POST", "/user/label", { key, body: { name: "Refund" } });
  const labelId = label.body.data.id as number;
  const labels = async (uuid: string): Promise<unknown[]> =>
    (await server.call("GET", `/user/conversations/${uuid}/labels`, { key })).body.data;
  const many = (action: string, body: object) =>
    server.call("POST", `/user/conversations/bulk-${action}`, { key, body });
  const given = await many("label", { conversation_ids: ids, label_id: labelId });
  assert.deepEqual([given.status, given.body.changed], [200, some]);
  assert.equal((await labels(some[0] ?? "")).length, 1);
  assert.deepEqual(await labels(kept), []);
  const taken = await many("label", { conversation_ids: some.slice(0, 1), label_id: labelId, remove: true });
  assert.deepEqual(taken.body.changed, some.slice(0, 1));
  assert.equal((await many("label", { conversation_ids: ids, label_id: 999_999 })).status, 422);
  assert.equal((await many("delete", { conversation_ids: [] })).status, 422);
  assert.equal((await many("delete", { conversation_ids: Array(101).fill(kept) })).status, 422);
  assert.equal((await many("delete", { conversation_ids: ["x"] })).status, 422);
  const gone = await many("delete", { conversation_ids: ids });
  assert.deepEqual(gone.body, { deleted: some, busy: [] });
  const left = (await server.call("GET", "/user/conversations", { key })).body.data;
  assert.deepEqual(left.map(({ id }: { id: string }) => id), [kept]);
  const others = await server.call("GET", `/user/conversations/${other.uuid}`, { key: other.key });
  assert.equal(others.status, 200);
  const noted = await server.call("GET", "/user/audit?action=conversation.", { key });
  const actions = noted.body.data.map(({ action }: { action: string }) => action);
  assert.deepEqual(actions.toSorted(), [
    ...Array<string>(3).fill("conversation.delete"), ...Array<string>(4).fill("conversation.set_labels"),
  ]);
});
