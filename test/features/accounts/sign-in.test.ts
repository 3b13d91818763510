// Signing in with a password: what a stranger, a foreign page and an old cookie get.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { after, test } from "node:test";
import { createPasswords, PASSWORD_CHARS_MAX } from "#features/accounts/people/passwords.ts";
import { LIMITS } from "#core/limits.ts";
import { createSystem } from "#core/system.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { cookieOf, join, memberOf, PASSWORD, signIn } from "#support/members.ts";
import { openBeside, startTestServer, testDataDir } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

test("[AU310] passwords are stored as scrypt with its parameters, and checked a few at a time", async () => {
  const passwords = createPasswords({ system: createSystem() });
  const stored = await passwords.hash("pass\u00e9word long");
  assert.match(stored, /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
  assert.equal(await passwords.verify("passe\u0301word long", stored), true, "composed or not");
  assert.equal(await passwords.verify("passeword long", stored), false);
  assert.equal(await passwords.verify("anything", null), false);
  assert.equal(await passwords.verify("anything", "scrypt$1$x"), false);
  const cheap = "scrypt$1024$8$1$AAAAAAAAAAAAAAAAAAAAAA$" + "A".repeat(43);
  assert.equal(await passwords.verify("anything", cheap), false, "parameters of before are read");
  const crowd = await Promise.allSettled(
    Array.from({ length: 60 }, () => passwords.verify("x", cheap)));
  assert.ok(crowd.some(({ status }) => status === "rejected"), "those beyond the queue are refused");
  assert.equal(await passwords.verify("pass\u00e9word long", stored), true, "and it goes on");
});

test("[AU311] an unknown address costs the same and answers the same as a wrong password", async (t) => {
  const shipped = await startTestServer({ hashesAsShipped: true });
  t.after(() => shipped.close());
  const { key } = shipped;
  const ana = await memberOf(shipped, "operator", key);
  const removed = await memberOf(shipped, "viewer", key);
  await shipped.call("DELETE", `/user/members/${removed.id}`, { key });
  const beside = await openBeside(shipped.dataDir);
  const stored = await beside.users.findByEmail(ana.email);
  assert.match(stored?.passwordHash ?? "", /^scrypt\$32768\$8\$3\$/);
  await beside.close();
  const asked = [
    () => signIn(shipped, ana.email, "a wrong password"),
    () => signIn(shipped, "nobody@example.org", "a wrong password"),
    () => signIn(shipped, removed.email, PASSWORD),
    () => signIn(shipped, "no address", "a wrong password"),
  ];
  const bodies = [];
  for (const ask of asked) {
    const { status, body, headers } = await ask();
    assert.deepEqual([status, headers.get("set-cookie")], [401, null]);
    bodies.push(body);
  }
  for (const body of bodies) assert.deepEqual(body, bodies[0]);
  // What hashes takes as long for both; the rest is far below it. The fastest of a few counts.
  const quickest = async (email: string): Promise<number> => {
    const times: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const startedMs = performance.now();
      await signIn(shipped, email, "a wrong password");
      times.push(performance.now() - startedMs);
    }
    return Math.min(...times);
  };
  const [known, unknown] = [await quickest(ana.email), await quickest("nobody@example.org")];
  assert.ok(unknown > known / 3 && known > unknown / 3, `${known} ms, ${unknown} ms`);
});

test("[AU312] passwords are bounded in length, and easy ones are refused", async () => {
  const { key } = await server.newAccount();
  const invited = await server.call(
    "POST", "/user/invitations", { key, body: { email: "bounds@example.org", role: "viewer" } });
  const token = String(invited.body.link).split("/join/")[1] ?? "";
  for (const password of [
    "short", "bounds@example.org", "aaaaaaaaaaaaaaaa", "x".repeat(PASSWORD_CHARS_MAX + 1),
    "x".repeat(200_000),
  ]) {
    const { status, body } = await join(server, token, "Bo", password);
    assert.equal(status, 422);
    assert.ok(body.errors.password, password.slice(0, 20));
  }
  assert.equal((await join(server, token, "Bo", "y1zA".repeat(PASSWORD_CHARS_MAX / 4))).status, 200);
  const long = await signIn(server, "bounds@example.org", "x".repeat(200_000));
  assert.equal(long.status, 422, "what no password can be is not hashed");
  const huge = await signIn(server, "bounds@example.org", "x".repeat(LIMITS.bodyBytesMax));
  assert.equal(huge.status, 413);
});

