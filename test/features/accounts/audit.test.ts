// The log of who did what: complete, without secrets, readable, exportable, a stream of its own.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { createParser } from "eventsource-parser";
import { LIMITS } from "#core/limits.ts";
import { nextTurn } from "#core/system.ts";
import { auditRoutes } from "#features/accounts/audit-routes.ts";
import type { ByteStream } from "#http/exchange.ts";
import { callApi } from "#support/api.ts";
import { memberOf } from "#support/members.ts";
import { startProcess, type Running } from "#support/process.ts";
import { newAssistant, startTestServer, testDataDir } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

interface Entry {
  number: number;
  action: string;
  actor: { kind: string; id: string };
  object: { type: string; id: string | null } | null;
  details: Record<string, unknown>;
  ip: string | null;
}

const entriesOf = async (key: string, query = ""): Promise<Entry[]> =>
  (await server.call("GET", `/user/audit?per_page=100${query}`, { key })).body.data as Entry[];

test("[AU320] the audit log has what members and keys change, by whom and from where; not refusals and reads", async () => {
  const { key } = await server.newAccount();
  const ben = await memberOf(server, "builder", key);
  const before = (await entriesOf(key)).length;
  const made = await ben.call("POST", "/user/tools", {
    name: "orders", description: "d", endpoint: "https://example.org/a", method: "GET", timeout: 10,
    headers: [{ name: "Authorization", value: "Bearer very-secret" }], parameters: [],
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { id } = await newAssistant(server, { name: "Ada" }, key);
  await server.call("PATCH", `/user/assistant/${id}`, { key, body: { name: "Other" } });
  assert.equal((await ben.call("POST", "/user/tools", { name: "" })).status, 422);
  assert.equal((await ben.call("POST", "/user/api-keys", { name: "x" })).status, 403);
  await ben.call("GET", "/user/tools");
  const entries = await entriesOf(key);
  const fresh = entries.slice(0, -before);
  assert.deepEqual(fresh.map(({ action, actor, object }) => [action, actor.id, object?.type]), [
    ["assistant.update", entries[0]?.actor.id, "assistant"],
    ["assistant.create", entries[0]?.actor.id, "assistant"],
    ["tool.create", `user:${ben.id}`, "tool"],
  ]);
  assert.equal(entries[0]?.actor.kind, "key");
  assert.equal(entries[0]?.object?.id, String(id));
  assert.equal(entries[1]?.object?.id, String(id));
  assert.deepEqual(entries[0]?.details, {
    fields: ["name"], before: { name: "Ada" }, after: { name: "Other" },
  });
  assert.deepEqual(entries[2]?.details.after, { name: "orders", method: "GET", timeout_s: 10 });
  assert.equal(entries[0]?.ip, "127.0.0.1");
  const text = JSON.stringify(entries);
  for (const secret of ["very-secret", "a quite long password", key.split("|")[1] ?? "?", "scrypt"]) {
    assert.ok(!text.includes(secret), secret);
  }
  assert.deepEqual(
    entries.map(({ number }) => number), entries.map((_, index) => entries.length - index));
});

test("[DB748] the audit log names the object of every change; a webhook appears as its host only", async () => {
  const { key } = await server.newAccount();
  const send = async (method: string, path: string, body?: object) => {
    const answer = await server.call(method, path, { key, ...body && { body } });
    assert.ok(answer.status < 300, `${method} ${path} ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const { id } = await newAssistant(server, { name: "Ada" }, key);
  await send("PATCH", `/user/assistant/${id}`, { system_prompt: "Be kind." });
  await send("POST", `/user/assistants/${id}/identity-secret`);
  const url = "https://hooks.example.org/services/T0/very-secret?token=other-secret";
  const { data: hook } = await send("POST", "/user/webhook-endpoints", { url, events: ["call_ended"] });
  await send("POST", `/user/webhook-endpoints/${hook.id}/rotate-secret`);
  await send("DELETE", `/user/webhook-endpoints/${hook.id}`);
  const { api_key: made } = await send("POST", "/user/api-keys", { name: "shop" });
  await send("DELETE", `/user/api-keys/${made.id}`);
  const { data: reply } = await send("POST", "/user/canned-replies", { shortcut: "bye", text: "Bye" });
  await send("PUT", `/user/canned-replies/${reply.id}`, { shortcut: "bye", text: "Good bye" });
  const entries = (await entriesOf(key)).toReversed();
  const named = entries.slice(-10).map(({ action, details }) => {
    const values = { ...details, ...details.before ?? {}, ...details.after ?? {} };
    return [action, (values as { name?: unknown }).name];
  });
  assert.deepEqual(named, [
    ["assistant.create", "Ada"], ["assistant.update", "Ada"],
    ["assistant.new_identity_secret", "Ada"],
    ["webhook.create", "hooks.example.org"], ["webhook.rotate_secret", "hooks.example.org"],
    ["webhook.delete", "hooks.example.org"],
    ["api_key.create", "shop"], ["api_key.revoke", "shop"],
    ["canned_reply.create", "bye"], ["canned_reply.update", "bye"],
  ]);
  assert.doesNotMatch(JSON.stringify(entries), /very-secret|other-secret/);
});

test("[AU321] changes of members, keys and sessions are audited in their own transaction, before and after", async () => {
  const { key, accountId } = await server.newAccount();
  await memberOf(server, "owner", key);
  const ana = await memberOf(server, "operator", key);
  await server.call("PATCH", `/user/members/${ana.id}`, { key, body: { role: "builder" } });
  const made = await server.call("POST", "/user/api-keys", { key, body: { name: "shop" } });
  await server.call("DELETE", `/user/api-keys/${made.body.api_key.id}`, { key });
  await server.call("DELETE", `/user/members/${ana.id}`, { key });
  const actions = (await entriesOf(key)).map(({ action }) => action);
  assert.deepEqual(actions.toReversed(), [
    "api_key.create", "invitation.create", "member.join", "session.open", "invitation.create",
    "member.join", "session.open", "member.update", "api_key.create", "api_key.revoke",
    "member.remove",
  ]);
  const [changed] = await entriesOf(key, "&action=member.update");
  assert.deepEqual(changed?.details, {
    before: { role: "operator", name: ana.name }, after: { role: "builder", name: ana.name },
  });
  const [first] = (await entriesOf(key)).toReversed();
  assert.deepEqual([first?.actor.kind, first?.ip], ["system", null], "made at the command line");
  assert.ok(accountId > 0);
});

test("[AU322] it is paged, filtered and exported whole, without formulas", async () => {
  const { key } = await server.newAccount();
  for (let count = 0; count < 120; count += 1) {
    const name = count === 0 ? '=HYPERLINK("x"),"y"' : `key ${count}`;
    await server.call("POST", "/user/api-keys", { key, body: { name } });
  }
  const first = await server.call("GET", "/user/audit?per_page=50", { key });
  const second = await server.call(
    "GET", `/user/audit?per_page=50&before=${first.body.next_before}`, { key });
  const third = await server.call(
    "GET", `/user/audit?per_page=50&before=${second.body.next_before}`, { key });
  const numbers = [first, second, third].flatMap(({ body }) =>
    body.data.map(({ number }: Entry) => number));
  assert.deepEqual(numbers, Array.from({ length: 121 }, (_, index) => 121 - index));
  assert.equal(third.body.next_before, null);
  assert.equal((await entriesOf(key, "&action=api_key.")).length, 100);
  assert.equal((await entriesOf(key, "&action=api_key")).length, 0);
  assert.equal((await entriesOf(key, "&actor=system")).length, 1);
  assert.equal((await entriesOf(key, "&date_to=2001-01-01")).length, 0);
  const own = `key:${key.split("|")[0]}`;
  const csv = await server.call("GET", `/user/audit?format=csv&actor=${own}`, { key });
  const lines = String(csv.body).trimEnd().split("\n");
  assert.equal(lines.length, 121);
  assert.match(csv.headers.get("content-disposition") ?? "", /audit\.csv/);
  assert.ok(!lines.some((line) => /(^|,)"?[=+@-]/.test(line)), "no cell begins like a formula");
  const jsonl = await server.call("GET", "/user/audit?format=jsonl", { key });
  const parsed = String(jsonl.body).trimEnd().split("\n").map((line) => JSON.parse(line) as Entry);
  assert.deepEqual(parsed.map(({ number }) => number), numbers);
});

test("[AU335] exporting a long audit log yields to other work after each page", async () => {
  const rows = LIMITS.replayPageRows;
  const numbers = Array.from({ length: rows * 3 + 1 }, (_, index) => rows * 3 + 1 - index);
  let turn = 0;
  const read: number[] = [];
  const audit = {
    page: async (_: number, _filter: object, before: number | null) => {
      read.push(turn);
      return numbers.filter((number) => before === null || number < before).slice(0, rows)
        .map((number) => ({
          number, actor: { kind: "key", id: "key:1", name: "" }, action: "tool.create",
          object: null, details: {}, address: null, createdAt: 0,
        }));
    },
  };
  const [list] = auditRoutes({ audit } as unknown as Parameters<typeof auditRoutes>[0]);
  const reply = await list?.handle({
    caller: { accountId: 1 }, query: { format: "jsonl" },
  } as never) as { stream(stream: ByteStream): void };
  let written = "";
  let isOver = false;
  reply.stream({
    write: (text) => (written += String(text)) !== "",
    end: () => (isOver = true), abort: () => assert.fail("broken off"),
    onDrain: () => undefined, onClose: () => undefined,
  });
  for (; !isOver && turn < numbers.length; turn += 1) await nextTurn();
  assert.equal(written.trimEnd().split("\n").length, numbers.length);
  assert.deepEqual(read, [...new Set(read)], "two pages were read in one turn");
});

test("[AU323] it is a stream of numbered events, resumed without gap or repeat", async () => {
  const { key } = await server.newAccount();
  const follow = async (count: number, after?: string) => {
    const abort = new AbortController();
    const response = await fetch(`${server.url}/api/user/audit/stream`, {
      headers: { Authorization: `Bearer ${key}`, ...after === undefined ? {} : { "Last-Event-ID": after } },
      signal: abort.signal,
    });
    assert.equal(response.status, 200);
    const events: { id: string; action: string }[] = [];
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        if (event !== "audit_added") return;
        events.push({ id: id ?? "", action: (JSON.parse(data) as { entry: Entry }).entry.action });
      },
    });
    const read = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }));
        if (events.length >= count) break;
      }
      abort.abort();
      return events;
    })();
    return { read };
  };
  const live = await follow(2);
  for (const name of ["a", "b"]) await server.call("POST", "/user/api-keys", { key, body: { name } });
  assert.deepEqual(await live.read, [
    { id: "2", action: "api_key.create" }, { id: "3", action: "api_key.create" },
  ]);
  await newAssistant(server, {}, key);
  const resumed = await follow(2, "2");
  assert.deepEqual(await resumed.read, [
    { id: "3", action: "api_key.create" }, { id: "4", action: "assistant.create" },
  ]);
});

test("[AU326] killed at any moment, no change lacks its entry and no entry its change", async () => {
  const dataDir = testDataDir();
  const first = await startProcess(dataDir);
  const call = ({ url }: Running, method: string, path: string, body?: object) =>
    callApi(url, method, path, { key: first.key, body });
  const enough = Promise.withResolvers<void>();
  let answered = 0;
  const gone = once(first.process, "exit");
  const write = async (client: number): Promise<void> => {
    for (let count = 0; first.process.exitCode === null; count += 1) {
      const name = `${client}-${count}`;
      const what = client % 2 === 0 ? "folder" : "label";
      const made = await call(first, "POST", `/user/${what}`, { name, color: "red" });
      assert.equal(made.status, 201);
      if ((answered += 1) === 200) enough.resolve();
    }
  };
  const writing = Promise.allSettled(Array.from({ length: 8 }, (_, client) => write(client)));
  await enough.promise;
  first.process.kill("SIGKILL");
  await gone;
  for (const one of await writing) {
    if (one.status === "rejected") assert.ok(one.reason instanceof TypeError, String(one.reason));
  }
  const again = await startProcess(dataDir);
  const there: string[] = [];
  for (const what of ["folder", "label"]) {
    for (let page = 1, isLast = false; !isLast; page += 1) {
      const { body } = await call(again, "GET", `/user/${what}s?per_page=100&page=${page}`);
      const { data } = body as { data: { id: number; name: string }[] };
      there.push(...data.map(({ id, name }) => `${what} ${id} ${name}`));
      isLast = data.length < 100;
    }
  }
  const log = await call(again, "GET", "/user/audit?format=jsonl");
  const noted = (log.body as string).trimEnd().split("\n").map((line) => JSON.parse(line) as Entry)
    .filter(({ action }) => /^(folder|label)\.create$/.test(action))
    .map(({ object, details }) =>
      `${object?.type} ${object?.id} ${(details.after as { name: string }).name}`);
  assert.ok(there.length >= 200, String(there.length));
  assert.deepEqual(noted.toSorted(), there.toSorted());
  const ended = once(again.process, "exit");
  again.process.kill("SIGTERM");
  await ended;
  rmSync(dataDir, { recursive: true, force: true });
});
