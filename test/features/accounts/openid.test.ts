// Signing in at a real OpenID provider on this machine: who gets in, and who does not.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { memberOf } from "#support/members.ts";
import { startTestServer } from "#support/server.ts";
import { SIGN_IN_ROUTES, startOpenIdProvider, type Browser } from "#support/vendors/openid.ts";

const provider = await startOpenIdProvider();
const server = await startTestServer({
  env: {
    PARLEY_OIDC_ISSUER: provider.issuer, PARLEY_OIDC_CLIENT_ID: provider.clientId,
    PARLEY_OIDC_CLIENT_SECRET: provider.clientSecret, PARLEY_OIDC_NAME: "Example",
    PARLEY_OIDC_DOMAINS: "example.org,staff.example", PARLEY_OIDC_DEFAULT_ROLE: "viewer",
  },
});
provider.allow(`${server.url}${SIGN_IN_ROUTES.callback}`);
after(async () => {
  await server.close();
  await provider.close();
});

const meOf = (browser: Browser) => browser.ask(`${server.url}/api/user/me`);
const enter = (browser: Browser) => browser.go(`${server.url}${SIGN_IN_ROUTES.begin}`);

test("[AU330] someone invited becomes a member by signing in at the provider, and stays the same one", async () => {
  await server.call("POST", "/user/invitations", { body: { email: "Ana@example.org", role: "builder" } });
  provider.person = { sub: "ana-1", email: "ana@example.org", email_verified: true, name: "Ana" };
  const browser = provider.browser();
  assert.equal((await enter(browser)).url, `${server.url}/`);
  const { user, role } = (await meOf(browser)).body;
  assert.deepEqual([user.name, user.email, role, user.has_password], ["Ana", "ana@example.org", "builder", false]);
  // The address changed at the provider: the person is the same.
  provider.person = { sub: "ana-1", email: "new@example.org", email_verified: true, name: "Ana" };
  const again = provider.browser();
  await enter(again);
  assert.equal((await meOf(again)).body.user.id, user.id);
  const open = await server.call("GET", "/user/invitations");
  assert.deepEqual(open.body.data, [], "the invitation is used");
});

test("[AU330] a member with a password is linked; another person with the same address is not", async () => {
  const ben = await memberOf(server, "operator", server.key);
  provider.person = { sub: "ben-1", email: ben.email, email_verified: true, name: "Ben" };
  const browser = provider.browser();
  await enter(browser);
  assert.equal((await meOf(browser)).body.user.id, ben.id);
  provider.person = { sub: "ben-2", email: ben.email, email_verified: true, name: "Eve" };
  const other = provider.browser();
  assert.equal((await enter(other)).url, `${server.url}/#/sign-in/oidc_unknown`);
  assert.equal((await meOf(other)).status, 401);
});

test("[AU330] a newcomer of an allowed domain gets the default role; of another domain, nothing", async () => {
  provider.person = { sub: "new-1", email: "cleo@staff.example", email_verified: true, name: "Cleo" };
  const browser = provider.browser();
  await enter(browser);
  assert.deepEqual((await meOf(browser)).body.role, "viewer");
  for (const email of ["eve@evil.example", "eve@sub.staff.example", "eve@staff.example.evil.example"]) {
    provider.person = { sub: email, email, email_verified: true, name: "Eve" };
    const stranger = provider.browser();
    assert.equal((await enter(stranger)).url, `${server.url}/#/sign-in/oidc_unknown`, email);
    assert.equal((await meOf(stranger)).status, 401);
  }
});

test("[AU331] an unverified address is nobody's", async () => {
  const ana = await memberOf(server, "owner", server.key);
  for (const verified of [false, undefined, "true"]) {
    provider.person = { sub: `eve-${String(verified)}`, email: ana.email, email_verified: verified, name: "Eve" };
    const browser = provider.browser();
    assert.equal((await enter(browser)).url, `${server.url}/#/sign-in/oidc_unverified`);
    assert.equal((await meOf(browser)).status, 401);
  }
});