test("[AU313] a session is a cookie hidden from scripts and stored only as a hash; each sign-in gets a new one", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  // Whatever cookie a browser was given, it is signed in with one that the server made.
  const fixed = await signIn(server, ana.email, PASSWORD, { Cookie: "parley=chosen-by-somebody" });
  const set = fixed.headers.getSetCookie()[0] ?? "";
  assert.match(set, /^parley=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  assert.equal((await server.call("GET", "/user/me", {
    key: null, headers: { Cookie: "parley=chosen-by-somebody" },
  })).status, 401);
  const cookie = cookieOf(fixed);
  const again = await signIn(server, ana.email, PASSWORD, { Cookie: cookie });
  assert.notEqual(cookieOf(again), cookie);
  const me = (value: string) => server.call("GET", "/user/me", { key: null, headers: { Cookie: value } });
  assert.equal((await me(cookie)).status, 401, "the one before has ended");
  assert.equal((await me(cookieOf(again))).status, 200);
  // Somebody put a second one beside it: neither counts.
  assert.equal((await me(`${cookieOf(again)}; ${ana.cookie}`)).status, 401);
  const kept = await server.call("POST", "/auth/login", {
    body: { email: ana.email, password: PASSWORD, remember: true },
  });
  assert.match(kept.headers.getSetCookie()[0] ?? "", /; Max-Age=25920\d\d$/);
  const beside = await openBeside(server.dataDir);
  const token = cookieOf(again).split("=")[1] ?? "";
  const now = createSystem().now();
  assert.equal(await beside.users.findSession(token, now), null);
  const found = await beside.users.findSession(hash("sha256", token, "hex"), now);
  assert.equal(found?.user.id, ana.id);
  const later = now + 13 * 3600 * 1e6;
  assert.equal(await beside.users.findSession(hash("sha256", token, "hex"), later), null, "it ends");
  await beside.close();
});

test("[AU313] signing out ends the session at once, and over https the cookie is bound to the host", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  assert.equal((await ana.call("POST", "/auth/logout")).status, 200);
  assert.equal((await ana.call("GET", "/user/me")).status, 401);
  const behind = await startTestServer({ env: { PARLEY_PUBLIC_URL: "https://talk.example.org" } });
  try {
    const ben = await memberOf(behind, "viewer", behind.key);
    assert.match(ben.cookie, /^__Host-parley=/);
    const plain = ben.cookie.replace("__Host-", "");
    const me = (cookie: string) => behind.call("GET", "/user/me", { key: null, headers: { Cookie: cookie } });
    assert.equal((await me(plain)).status, 401, "what a plain connection could have set");
    assert.equal((await me(ben.cookie)).status, 200);
    const signed = await signIn(behind, ben.email);
    assert.match(signed.headers.getSetCookie()[0] ?? "", /; HttpOnly; SameSite=Strict; Secure$/);
    const origin = await signIn(behind, ben.email, PASSWORD, { Origin: "https://talk.example.org" });
    assert.equal(origin.status, 200);
    const downgraded = await signIn(behind, ben.email, PASSWORD, { Origin: "http://talk.example.org" });
    assert.equal(downgraded.status, 403);
  } finally {
    await behind.close();
  }
});

test("[AU608] a change of password without the current one says that it is missing, not wrong", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  const { status, body } = await ana.call("PUT", "/user/password", { password: "another long one" });
  const missing = "The current password field is required.";
  assert.deepEqual(
    [status, body], [422, { message: missing, errors: { current_password: [missing] } }]);
});

test("[AU314] a new password ends every other session; the one it was changed in gets a new cookie", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  const other = cookieOf(await signIn(server, ana.email));
  const wrong = await ana.call(
    "PUT", "/user/password", { current_password: "wrong password", password: "another long one" });
  assert.equal(wrong.status, 422);
  assert.ok(wrong.body.errors.current_password);
  const stream = await fetch(`${server.url}/api/user/stream`, { headers: { Cookie: other } });
  assert.equal(stream.status, 200);
  const changed = await ana.call(
    "PUT", "/user/password", { current_password: PASSWORD, password: "another long one" });
  assert.equal(changed.status, 200);
  await stream.text();
  const me = (cookie: string) => server.call("GET", "/user/me", { key: null, headers: { Cookie: cookie } });
  assert.deepEqual(
    [(await me(other)).status, (await me(ana.cookie)).status, (await me(cookieOf(changed))).status],
    [401, 401, 200]);
  assert.equal((await signIn(server, ana.email)).status, 401);
  assert.equal((await signIn(server, ana.email, "another long one")).status, 200);
  const asKey = await server.call(
    "PUT", "/user/password", { key, body: { password: "another long one" } });
  assert.equal(asKey.status, 403);
});

