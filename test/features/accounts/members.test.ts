// Members of an account: how they come, sign in, what they may and how they go.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { createSystem } from "#core/system.ts";
import { RIGHTS, ROLE_RIGHTS, ROLES } from "#features/accounts/people/roles.ts";
import { actionOf, assertRightsComplete, ROUTE_RIGHTS } from "#app/rights.ts";
import { keyRoute } from "#http/route.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { join, memberOf, signIn } from "#support/members.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

test("[AU301] one table gives each role its rights, and every account route needs one of them", () => {
  const keys = Object.entries((server.app.openApi() as {
    paths: Record<string, Record<string, { security?: unknown[] }>>;
  }).paths).flatMap(([path, methods]) => Object.entries(methods)
    .filter(([, { security }]) => (security ?? []).length > 0)
    .map(([method]) => `${method.toUpperCase()} ${path}`));
  const known = keys.filter((key) => Object.hasOwn(ROUTE_RIGHTS, key));
  // What other protocols would send messages by is there, but not offered.
  const stale = Object.keys(ROUTE_RIGHTS).filter((key) => !known.includes(key));
  assert.deepEqual(stale.filter((key) => !/\/user\/(?:sms|whatsapp)/.test(key)), []);
  for (const [right] of Object.values(ROUTE_RIGHTS)) assert.ok(RIGHTS.includes(right));
  // Whatever a role may do, those above it may do too.
  for (const [index, role] of ROLES.entries()) {
    const above = ROLES[index - 1];
    if (above) for (const right of ROLE_RIGHTS[role]) assert.ok(ROLE_RIGHTS[above].includes(right));
  }
  for (const key of Object.keys(ROUTE_RIGHTS).filter((one) => !one.startsWith("GET "))) {
    const [method, path] = key.split(" ") as ["POST", string];
    // Deleting is noted one by one, in its own transaction (CV500, CR440, CR441); a preview changes
    // nothing.
    if (/\/(?:conversations\/\{uuid\}|bulk-delete|people\/delete|import\/preview)$/.test(key)) continue;
    if (["build", "buy"].includes(ROUTE_RIGHTS[key]?.[0] ?? "")) {
      assert.ok(actionOf({ method, path } as never), `${key} is noted`);
    }
  }
});

test("[AU301] a route without a right stops the start", () => {
  const route = keyRoute({
    method: "POST", path: "/user/new-thing", tag: "Account", summary: "", errorShape: "message",
    responses: {}, handle: () => ({ status: 200, json: {} }),
  });
  assert.throws(() => assertRightsComplete([route]), /POST \/user\/new-thing/);
});

test("[AU302] each route answers each role by its right; a 403 names the missing right", async () => {
  const { newAccount } = server;
  const { key } = await newAccount();
  for (const role of ROLES) {
    const member = await memberOf(server, role, key);
    for (const [route, [right]] of Object.entries(ROUTE_RIGHTS)) {
      const [method = "", path = ""] = route.split(" ");
      // Streams stay open, and these two would end the session that asks.
      if (path.endsWith("/stream") || /password|sessions|sms|whatsapp/.test(path)) continue;
      const place = path.replace(/\{(\w+)\}/g, (_, name) =>
        name === "uuid" ? "00000000-0000-4000-8000-000000000000" : "999999");
      const { status, body } = await member.call(method, place);
      const isRefused = status === 403 && body.right === right;
      assert.equal(isRefused, !ROLE_RIGHTS[role].includes(right), `${role} ${route} ${status}`);
      if (!isRefused) continue;
      assert.equal(body.message, `This takes the right "${right}", which the role ${role} does not have.`);
    }
  }
});

