// Who is let in: wrong credentials, stream tickets, sessions of the dashboard.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createFailedAuthentications } from "#core/failed-authentications.ts";
import { LIMITS } from "#core/limits.ts";
import { createSystem } from "#core/system.ts";
import { startTestServer } from "#support/server.ts";

// Time stands still: however slow the machine, all that is asked falls into one window.
const server = await startTestServer({
  system: { ...createSystem(), monotonicMs: () => 0 },
  env: { PARLEY_RATE_LIMITS: "on", PARLEY_TRUSTED_PROXIES: "127.0.0.1" },
});
after(() => server.close());

const from = (address: string) => ({ "X-Forwarded-For": address });

test("[AU145] wrong keys and tickets of an address are logged, then slowed; valid ones pass", async () => {
  const ask = (key: string | null, address: string, query = "") =>
    server.call("GET", `/user/stream${query}`, { key, headers: from(address) });
  for (let count = 0; count < LIMITS.failedAuthenticationsMax; count += 1) {
    const refused = count % 2 === 0
      ? await ask("1|wrong", "192.0.2.1")
      : await ask(null, "192.0.2.1", "?ticket=wrong");
    assert.deepEqual([refused.status, refused.body.message], [401, "Unauthenticated."]);
  }
  const slowed = await ask("1|wrong", "192.0.2.1");
  assert.equal(slowed.status, 429);
  assert.equal(slowed.headers.get("retry-after"), String(slowed.body.retry_after));
  assert.equal((await ask("1|wrong", "192.0.2.2")).status, 401);
  assert.equal((await ask(null, "192.0.2.1")).status, 401, "no credential is no wrong one");
  const right = await server.call("GET", "/user/me", { headers: from("192.0.2.1") });
  assert.equal(right.status, 200);
});

test("[AU332] a 401 says what is wrong with the key, to its holder only", async () => {
  const { accounts } = server.app.features;
  const [account] = await accounts.list();
  assert.ok(account);
  const reasonOf = async (key: string | null): Promise<unknown[]> => {
    const { status, body } = await server.call("GET", "/user/me", { key });
    return [status, body.message, body.reason];
  };
  const { token: expired } = await accounts.createKey(account.id, "old", { expiresAt: 1 });
  const { key, token: revoked } = await accounts.createKey(account.id, "lost");
  assert.deepEqual(await reasonOf(revoked), [200, undefined, undefined]);
  await accounts.revokeKey(account.id, key.id);
  for (const [given, reason] of [
    [null, "missing"], ["1|wrong", "unknown"], ["none", "unknown"],
    [`${revoked.slice(0, -1)}?`, "unknown"], [revoked, "revoked"], [expired, "expired"],
  ] as const) {
    assert.deepEqual(await reasonOf(given), [401, "Unauthenticated.", reason]);
  }
});

test("[AU145] each failure is one log line of constant text, and a flood does not add more", () => {
  const lines: unknown[] = [];
  let now = 0;
  const failures = createFailedAuthentications({
    log: { warn: (...line: unknown[]) => void lines.push(line) },
    system: { ...createSystem(), monotonicMs: () => now },
    slows: true,
  });
  const waits = Array.from({ length: 500 }, () => failures.record("2001:db8::1", "sip"));
  assert.equal(waits.findIndex((wait) => wait > 0), LIMITS.failedAuthenticationsMax);
  assert.equal(lines.length, LIMITS.failedAuthenticationsMax);
  assert.deepEqual(lines[0], [{ address: "2001:db8::1", kind: "sip" }, "authentication failed"]);
  // One customer owns a /64.
  assert.equal(failures.waitMs("2001:db8::2"), 60_000);
  assert.equal(failures.waitMs("2001:db8:1::1"), 0);
  now = 60_001;
  assert.equal(failures.waitMs("2001:db8::1"), 0);
});

