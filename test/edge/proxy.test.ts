// Behind nginx and HAProxy, configured with the text of docs/proxy.md as it stands there.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { WebSocket } from "ws";
import { freePorts } from "#support/free-ports.ts";
import { startScriptedModel } from "#support/scripted-model.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";

const noNginx = spawnSync("nginx", ["-v"]).status === 0 ? false : "nginx is not installed";
const noHaproxy = spawnSync("haproxy", ["-v"]).status === 0 ? false : "haproxy is not installed";

interface Proxy { url: string; close(): void }

/** The block of docs/proxy.md in that language, with these addresses for its own. */
function documented(
  language: string, listen: [from: string, to: string], serverPort: number,
): string {
  const docs = readFileSync(new URL("../../docs/proxy.md", import.meta.url), "utf8");
  const block = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(docs)?.[1] ?? "";
  return block.replace(...listen).replace("127.0.0.1:8080", `127.0.0.1:${serverPort}`);
}

/** Resolves once nginx listens: its first process ends when the one that serves has begun. */
async function startNginx(serverPort: number): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), "parley-nginx-"));
  const port = await freePorts();
  const site = documented("nginx", ["listen 80;", `listen 127.0.0.1:${port};`], serverPort);
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
async function startHaproxy(serverPort: number): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), "parley-haproxy-"));
  const port = await freePorts();
  const [file, pid] = [join(folder, "haproxy.cfg"), join(folder, "pid")];
  writeFileSync(file, documented("haproxy", ["bind :80", `bind 127.0.0.1:${port}`], serverPort));
  execFileSync("haproxy", ["-D", "-q", "-p", pid, "-f", file], { stdio: "ignore" });
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      process.kill(Number(readFileSync(pid, "utf8")));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

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

test("[OP148] behind nginx as documented: streams as written, WebSocket, the visitor's address", { skip: noNginx }, async () => {
  await standsBehind(startNginx);
});

test("[OP169] behind HAProxy as documented: the same", { skip: noHaproxy }, async () => {
  await standsBehind(startHaproxy);
});