test("[AU303] an invitation works once, for its address and role, and not if withdrawn, replaced or invented", async () => {
  const { key } = await server.newAccount();
  const invite = (email: string, role = "operator") =>
    server.call("POST", "/user/invitations", { key, body: { email, role } });
  const { status, body } = await invite("Ana@Example.org ".trim());
  assert.equal(status, 201);
  const token = String(body.link).split("/#/join/")[1] ?? "";
  assert.ok(token.length >= 40 && body.link.startsWith(`${server.url}/#/join/`));
  const listed = await server.call("GET", "/user/invitations", { key });
  assert.equal(listed.body.data.length, 1);
  assert.ok(!JSON.stringify(listed.body).includes(token), "the link is shown once");
  const looked = await server.call("POST", "/auth/invitation", { body: { token } });
  assert.deepEqual(
    [looked.body.email, looked.body.role, looked.body.is_reset], ["ana@example.org", "operator", false]);
  const tries = await Promise.all([1, 2, 3].map(() => join(server, token, "Ana")));
  assert.deepEqual(tries.map(({ status: one }) => one).toSorted(), [200, 404, 404]);
  assert.equal((await join(server, token, "Eve")).status, 404, "replayed");
  assert.equal((await invite("ana@example.org")).status, 422, "a member already");
  const first = String((await invite("ben@example.org")).body.link).split("/join/")[1] ?? "";
  const second = await invite("ben@example.org", "viewer");
  assert.equal((await join(server, first, "Ben")).status, 404, "replaced");
  const taken = await server.call("DELETE", `/user/invitations/${second.body.data.id}`, { key });
  assert.equal(taken.status, 200);
  const again = String(second.body.link).split("/join/")[1] ?? "";
  assert.equal((await join(server, again, "Ben")).status, 404, "taken back");
  for (const made of ["x", `${token}x`, "' OR 1=1 --"]) {
    assert.equal((await join(server, made, "Eve")).status, 404);
  }
});

test("[AU303] an address belongs to one member, and an invitation of another account tells that to nobody else", async () => {
  const first = await server.newAccount();
  const second = await server.newAccount();
  const ana = await memberOf(server, "operator", first.key);
  const invited = await server.call("POST", "/user/invitations", {
    key: second.key, body: { email: ana.email, role: "owner" },
  });
  assert.equal(invited.status, 201, "whoever invites learns nothing");
  const token = String(invited.body.link).split("/join/")[1] ?? "";
  const joined = await join(server, token, "Ana");
  assert.equal(joined.status, 409);
  assert.equal((await ana.call("GET", "/user/me")).body.role, "operator");
});

test("[MU31] an invitation works for a week, and a link to set a password for a day", async () => {
  const system = createManualSystem();
  const dated = await startTestServer({ system });
  const { id } = await memberOf(dated, "viewer", dated.key);
  const DAY_MS = 86_400_000;
  for (const [path, body, days] of [
    ["/user/invitations", { email: "late@example.org", role: "viewer" }, 7],
    [`/user/members/${id}/password-link`, undefined, 1],
  ] as const) {
    const tokenOf = async (): Promise<string> => {
      const made = await dated.call("POST", path, body ? { body } : {});
      return String(made.body.link).split("/join/")[1] ?? "";
    };
    const late = await tokenOf();
    system.leap(days * DAY_MS);
    assert.equal((await join(dated, late, "Late")).status, 404);
    const early = await tokenOf();
    system.leap(days * DAY_MS - 1000);
    assert.equal((await join(dated, early, "Early")).status, 200);
  }
  await dated.close();
});

test("[AU367] an address with invisible characters, which its owner could never type, is not invited", async () => {
  const { key } = await server.newAccount();
  const text = "The e-mail address contains an invisible character: type it by hand.";
  for (const unseen of ["\u00ad", "\u200b", "\u200e", "\u202a", "\u2060", "\u2066"]) {
    for (const email of [`${unseen}ana@example.org`, `ana@exa${unseen}mple.org`]) {
      const body = { email, role: "operator" };
      const refused = await server.call("POST", "/user/invitations", { key, body });
      assert.deepEqual([refused.status, refused.body.errors],
        [422, { email: [text] }], JSON.stringify(email));
    }
  }
  assert.deepEqual((await server.call("GET", "/user/invitations", { key })).body.data, []);
});

test("[AU304] another account's members, invitations and sessions are not found", async () => {
  const own = await server.newAccount();
  const other = await server.newAccount();
  const mine = await memberOf(server, "owner", own.key);
  const theirs = await memberOf(server, "operator", other.key);
  const invitation = await server.call("POST", "/user/invitations", {
    key: other.key, body: { email: "new@example.org", role: "viewer" },
  });
  const sessions = await theirs.call("GET", "/user/sessions");
  for (const [method, path, body] of [
    ["PATCH", `/user/members/${theirs.id}`, { role: "viewer" }],
    ["DELETE", `/user/members/${theirs.id}`],
    ["POST", `/user/members/${theirs.id}/password-link`],
    ["DELETE", `/user/invitations/${invitation.body.data.id}`],
    ["DELETE", `/user/sessions/${sessions.body.data[0].id}`],
  ] as const) {
    assert.equal((await mine.call(method, path, body)).status, 404, path);
  }
  const listed = await mine.call("GET", "/user/members");
  assert.deepEqual(listed.body.data.map(({ id }: { id: number }) => id), [mine.id]);
  const { uuid: assistant } = await newAssistant(server, {}, own.key);
  const uuid = await newConversation(server, assistant);
  const assigned = await mine.call(
    "POST", `/user/conversations/${uuid}/assign`, { to: `user:${theirs.id}` });
  assert.equal(assigned.status, 422);
});

