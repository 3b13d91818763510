// Servers that reach others only through a proxy (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), and only by
// an authority of their company's: a real proxy, which takes every place for one on this machine.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createServer, get, type IncomingMessage } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { readConfig } from "#config/config.ts";
import { proxyFor } from "#config/proxy.ts";
import { createOutbound } from "#outbound/request.ts";
import { createParley } from "#client/client.ts";
import { ask } from "#support/api.ts";
import { whenRead } from "#support/documents/knowledge.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { lookUpBy } from "#support/names.ts";
import { CLI, startProcess } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

/** Public, and never reached: only the proxy hears of it. */
const PUBLIC = "93.184.216.34";

/** `ports`: port a connection is asked for → port on this machine; others are answered 403. */
async function startProxy(t: TestContext, ports: Record<string, number>) {
  const asked: { place: string; authorization: string | undefined }[] = [];
  const sockets = new Set<Socket>();
  const proxy = createServer((_, response) => void response.writeHead(405).end());
  proxy.on("connection", (socket) => sockets.add(socket));
  proxy.on("connect", ({ url = "", headers }, client) => {
    asked.push({ place: url, authorization: headers["proxy-authorization"] });
    const port = ports[url.replace(/^.*:/, "")];
    if (port === undefined) return void client.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    const far = connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      far.pipe(client).pipe(far);
    });
    far.on("error", () => client.destroy());
    client.on("error", () => far.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return { asked, url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
}

/** A site that answers every request, with a certificate for `PUBLIC` and this machine. */
async function startTlsSite(t: TestContext, dataDir: string) {
  const [keyFile, certFile] = [join(dataDir, "site.key"), join(dataDir, "site.pem")];
  execFileSync("openssl", [
    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
    "-keyout", keyFile, "-out", certFile, "-days", "2", "-subj", "/CN=site",
    "-addext", `subjectAltName=IP:${PUBLIC},IP:127.0.0.1`,
  ], { stdio: "ignore" });
  const site = createTlsServer(
    { key: readFileSync(keyFile), cert: readFileSync(certFile) },
    ({ url }, response) => url === "/robots.txt"
      ? response.writeHead(404).end()
      : response.writeHead(200, { "content-type": "text/html" }).end("<p>We open at nine.</p>"),
  ).listen(0, "127.0.0.1");
  await once(site, "listening");
  t.after(() => site.close());
  return { certFile, port: (site.address() as AddressInfo).port };
}

/** What becomes of a website in a knowledgebase. */
async function readSite(on: { url: string; key: string | null }, site: string): Promise<unknown> {
  const base = await ask(on, "/user/knowledgebases", { name: "K" });
  const document = await ask(on, `/user/knowledgebases/${base.data.id}/documents`, {
    name: "Site", type: "website", links: [site],
  });
  return (await whenRead({ url: on.url }, document.data.id, { key: on.key ?? "" })).status;
}

test("[EX130] a website with a certificate from NODE_EXTRA_CA_CERTS is read", async (t) => {
  const dataDir = testDataDir();
  const site = await startTlsSite(t, dataDir);
  const server = await startProcess(dataDir, {
    NODE_EXTRA_CA_CERTS: site.certFile, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.1/32",
  });
  t.after(() => server.process.kill("SIGKILL"));
  assert.equal(await readSite(server, `https://127.0.0.1:${site.port}/`), "active");
});

test("[OP203] the model and websites are reached through the environment's proxy, with its password", async (t) => {
  const dataDir = testDataDir();
  const model = await startScriptedModel();
  t.after(() => model.close());
  const site = await startTlsSite(t, dataDir);
  const proxy = await startProxy(t, { 80: model.port, 443: site.port });
  const env = {
    HTTP_PROXY: proxy.url.replace("//", "//user:p%40ss@"), HTTPS_PROXY: proxy.url,
    NODE_EXTRA_CA_CERTS: site.certFile, PARLEY_MODEL_URL: "http://model.invalid/v1",
  };
  const server = await startProcess(dataDir, env);
  t.after(() => server.process.kill("SIGKILL"));
  const parley = createParley({ baseUrl: `${server.url}/api`, apiKey: server.key ?? "" });
  const { data } = await parley.POST("/conversations", {
    body: { assistant_id: server.assistant ?? "", type: "test" },
  });
  const { response } = await parley.POST("/conversations/{uuid}/messages", {
    params: { path: { uuid: data?.conversation_id ?? "" } }, body: { message: "Hello" },
  });
  assert.equal(response.status, 200);
  assert.equal(model.requests.length, 1);
  assert.equal(await readSite(server, `https://${PUBLIC}/`), "active");
  assert.ok(proxy.asked.some(({ place }) => place === `${PUBLIC}:443`));
  const asked = proxy.asked.find(({ place }) => place === "model.invalid:80");
  assert.equal(asked?.authorization, `Basic ${Buffer.from("user:p@ss").toString("base64")}`);
  const { stdout: said } = await promisify(execFile)(process.execPath, [CLI, "doctor"], {
    env: { PARLEY_DATA_DIR: dataDir, ...env },
  });
  assert.match(said, /ok +model +http:\/\/model\.invalid\/v1 answers/);
  assert.match(said, /ok +proxy +http:\/\/127\.0\.0\.1:\d+ \(HTTPS_PROXY\)/);
  assert.ok(!said.includes("p%40ss"));
  rmSync(dataDir, { recursive: true, force: true });
});

test("[AU351] the OpenID provider is reached through the environment's proxy", async (t) => {
  const dataDir = testDataDir();
  const proxy = await startProxy(t, {});
  const server = await startProcess(dataDir, {
    HTTPS_PROXY: proxy.url, PARLEY_OIDC_ISSUER: "https://accounts.invalid",
    PARLEY_OIDC_CLIENT_ID: "x", PARLEY_OIDC_CLIENT_SECRET: "y",
  });
  t.after(() => server.process.kill("SIGKILL"));
  const [answer] = await once(get(`${server.url}/api/auth/oidc`), "response") as [IncomingMessage];
  assert.equal(answer.resume().headers.location, "/#/sign-in/oidc_failed", "the proxy refuses");
  assert.deepEqual(proxy.asked.map(({ place }) => place), ["accounts.invalid:443"]);
  rmSync(dataDir, { recursive: true, force: true });
});

test("[OP204] through a proxy no tenant's request reaches a private address, however it is named", async (t) => {
  const endpoint = await startEndpoint();
  t.after(() => endpoint.close());
  const proxy = await startProxy(t, { 8080: Number(new URL(endpoint.url).port) });
  const addresses: Record<string, string> = {
    "hooks.example.com": PUBLIC, "inner.example.com": "10.0.0.8",
  };
  lookUpBy(t, (name) => Promise.resolve([{ address: addresses[name] ?? name, family: 4 }]));
  process.env.HTTP_PROXY = proxy.url;
  const outbound = createOutbound({ allowPrivateNetworks: ["10.9.0.0/16"] });
  t.after(async () => {
    delete process.env.HTTP_PROXY;
    delete process.env.NO_PROXY;
    await outbound.close();
  });
  const ask = (url: string) =>
    outbound.request({ url, method: "POST", body: "{}", totalMs: 5000, bytesMax: 1000 });
  const kindOf = async (url: string) => (await ask(url)).kind;
  // The proxy is told the address that was judged; the endpoint the name.
  assert.equal(await kindOf("http://hooks.example.com:8080/"), "reply");
  assert.deepEqual(proxy.asked.map(({ place }) => place), [`${PUBLIC}:8080`]);
  assert.equal(endpoint.requests[0]?.headers.host, "hooks.example.com:8080");
  for (const inner of ["inner.example.com", "10.0.0.8", "169.254.169.254", "127.0.0.1"]) {
    assert.equal(await kindOf(`http://${inner}:8080/`), "refused", inner);
  }
  assert.equal(proxy.asked.length, 1);
  // What the operator allows is allowed there, too.
  assert.equal(await kindOf("http://10.9.0.1:8080/"), "reply");
  // Nothing was sent where the proxy refuses: it may be tried again.
  assert.deepEqual(await ask(`http://${PUBLIC}:8081/`), {
    kind: "failed", reason: "unreachable", sent: false, why: "this server's proxy cannot reach it",
  });
  process.env.NO_PROXY = "example.com";
  assert.equal(await kindOf("http://inner.example.com:8080/"), "refused");
});

test("[OP205] NO_PROXY excepts names, their subdomains, addresses and networks; this machine always", () => {
  const env = { HTTPS_PROXY: "proxy.example.com:3128", NO_PROXY: "a.example, .b.example *.c.example,10.0.0.0/8,d.example:8443" };
  const isDirect = (place: string): boolean => proxyFor(new URL(place), env) === null;
  for (const place of [
    "https://a.example", "https://x.A.example", "https://b.example", "https://y.b.example",
    "https://z.c.example", "https://10.1.2.3:9000", "https://d.example:8443", "https://localhost",
    "https://127.0.0.1:11434", "https://[::1]", "http://other.example",
  ]) assert.ok(isDirect(place), place);
  for (const place of ["https://xa.example", "https://d.example", "https://11.0.0.1"]) {
    assert.ok(!isDirect(place), place);
  }
  assert.equal(proxyFor(new URL("https://e.example"), env)?.href, "http://proxy.example.com:3128/");
  assert.equal(proxyFor(new URL("https://e.example"), { ...env, NO_PROXY: "*" }), null);
  assert.equal(proxyFor(new URL("https://e.example"), { ...env, https_proxy: "" }), null);
  for (const other of ["socks5://proxy.example.com:1080", "http://user:100%@proxy.example.com"]) {
    const { kind, warnings } = readConfig({ HTTPS_PROXY: other });
    assert.deepEqual([kind, warnings], ["ok", [
      "HTTPS_PROXY is ignored: it must be a URL such as http://proxy.example.com:3128",
    ]]);
    assert.equal(proxyFor(new URL("https://e.example"), { HTTPS_PROXY: other }), null);
  }
});