test("[NP5] who stays signed in does so after a change of their password; others do not", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  for (const [remember, setCookie] of [[true, /; Max-Age=25920\d\d$/], [false, /Strict$/]] as const) {
    const signedIn = await server.call("POST", "/auth/login", {
      body: { email: ana.email, password: PASSWORD, remember },
    });
    const changed = await server.call("PUT", "/user/password", {
      key: null, headers: { Cookie: cookieOf(signedIn) },
      body: { current_password: PASSWORD, password: PASSWORD },
    });
    assert.match(changed.headers.getSetCookie()[0] ?? "", setCookie);
  }
});

test("[NP6] of changes of a password that meet one takes effect, and the others are refused", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  const wanted = ["a new long password", "another long one"];
  const answers = await Promise.all(wanted.map((password) =>
    ana.call("PUT", "/user/password", { current_password: PASSWORD, password })));
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 422]);
  const taken = wanted[answers.findIndex(({ status }) => status === 200)];
  assert.equal((await signIn(server, ana.email, taken)).status, 200);
});

test("[AU314] a new password invalidates older links for one", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  const link = await server.call("POST", `/user/members/${ana.id}/password-link`, { key });
  const token = String(link.body.link).split("/join/")[1] ?? "";
  const changed = await ana.call(
    "PUT", "/user/password", { current_password: PASSWORD, password: "another long one" });
  assert.equal(changed.status, 200);
  assert.equal((await server.call("POST", "/auth/invitation", { body: { token } })).status, 404);
  assert.equal((await join(server, token, "Eve", "a stolen password")).status, 404);
  assert.equal((await signIn(server, ana.email, "another long one")).status, 200);
});

test("[AU315] sessions are listed and ended one by one; a password reset by link ends them all", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  const other = cookieOf(await signIn(server, ana.email, PASSWORD, { "User-Agent": "Old phone" }));
  const { body } = await ana.call("GET", "/user/sessions");
  const listed = body.data as { agent: string; is_this: boolean }[];
  assert.deepEqual(listed.map(({ agent, is_this: isThis }) => [agent === "Old phone", isThis]),
    [[true, false], [false, true]]);
  assert.equal((await ana.call("DELETE", `/user/sessions/${body.data[0].id}`)).status, 200);
  const me = (cookie: string) => server.call("GET", "/user/me", { key: null, headers: { Cookie: cookie } });
  assert.deepEqual([(await me(other)).status, (await me(ana.cookie)).status], [401, 200]);
  const link = await server.call("POST", `/user/members/${ana.id}/password-link`, { key });
  assert.equal(link.status, 201);
  const token = String(link.body.link).split("/join/")[1] ?? "";
  const looked = await server.call("POST", "/auth/invitation", { body: { token } });
  assert.equal(looked.body.is_reset, true);
  const set = await join(server, token, "Somebody else", "brand new password");
  assert.deepEqual([set.status, set.body.user.id, set.body.user.name], [200, ana.id, ana.name]);
  assert.equal((await me(ana.cookie)).status, 401);
  assert.equal((await join(server, token, "x", "brand new password")).status, 404);
});

test("[AU316] another site's page changes nothing with a member's cookie, and reads nothing", async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "owner", key);
  const invite = (headers: Record<string, string>, path = "/user/invitations") =>
    ana.call("POST", path, { email: "eve@example.org", role: "owner" }, headers);
  for (const headers of [
    { Origin: "https://evil.example" }, { Origin: "null" },
    { Origin: `http://localhost:${server.port}` }, { Origin: `http://127.0.0.1:${server.port + 1}` },
    { Origin: `https://127.0.0.1:${server.port}` }, { Origin: `${server.url}.evil.example` },
    { "Sec-Fetch-Site": "cross-site" }, { "Sec-Fetch-Site": "same-site" },
    { Origin: server.url, "Sec-Fetch-Site": "cross-site" },
    // A proxy's word is believed from proxies alone.
    { Origin: "https://evil.example", "X-Forwarded-Host": "evil.example" },
    { Origin: "https://evil.example", "X-Forwarded-Proto": "https" },
  ]) {
    const { status } = await invite(headers as Record<string, string>);
    assert.ok(status === 403 || status === 401, `${status} ${JSON.stringify(headers)}`);
    const read = await ana.call("GET", "/user/me", undefined, headers as Record<string, string>);
    assert.equal(read.status, 401, JSON.stringify(headers));
    const login = await signIn(server, ana.email, PASSWORD, headers as Record<string, string>);
    assert.deepEqual([login.status, login.headers.get("set-cookie")], [403, null]);
    const out = await ana.call("POST", "/auth/logout", undefined, headers as Record<string, string>);
    assert.equal(out.status, 403);
  }
  const list = await server.call("GET", "/user/invitations", { key });
  assert.deepEqual(list.body.data, []);
  assert.equal((await invite({ Origin: server.url, "Sec-Fetch-Site": "same-origin" })).status, 201);
  // No reply names another site's page.
  const preflight = await fetch(`${server.url}/api/auth/login`, {
    method: "OPTIONS", headers: { Origin: "https://evil.example", "Access-Control-Request-Method": "POST" },
  });
  assert.equal(preflight.headers.get("access-control-allow-origin"), null);
  assert.equal((await ana.call("GET", "/user/me")).headers.get("access-control-allow-origin"), null);
});