test("[AU305] nobody promotes themselves: only owners make owners, and claimed roles are ignored", async () => {
  const { key } = await server.newAccount();
  const owner = await memberOf(server, "owner", key);
  const admin = await memberOf(server, "admin", key);
  const viewer = await memberOf(server, "viewer", key);
  assert.equal((await admin.call("PATCH", `/user/members/${admin.id}`, { role: "owner" })).status, 403);
  assert.equal((await admin.call("PATCH", `/user/members/${viewer.id}`, { role: "owner" })).status, 403);
  assert.equal((await admin.call("PATCH", `/user/members/${owner.id}`, { role: "viewer" })).status, 403);
  assert.equal((await admin.call("DELETE", `/user/members/${owner.id}`)).status, 403);
  assert.equal((await admin.call("POST", `/user/members/${owner.id}/password-link`)).status, 403);
  assert.equal((await admin.call("POST", "/user/invitations", { email: "eve@example.org", role: "owner" })).status, 403);
  assert.equal((await viewer.call("PATCH", `/user/members/${viewer.id}`, { role: "admin" })).status, 403);
  assert.equal((await admin.call("PATCH", `/user/members/${viewer.id}`, { role: "root" })).status, 422);
  // A key does no more than whoever made it.
  const made = await admin.call("POST", "/user/api-keys", { name: "mine" });
  assert.equal(made.status, 201);
  const token = made.body.api_key.token as string;
  const byKey = await server.call("PATCH", `/user/members/${admin.id}`, { key: token, body: { role: "owner" } });
  assert.equal(byKey.status, 403);
  const keys = await owner.call("GET", "/user/api-keys");
  const listed = keys.body.api_keys.find(({ name }: { name: string }) => name === "mine");
  assert.deepEqual(listed.made_by, { id: `user:${admin.id}`, name: admin.name });
  // A link of an admin for a new password dies when its member becomes an owner.
  const link = await admin.call("POST", `/user/members/${viewer.id}/password-link`);
  assert.equal((await owner.call("PATCH", `/user/members/${viewer.id}`, { role: "owner" })).status, 200);
  const used = await join(server, String(link.body.link).split("/join/")[1] ?? "", "Eve");
  assert.equal(used.status, 404);
});

test("[AU306] an account keeps its last owner, whoever asks and however many at once", async () => {
  const { key } = await server.newAccount();
  const one = await memberOf(server, "owner", key);
  assert.equal((await one.call("DELETE", `/user/members/${one.id}`)).status, 409);
  assert.equal((await one.call("PATCH", `/user/members/${one.id}`, { role: "admin" })).status, 409);
  assert.equal((await server.call("DELETE", `/user/members/${one.id}`, { key })).status, 409);
  const two = await memberOf(server, "owner", key);
  const results = await Promise.all([
    one.call("DELETE", `/user/members/${two.id}`), two.call("DELETE", `/user/members/${one.id}`),
  ]);
  const isDone = results.map(({ status }) => status === 200);
  assert.equal(isDone.filter(Boolean).length, 1);
});

test("[AU307] a removed member is out at once, with sessions, streams and invitations", async () => {
  const { key } = await server.newAccount();
  await memberOf(server, "owner", key);
  const ana = await memberOf(server, "admin", key);
  const invited = await ana.call("POST", "/user/invitations", { email: "alt@example.org", role: "admin" });
  const ticket = (await ana.call("POST", "/user/stream-tickets")).body.ticket as string;
  const stream = await fetch(`${server.url}/api/user/stream`, { headers: { Cookie: ana.cookie } });
  const audit = await fetch(`${server.url}/api/user/audit/stream`, { headers: { Cookie: ana.cookie } });
  assert.deepEqual([stream.status, audit.status], [200, 200]);
  const removed = await server.call("DELETE", `/user/members/${ana.id}`, { key });
  assert.equal(removed.status, 200);
  // Both end by themselves: nothing else closes them.
  await Promise.all([stream.text(), audit.text()]);
  assert.equal((await ana.call("GET", "/user/me")).status, 401);
  assert.equal((await signIn(server, ana.email)).status, 401);
  assert.equal((await server.call("GET", `/user/stream?ticket=${ticket}`, { key: null })).status, 401);
  const used = await join(server, String(invited.body.link).split("/join/")[1] ?? "", "Alt");
  assert.equal(used.status, 404);
});