test("[AU356] an address is verified by Microsoft's claim, unless the standard one denies it", async () => {
  const ask = async (claims: { email_verified?: unknown; xms_edov?: unknown }) => {
    const sub = JSON.stringify(claims);
    const email = `m${Buffer.from(sub).toString("hex")}@staff.example`;
    provider.person = { sub, email, name: "Mia", ...claims };
    return (await enter(provider.browser())).url.slice(server.url.length);
  };
  for (const says of [true, 1, "1"]) assert.equal(await ask({ xms_edov: says }), "/", String(says));
  for (const claims of [
    { xms_edov: false }, { xms_edov: "0" }, { xms_edov: true, email_verified: false },
  ]) assert.equal(await ask(claims), "/#/sign-in/oidc_unverified", JSON.stringify(claims));
});

test("[AU363] an address in the ID token without a word on its verification is looked up in userinfo", async () => {
  for (const [verified, there] of [[true, "/"], [false, "/#/sign-in/oidc_unverified"]] as const) {
    const email = `fay-${verified}@staff.example`;
    provider.person = { sub: email, email, email_verified: verified, name: "Fay" };
    for (const inToken of [["email"], ["email", "email_verified", "name"]] as const) {
      provider.inToken = [...inToken];
      assert.equal((await enter(provider.browser())).url, `${server.url}${there}`, inToken.join());
    }
  }
  provider.inToken = [];
});

test("[AU331] only the browser that started it finishes, once, with its own state", async () => {
  provider.person = { sub: "new-9", email: "dora@staff.example", email_verified: true, name: "Dora" };
  const victim = provider.browser();
  const attacker = provider.browser();
  const callback = await attacker.go(`${server.url}${SIGN_IN_ROUTES.begin}`, SIGN_IN_ROUTES.callback);
  assert.match(callback.url, /code=/);
  // The attacker's own answer in somebody else's browser: nobody is signed in there.
  assert.equal((await victim.go(callback.url)).url, `${server.url}/#/sign-in/oidc_failed`);
  assert.equal((await meOf(victim)).status, 401);
  // With a sign-in of the victim's own under way, the state is another.
  const begun = await victim.go(`${server.url}${SIGN_IN_ROUTES.begin}`, SIGN_IN_ROUTES.callback);
  assert.equal((await victim.go(callback.url)).url, `${server.url}/#/sign-in/oidc_failed`);
  assert.equal((await victim.go(begun.url)).url, `${server.url}/`, "its own goes on");
  assert.equal((await attacker.go(callback.url)).url, `${server.url}/`);
  assert.equal((await attacker.go(callback.url)).url, `${server.url}/#/sign-in/oidc_failed`, "replayed");
});

test("[AU362] two tabs of a browser sign in at the provider, whichever comes back first; an answer that fails ends its own sign-in alone", async () => {
  provider.person = { sub: "new-10", email: "emil@staff.example", email_verified: true, name: "Emil" };
  for (const order of [[0, 1], [1, 0]] as const) {
    const browser = provider.browser();
    const tabs: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      tabs.push((await browser.go(`${server.url}${SIGN_IN_ROUTES.begin}`, SIGN_IN_ROUTES.callback)).url);
    }
    for (const at of order) {
      assert.equal((await browser.go(tabs[at] ?? "")).url, `${server.url}/`, `tab ${at}`);
      assert.equal((await meOf(browser)).body.user.name, "Emil");
    }
  }
  const browser = provider.browser();
  const [first, second] = [
    await browser.go(`${server.url}${SIGN_IN_ROUTES.begin}`, SIGN_IN_ROUTES.callback),
    await browser.go(`${server.url}${SIGN_IN_ROUTES.begin}`, SIGN_IN_ROUTES.callback),
  ];
  const state = new URL(first.url).searchParams.get("state") ?? "";
  const cancelled = `${server.url}${SIGN_IN_ROUTES.callback}?error=access_denied&state=${state}`
    + `&iss=${encodeURIComponent(provider.issuer)}`;
  assert.equal((await browser.go(cancelled)).url, `${server.url}/#/sign-in/oidc_cancelled`);
  assert.equal((await browser.go(first.url)).url, `${server.url}/#/sign-in/oidc_failed`, "used");
  assert.equal((await browser.go(second.url)).url, `${server.url}/`);
});

