// Behind nginx, HAProxy, lighttpd and Varnish, configured with the texts of docs/proxy.md and
// docs/scale.md as they stand there.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { WebSocket } from "ws";
import { askUntil } from "#support/asking.ts";
import { freePorts } from "#support/free-ports.ts";
import { startProcess } from "#support/process.ts";
import { newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const noNginx = spawnSync("nginx", ["-v"]).status === 0 ? false : "nginx is not installed";
const noHaproxy = spawnSync("haproxy", ["-v"]).status === 0 ? false : "haproxy is not installed";

const noLighttpd = spawnSync("lighttpd", ["-v"]).status === 0
  ? false : "lighttpd is not installed";
const noVarnish = spawnSync("varnishd", ["-V"]).status === 0 ? false : "Varnish is not installed";

interface Proxy { url: string; close(): void }

/** The block of a page of docs/ in that language, with these addresses for its own. */
function documented(
  page: string, language: string, addresses: [from: string | RegExp, to: string][],
): string {
  const docs = readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  const block = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(docs)?.[1] ?? "";
  return addresses.reduce((text, address) => text.replace(...address), block);
}

const at = (port: number): string => `127.0.0.1:${port}`;

/** Resolves once nginx listens: its first process ends when the one that serves has begun. */
async function startNginx(serverPort: number): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), "parley-nginx-"));
  const port = await freePorts();
  const site = documented("proxy.md", "nginx", [
    ["listen 80;", `listen ${at(port)};`], [at(8080), at(serverPort)],
  ]);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${join(folder, name)};`).join(" ");
  writeFileSync(join(folder, "nginx.conf"), `
    pid ${join(folder, "pid")}; error_log ${join(folder, "error.log")}; events {}
    http { access_log off; ${temporary} ${site} }`);
  const args = ["-p", folder, "-c", join(folder, "nginx.conf")];
  execFileSync("nginx", args, { stdio: "ignore" });
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      execFileSync("nginx", [...args, "-s", "stop"], { stdio: "ignore" });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** As a daemon, whose first process ends when the one that serves listens. */
async function startHaproxy(configured: (listen: string) => string): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), "parley-haproxy-"));
  const port = await freePorts();
  const [file, pid] = [join(folder, "haproxy.cfg"), join(folder, "pid")];
  writeFileSync(file, configured(at(port)));
  execFileSync("haproxy", ["-D", "-q", "-p", pid, "-f", file], { stdio: "ignore" });
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      process.kill(Number(readFileSync(pid, "utf8")));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const haproxyBefore = (serverPort: number): Promise<Proxy> => startHaproxy((listen) => documented(
  "proxy.md", "haproxy", [["bind :80", `bind ${listen}`], [at(8080), at(serverPort)]]));

/** With what is before the backend of docs/proxy.md. */
const haproxyBeforeNodes = (first: URL, second: URL): Promise<Proxy> => startHaproxy((listen) => [
  documented("proxy.md", "haproxy", [["bind :80", `bind ${listen}`], [/^backend[^]*/m, ""]]),
  documented("scale.md", "haproxy", [
    ["10.0.0.11:8080", first.host], ["10.0.0.12:8080", second.host],
  ]),
].join(""));

/** One that stays in the foreground, once it answers. */
async function startInFront(
  command: string, configure: (folder: string, port: number) => string[],
): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), `parley-${command}-`));
  const port = await freePorts();
  const child = spawn(command, configure(folder, port), { stdio: "ignore" });
  const url = `http://${at(port)}`;
  await askUntil(
    () => fetch(`${url}/livez`).then(({ status }) => status, () => 0), (status) => status === 200);
  return {
    url,
    close: () => {
      child.once("exit", () => rmSync(folder, { recursive: true, force: true }));
      child.kill();
    },
  };
}

const lighttpdBefore = (serverPort: number): Promise<Proxy> =>
  startInFront("lighttpd", (folder, port) => {
    const file = join(folder, "lighttpd.conf");
    writeFileSync(file, `server.document-root = "${folder}"
      server.bind = "127.0.0.1"
      server.port = ${port}
      ${documented("proxy.md", "lighttpd", [["8080", String(serverPort)]])}`);
    return ["-D", "-f", file];
  });

const varnishBefore = (serverPort: number): Promise<Proxy> =>
  startInFront("varnishd", (folder, port) => {
    const file = join(folder, "default.vcl");
    writeFileSync(file, documented("proxy.md", "vcl", [["8080", String(serverPort)]]));
    // As another user, which it would become, it may not read the folder.
    return ["-j", "none", "-F", "-n", join(folder, "work"), "-a", at(port), "-f", file];
  });