test("[AU308] a role change applies from the next request, and data a role may not see is masked", async () => {
  const { key } = await server.newAccount();
  await memberOf(server, "owner", key);
  const ben = await memberOf(server, "builder", key);
  const tool = await ben.call("POST", "/user/tools", {
    name: "orders", description: "d", endpoint: "https://example.org/a", method: "GET", timeout: 10,
    headers: [{ name: "Authorization", value: "Bearer very-secret" }], parameters: [],
  });
  assert.equal(tool.status, 201, JSON.stringify(tool.body));
  assert.ok(JSON.stringify((await ben.call("GET", "/user/tools")).body).includes("very-secret"));
  await server.call("PATCH", `/user/members/${ben.id}`, { key, body: { role: "operator" } });
  const masked = await ben.call("GET", "/user/tools");
  assert.equal(masked.status, 200);
  assert.ok(!JSON.stringify(masked.body).includes("very-secret"));
  assert.equal((await ben.call("POST", "/user/tools", {})).body.right, "build");
});

test("[AU309] a member's desk actions carry the member's name; conversations can be assigned to members", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  const { uuid: assistant } = await newAssistant(server, {}, key);
  const uuid = await newConversation(server, assistant);
  const said = await ana.call("POST", `/user/conversations/${uuid}/messages`, { message: "Hello" });
  assert.equal(said.status, 201);
  const self = { id: `user:${ana.id}`, name: ana.name };
  assert.deepEqual(said.body.message.author, self);
  const inbox = await ana.call("GET", "/user/inbox?queue=mine");
  assert.deepEqual([inbox.body.me, inbox.body.counts.mine], [self, 1]);
  const ben = await memberOf(server, "operator", key);
  const given = await ana.call("POST", `/user/conversations/${uuid}/assign`, { to: `user:${ben.id}` });
  assert.equal(given.status, 200);
  assert.equal((await ben.call("GET", "/user/inbox?queue=mine")).body.counts.mine, 1);
  const watcher = await memberOf(server, "viewer", key);
  const toViewer = await ana.call("POST", `/user/conversations/${uuid}/assign`, { to: `user:${watcher.id}` });
  assert.equal(toViewer.status, 422, "a viewer answers nobody");
});

test("[MU1] each member of an account has rate windows of their own: for reading, writing and replies", async () => {
  // Time stands still: however slow the machine, all that is asked falls into one window.
  const limited = await startTestServer({
    system: { ...createSystem(), monotonicMs: () => 0 }, env: { PARLEY_RATE_LIMITS: "on" },
  });
  const newMember = () => memberOf(limited, "builder", limited.key);
  const [one, other] = [await newMember(), await newMember()];
  const leftOf = async (member: typeof one, method: string, path: string, body?: object) => {
    const { headers } = await member.call(method, path, body);
    return Number(headers.get("x-ratelimit-remaining"));
  };
  const read = (member: typeof one) => leftOf(member, "GET", "/user/me");
  const write = (member: typeof one) => leftOf(member, "DELETE", "/user/labels/999999");
  const reads = LIMITS.dashboardBurstMax;
  assert.deepEqual(
    [await read(one), await read(one), await read(other)], [reads - 1, reads - 2, reads - 1]);
  assert.deepEqual([await write(one), await write(one), await write(other)], [19, 18, 19]);
  const ask = async (member: typeof one): Promise<number> =>
    (await member.call("POST", "/user/ai/generate-reply", {
      assistant_id: 999_999, customer_identifier: "c", message: "Hello",
    })).status;
  for (let count = 0; count < 5; count += 1) assert.equal(await ask(one), 404);
  assert.deepEqual([await ask(one), await ask(other)], [429, 404]);
  await limited.close();
});