test("[AU316] a page's own origin counts, whatever the request calls this server", async () => {
  for (const host of ["[", "a:b", "::"]) {
    const status = await new Promise((resolve, reject) => {
      httpRequest(`${server.url}/api/auth/login`, {
        method: "POST", headers: { Host: host, Origin: "https://evil.example" },
      }, (response) => resolve(response.resume().statusCode)).on("error", reject).end("{}");
    });
    assert.equal(status, 403, host);
  }
});

test("[AU316] a socket is opened by a ticket, never by a cookie, and only from this server's pages", async () => {
  const { default: WebSocket } = await import("ws");
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "operator", key);
  const open = (query: string, headers: Record<string, string>) =>
    new Promise<number>((resolve) => {
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/user/socket${query}`, { headers });
      socket.on("open", () => {
        resolve(101);
        socket.close();
      });
      socket.on("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
      socket.on("error", () => undefined);
    });
  const ticket = async () =>
    `?ticket=${(await ana.call("POST", "/user/stream-tickets")).body.ticket as string}`;
  assert.equal(await open("", { Cookie: ana.cookie }), 401);
  assert.equal(await open(await ticket(), { Origin: "https://evil.example" }), 401);
  assert.equal(await open(await ticket(), { Origin: server.url }), 101);
});

test("[AU317] guesses are counted by address and by place; over the limit the right password waits too", async () => {
  const options = {
    dataDir: testDataDir(), system: { ...createSystem(), monotonicMs: () => 0 },
    env: { PARLEY_RATE_LIMITS: "on", PARLEY_TRUSTED_PROXIES: "127.0.0.1" },
  };
  let strict = await startTestServer(options);
  try {
    const ana = await memberOf(strict, "operator", strict.key);
    const from = (address: string) => ({ "X-Forwarded-For": address });
    const tries = [];
    for (let count = 0; count <= LIMITS.failedAuthenticationsMax; count += 1) {
      tries.push((await signIn(strict, ana.email, "a wrong password", from("192.0.2.7"))).status);
    }
    assert.deepEqual(new Set(tries.slice(0, LIMITS.passwordTriesMax)), new Set([401]));
    assert.equal(tries.at(-1), 429);
    const right = await signIn(strict, ana.email, PASSWORD, from("192.0.2.7"));
    assert.equal(right.status, 429);
    assert.ok(Number(right.headers.get("retry-after")) > 0);
    assert.equal((await signIn(strict, ana.email, PASSWORD, from("198.51.100.7"))).status, 200,
      "a stranger elsewhere locks nobody out");
    // The same for an address nobody has.
    const unknown = [];
    for (let count = 0; count <= LIMITS.passwordTriesMax; count += 1) {
      unknown.push((await signIn(strict, "nobody@example.org", "x", from("203.0.113.9"))).status);
    }
    assert.deepEqual([unknown[0], unknown.at(-1)], [401, 429]);
    assert.equal((await ana.call("GET", "/user/me")).status, 200, "who is signed in stays so");
    await strict.close();
    strict = await startTestServer(options);
    const later = await signIn(strict, ana.email, PASSWORD, from("192.0.2.7"));
    assert.equal(later.status, 429, "a restart forgets nothing");
  } finally {
    await strict.close();
    rmSync(options.dataDir, { recursive: true });
  }
});

test("[AU333] a clock set back does not lock anyone out of signing in for that time", async () => {
  const system = createManualSystem(Date.now());
  const strict = await startTestServer({ system, env: { PARLEY_RATE_LIMITS: "on" } });
  try {
    const ana = await memberOf(strict, "operator", strict.key);
    const wrong = async () => {
      const tries = [];
      for (let count = 0; count < LIMITS.passwordTriesMax; count += 1) {
        tries.push((await signIn(strict, ana.email, "a wrong password")).status);
      }
      return tries;
    };
    assert.deepEqual(new Set(await wrong()), new Set([401]));
    assert.equal((await signIn(strict, ana.email, PASSWORD)).status, 429);
    system.step(-2 * 60 * 60 * 1000);
    system.advance(61_000);
    assert.equal((await signIn(strict, ana.email, PASSWORD)).status, 200);
    assert.deepEqual(new Set(await wrong()), new Set([401, 429]), "tries count there too");
  } finally {
    await strict.close();
  }
});