test("[AU364] cancelling at the provider is said to be that and is no failed authentication", async () => {
  const strict = await startTestServer({
    env: {
      PARLEY_OIDC_ISSUER: provider.issuer, PARLEY_OIDC_CLIENT_ID: provider.clientId,
      PARLEY_OIDC_CLIENT_SECRET: provider.clientSecret, PARLEY_RATE_LIMITS: "on",
    },
  });
  try {
    const browser = provider.browser();
    const back = `${strict.url}${SIGN_IN_ROUTES.callback}?iss=${encodeURIComponent(provider.issuer)}`;
    const cancel = async (error: string): Promise<string> => {
      const { url } = await browser.go(`${strict.url}${SIGN_IN_ROUTES.begin}`, "/auth");
      const state = new URL(url).searchParams.get("state") ?? "";
      return (await browser.go(`${back}&error=${error}&state=${state}`)).url;
    };
    for (let count = 0; count <= LIMITS.failedAuthenticationsMax; count += 1) {
      assert.equal(await cancel("access_denied"), `${strict.url}/#/sign-in/oidc_cancelled`);
    }
    const login = () => strict.call("POST", "/auth/login", {
      key: null, body: { email: "ana@example.org", password: "a wrong password" },
    });
    assert.equal((await login()).status, 401, "nobody waits for that");
    for (let count = 0; count <= LIMITS.failedAuthenticationsMax; count += 1) {
      assert.equal(await cancel("server_error"), `${strict.url}/#/sign-in/oidc_failed`);
    }
    assert.equal((await login()).status, 429, "other failures count");
  } finally {
    await strict.close();
  }
});

test("[AU331] a provider that is down is reported, and one not configured does not exist", async () => {
  const bare = await startTestServer();
  const lost = await startTestServer({
    env: {
      PARLEY_OIDC_ISSUER: "http://127.0.0.1:9", PARLEY_OIDC_CLIENT_ID: "x", PARLEY_OIDC_CLIENT_SECRET: "y",
    },
  });
  try {
    const browser = provider.browser();
    assert.equal((await browser.go(`${bare.url}${SIGN_IN_ROUTES.begin}`)).status, 404);
    assert.deepEqual((await bare.call("GET", "/auth")).body, { signed_in: false, has_members: false, oidc: null, position: null });
    assert.equal((await browser.go(`${lost.url}${SIGN_IN_ROUTES.begin}`)).url, `${lost.url}/#/sign-in/oidc_failed`);
    assert.deepEqual((await server.call("GET", "/auth")).body.oidc, { name: "Example" });
  } finally {
    await bare.close();
    await lost.close();
  }
});

test("[AU350] the client secret is sent to the OpenID provider as it expects: in the form or in the header", async () => {
  const strict = await startOpenIdProvider("client_secret_basic");
  const other = await startTestServer({
    env: {
      PARLEY_OIDC_ISSUER: strict.issuer, PARLEY_OIDC_CLIENT_ID: strict.clientId,
      PARLEY_OIDC_CLIENT_SECRET: strict.clientSecret,
    },
  });
  try {
    strict.allow(`${other.url}${SIGN_IN_ROUTES.callback}`);
    await other.call("POST", "/user/invitations", { body: { email: "ana@example.org", role: "builder" } });
    strict.person = { sub: "ana-1", email: "ana@example.org", email_verified: true, name: "Ana" };
    const browser = strict.browser();
    assert.equal((await browser.go(`${other.url}${SIGN_IN_ROUTES.begin}`)).url, `${other.url}/`);
  } finally {
    await other.close();
    await strict.close();
  }
});