async function standsBehind(start: (serverPort: number) => Promise<Proxy>): Promise<void> {
  const model = await startScriptedModel();
  const hold = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["one ", "two"], hold: hold.promise, holdAfter: 1 }));
  const server = await startTestServer({
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_TRUSTED_PROXIES: "127.0.0.1",
      PARLEY_RATE_LIMITS: "on", PARLEY_RATE_ADDRESS_PER_MINUTE: "1",
    },
  });
  const proxy = await start(server.port);
  const { uuid: assistant } = await newAssistant(server);
  const create = (address: string) => fetch(`${proxy.url}/api/conversations`, {
    method: "POST", body: JSON.stringify({ assistant_id: assistant }),
    headers: { "X-Forwarded-For": address },
  });
  // What a visitor claims is not believed: the proxy adds the address that it saw, which counts.
  assert.deepEqual([(await create("192.0.2.1")).status, (await create("192.0.2.2")).status], [200, 200]);
  const uuid = await newConversation(server, assistant);
  const socket = new WebSocket(`${proxy.url.replace("http", "ws")}/api/conversations/${uuid}/socket`);
  const [first] = await once(socket, "message") as [Buffer];
  assert.match(first.toString(), /"connected"/);
  const response = await fetch(`${proxy.url}/api/conversations/${uuid}/messages`, {
    method: "POST", body: JSON.stringify({ message: "Hello" }),
    headers: { Accept: "text/event-stream" },
  });
  // The model goes on only when the first words have arrived: nothing on the way keeps them back.
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.includes('"one "')) hold.resolve();
  }
  assert.match(text, /event: reply_end/);
  socket.terminate();
  proxy.close();
  await Promise.all([server.close(), model.close()]);
}

test("[AU347] after a chunked body whose trailers could be read as a request, a proxy drops the connection", async () => {
  const server = await startTestServer();
  const headers = { Authorization: `Bearer ${server.key}` };
  const connectionAfter = async (method: string, path: string, sent: object) => {
    const asked = request(`${server.url}${path}`, { method, headers: { ...headers, ...sent } });
    asked.end();
    const [answer] = await once(asked, "response") as [IncomingMessage];
    answer.destroy();
    return [answer.statusCode, answer.headers.connection];
  };
  const chunked = { "Transfer-Encoding": "chunked" };
  for (const [method, path, status] of [
    ["GET", "/livez", 200], ["HEAD", "/widget.js", 200], ["OPTIONS", "/api/conversations", 403],
    ["POST", "/api/conversations", 422], ["GET", "/api/user/stream", 200], ["GET", "/none", 404],
  ] as const) {
    assert.deepEqual(await connectionAfter(method, path, chunked), [status, "close"], path);
    assert.deepEqual(await connectionAfter(method, path, {}), [status, undefined], path);
  }
  await server.close();
});

test("[OP148] behind nginx as documented: streaming as written, WebSocket, the visitor's address", { skip: noNginx }, async () => {
  await standsBehind(startNginx);
});

test("[OP169] behind HAProxy as documented: the same", { skip: noHaproxy }, async () => {
  await standsBehind(haproxyBefore);
});

test("[OP326] behind lighttpd as documented: the same", { skip: noLighttpd }, async () => {
  await standsBehind(lighttpdBefore);
});

test("[OP327] behind Varnish as documented: the same", { skip: noVarnish }, async () => {
  await standsBehind(varnishBefore);
});

test("[OP301] behind HAProxy as documented, a node giving notice gets no more requests and refuses none", { skip: noHaproxy }, async () => {
  const folders = [testDataDir(), testDataDir()] as const;
  const env = { PARLEY_STOP_NOTICE_SECONDS: "3600" };
  const nodes = await Promise.all([startProcess(folders[0], env), startProcess(folders[1], env)]);
  const [first, second] = nodes;
  const proxy = await haproxyBeforeNodes(new URL(first.url), new URL(second.url));
  const headers = { Authorization: `Bearer ${second.key}` };
  // Each has its own accounts: to the first one the key is a stranger's.
  const ask = async () => (await fetch(`${proxy.url}/api/user/me`, { headers })).status;
  const asked = async () => [await ask(), await ask(), await ask(), await ask()].join(" ");
  assert.match(await askUntil(asked, (statuses) => statuses.includes("401")), /200/);
  first.process.kill("SIGTERM");
  const seen = new Set<string>();
  await askUntil(asked, (statuses) => {
    seen.add(statuses);
    return statuses === "200 200 200 200";
  });
  assert.doesNotMatch([...seen].join(" "), /5\d\d/);
  proxy.close();
  for (const { process: child } of nodes) {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
  for (const folder of folders) rmSync(folder, { recursive: true });
});