test("[AU198] the documented fail2ban filter finds the address in a line the server writes", () => {
  const docs = readFileSync(join(import.meta.dirname, "../../../docs/security.md"), "utf8");
  const setting = (name: string): string =>
    new RegExp(`^${name} = (.*)$`, "m").exec(docs)?.[1] ?? assert.fail(name);
  // As fail2ban does: the time is cut out of the line, then the rest must match.
  const parts: Record<string, string> = {
    Y: "\\d{4}", m: "\\d\\d", d: "\\d\\d", H: "\\d\\d", M: "\\d\\d", S: "\\d\\d",
    f: "\\d+", z: "Z",
  };
  const time = new RegExp(setting("datepattern").replaceAll(
    /%%(\w)/g, (_, part: string) => parts[part] ?? assert.fail(part)));
  const line = new RegExp(setting("failregex").replace("<HOST>", "(?<host>[\\da-f.:]+)"));
  const program = `
    import { createFailedAuthentications } from "./src/base/core/failed-authentications.ts";
    import { createLogger } from "./src/base/core/logger.ts";
    import { createSystem } from "./src/base/core/system.ts";
    const log = createLogger("info");
    const failures = createFailedAuthentications({ log, system: createSystem(), slows: true });
    failures.record("192.0.2.1", "api_key");
    failures.record("2001:db8::1", "sip");
    log.info("authentication failed");`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: join(import.meta.dirname, "../../.."), encoding: "utf8",
  });
  const hosts = stdout.trim().split("\n").map((written) => {
    assert.match(written, time);
    return line.exec(written.replace(time, ""))?.groups?.host;
  });
  assert.deepEqual(hosts, ["192.0.2.1", "2001:db8::1", undefined]);
});

async function ticketOf(key: string): Promise<string> {
  const { status, body } = await server.call("POST", "/user/stream-tickets", { key });
  assert.equal(status, 201);
  return body.ticket as string;
}

/** The status of a stream that is opened with the ticket. */
async function openWith(ticket: string): Promise<number> {
  const response = await fetch(`${server.url}/api/user/stream?ticket=${ticket}`);
  await response.body?.cancel();
  return response.status;
}

test("[AU146] a stream ticket works once and dies with its key", async () => {
  const once = await ticketOf(server.key);
  assert.deepEqual([await openWith(once), await openWith(once)], [200, 401]);
  const made = await server.call("POST", "/user/api-keys", { body: { name: "short" } });
  const { token, id } = made.body.api_key as { token: string; id: number };
  const orphan = await ticketOf(token);
  await server.call("DELETE", `/user/api-keys/${id}`);
  assert.equal(await openWith(orphan), 401);
});

test("[AU147] a dashboard session reads within its own rate limit, changes nothing, and ends with its key", async () => {
  const made = await server.call("POST", "/user/api-keys", { body: { name: "desk" } });
  const { token: key, id } = made.body.api_key as { token: string; id: number };
  const open = async () =>
    (await server.call("POST", "/user/dashboard-sessions", { key })).body.token as string;
  const [session, second] = [await open(), await open()];
  const read = (bearer: string) => server.call("GET", "/user/me", { key: bearer });
  const more = await server.call("POST", "/user/dashboard-sessions", { key: session });
  assert.deepEqual([more.status, more.body.message], [403, "A session is opened with an API key."]);
  for (let count = 1; count < LIMITS.dashboardBurstMax; count += 1) {
    const { status, headers } = await read(count % 2 === 0 ? session : second);
    assert.equal(status, 200);
    assert.equal(headers.get("x-ratelimit-limit"), String(LIMITS.dashboardBurstMax));
  }
  // All sessions of a key share one rate, which is not the key's.
  assert.deepEqual([(await read(session)).status, (await read(second)).status], [429, 429]);
  const byKey = await read(key);
  assert.deepEqual([byKey.status, byKey.headers.get("x-ratelimit-remaining")], [200, "17"]);

  const write = await server.call("POST", "/user/api-keys", { key: session, body: { name: "no" } });
  assert.equal(write.status, 401);
  const forged = await read(`${session.slice(0, -4)}AAAA`);
  assert.equal(forged.status, 401);
  await server.call("DELETE", `/user/api-keys/${id}`);
  assert.equal((await read(session)).status, 401);
});
