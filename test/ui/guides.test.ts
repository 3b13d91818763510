// The guides for programs: every example is run against a real server, the signature checks get
// real and forged webhooks, and the pages are looked at in a browser, which alone fills in a key.
import assert from "node:assert/strict";
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { marked, type Tokens } from "marked";
import { GUIDES, guideText } from "#ui/guides.ts";
import { startCuttingProxy } from "#support/databases/cutting-proxy.ts";
import { dataRoot } from "#support/databases/data-folder.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { freePorts } from "#support/free-ports.ts";
import { memberOf, PASSWORD } from "#support/members.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

type Guide = Parameters<typeof guideText>[0];
const ALL = ["README", ...Object.keys(GUIDES)] as Guide[];
const RUNNERS: Record<string, { name: string; command: string }> = {
  sh: { name: "example.sh", command: "bash" },
  js: { name: "example.mjs", command: process.execPath },
  py: { name: "example.py", command: "python3" },
  php: { name: "example.php", command: "php" },
};

const skip = noBrowser();
const run = promisify(execFile);
const { model, server, browser, withDashboard, close } = await startDashboard({
  PARLEY_DRAIN_SECONDS: "1",
});
await server.app.features.accounts.credit(server.accountId, 100_000_000);
const { uuid: assistant } = await newAssistant(server, { name: "Keeper" });
const shop = await startEndpoint();
shop.answer((_, response) => {
  response.setHeader("content-type", "application/json");
  response.end('{"state":"shipped"}');
});
const hooks = await startWebhookReceiver();
const folder = mkdtempSync(join(dataRoot(), "parley-guides-"));
after(async () => {
  await close();
  await Promise.all([shop.close(), hooks.close()]);
  rmSync(folder, { recursive: true, force: true });
});
const isHere = async (command: string): Promise<boolean> =>
  run(command, ["--version"]).then(() => true, () => false);

const examplesOf = (guide: Guide): Tokens.Code[] =>
  marked.lexer(guideText(guide)).filter((token): token is Tokens.Code => token.type === "code");

/** As the browser fills it in, and with a shop and a receiver that are here. */
const filled = (text: string): string => text
  .replaceAll("https://parley.example.com", server.url)
  .replaceAll("YOUR_API_KEY", server.key)
  .replaceAll("YOUR_ASSISTANT", assistant)
  .replaceAll("https://shop.example.com", shop.url)
  .replaceAll("https://hooks.example.com", hooks.url);

let files = 0;
function written({ lang = "", text }: Tokens.Code): { command: string; args: string[] } {
  const { name, command } = RUNNERS[lang] ?? assert.fail(lang);
  const file = join(folder, `${files += 1}-${name}`);
  writeFileSync(file, filled(text));
  return { command, args: lang === "sh" ? ["-euo", "pipefail", file] : [file] };
}

/** A pattern of what each example of a guide prints, whatever its language. */
const SAYS: Partial<Record<Guide, RegExp>> = {
  README: /total_balance/,
  "first-reply": /From nine to five\./,
  stream: /nine/,
  widget: /data-user-hash="[0-9a-f]{64}"/,
  webhooks: /whsec_/,
  call: /initiated|ringing|in-progress/,
  campaign: /created/,
  knowledge: /20 dollars/,
  tool: /shipped/,
};

test("[GD1] every example of a guide runs as printed, in each of its languages", async () => {
  model.script(() => ({ tokens: ["From ", "nine ", "to five."] }));
  const hasPhp = await isHere("php");
  for (const guide of ALL) {
    const runnable = examplesOf(guide).filter(({ lang = "", text }) => lang in RUNNERS
      && !text.includes("WEBHOOK_SECRET") && (lang !== "php" || hasPhp));
    assert.ok(runnable.length >= 2, guide);
    const outputs = await Promise.all(runnable.map(async (example) => {
      const { command, args } = written(example);
      const { stdout } = await run(command, args, { timeout: 120_000 });
      assert.match(stdout, SAYS[guide] ?? assert.fail(guide), `${guide} in ${example.lang}: ${stdout}`);
      return stdout;
    }));
    if (guide === "widget") assert.equal(new Set(outputs).size, 1, "each language signs alike");
  }
});

test("[GD6] if a reply fails, the streaming examples end with the server's message", async () => {
  model.script(() => ({ fault: "error_event" }));
  const failing = examplesOf("stream").filter(({ lang }) => lang === "js" || lang === "py");
  assert.equal(failing.length, 3);
  for (const example of failing) {
    const { command, args } = written(example);
    const { code, stderr } = await run(command, args).then(
      () => assert.fail("it ended well"), (error: unknown) => error as { code: number; stderr: string });
    assert.equal(code, 1);
    assert.match(stderr, /^(?:Runtime)?Error: Failed to process message: ./m, example.lang);
  }
});

test("[GD9] if a document cannot be read, the shell's knowledge example ends with the reason", async () => {
  const example = examplesOf("knowledge").find(({ lang }) => lang === "sh") ?? assert.fail();
  // No port of a web server.
  const text = example.text.replace(
    /"text", "text": "A city bike.*?"/, '"website", "links": [{"link": "http://127.0.0.1:1/"}]');
  assert.notEqual(text, example.text);
  const { command, args } = written({ ...example, text });
  const { stdout } = await run(command, args, { timeout: 60_000 });
  assert.match(stdout, /"failure_reason":"The page may not be called/);
});

test("[GD7] [GD8] the example that loses no word resumes where its connection broke, behind a proxy that sends 502 first", async () => {
  const hold = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["From ", "nine ", "to ", "five."], hold: hold.promise, holdAfter: 2 }));
  const proxy = await startCuttingProxy(server.port);
  const text = examplesOf("stream").at(-1)?.text ?? "";
  assert.match(text, /Last-Event-ID/);
  const { command, args } = written({
    type: "code", raw: "", lang: "py",
    text: text.replace("https://parley.example.com", `http://127.0.0.1:${proxy.port}`),
  });
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  for await (const part of child.stdout) {
    said += String(part);
    if (!said.endsWith("nine ")) continue;
    proxy.shut();
    proxy.open();
    proxy.answerNext("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
    hold.resolve();
  }
  await proxy.close();
  assert.equal(said, "From nine to five.\n");
});

/** Starts a receiver of the guide; resolves when it listens. */
async function startReceiver(example: Tokens.Code, secret: string, port: number) {
  const { command, args } = example.lang === "php"
    ? { command: "php", args: ["-S", `127.0.0.1:${port}`, written(example).args[0] ?? ""] }
    : written(example);
  const child: ChildProcess = spawn(command, args, {
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
    stdio: ["ignore", "pipe", "pipe"],
  });
  // PHP's own server writes to standard error, among lines of its own.
  const output = (example.lang === "php" ? child.stderr : child.stdout) ?? assert.fail();
  const lines = createInterface({ input: output })[Symbol.asyncIterator]();
  const next = async (wanted: RegExp): Promise<void> => {
    for (let line = await lines.next(); !line.done; line = await lines.next()) {
      if (wanted.test(line.value)) return;
    }
    assert.fail(`${example.lang} ended without ${String(wanted)}`);
  };
  await next(/^ready$|Development Server .* started$/);
  return {
    next,
    end: async () => {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

test("[GD2] the signature checks accept what the server signed, and refuse forged, changed and old messages", async () => {
  for (const example of examplesOf("webhooks").filter(({ text }) => text.includes("WEBHOOK_SECRET"))) {
    if (example.lang === "php" && !await isHere("php")) continue;
    const port = await freePorts();
    const url = `http://127.0.0.1:${port}/`;
    const made = await server.call("POST", "/user/webhook-endpoints", {
      body: { url: `${hooks.url}/${example.lang}`, events: ["call_ended"] },
    });
    const { id, secret } = made.body.data as { id: number; secret: string };
    const receiver = await startReceiver(example, secret, port);
    // Kept here first, so that it can be sent again, changed.
    await server.call("POST", `/user/webhook-endpoints/${id}/test`);
    const isOurs = ({ path }: { path: string }) => path === `/${example.lang}`;
    while (!hooks.received.some(isOurs)) await hooks.until(hooks.received.length + 1);
    const { headers, text } = hooks.received.find(isOurs) ?? assert.fail();
    const send = async (changes: Record<string, string>, body = text): Promise<number> => {
      const signed = Object.fromEntries(["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map((name) => [name, String(headers[name])]));
      return (await fetch(url, { method: "POST", headers: { ...signed, ...changes }, body })).status;
    };
    assert.equal(await send({}), 204, example.lang);
    await receiver.next(/(?:^|\] )received /);
    const rotating = `v1,${Buffer.alloc(32).toString("base64")} ${String(headers["webhook-signature"])}`;
    assert.equal(await send({ "webhook-signature": rotating }), 204, "while a secret is changed");
    assert.equal(await send({}, text.replace("{", "{ ")), 401, "changed");
    assert.equal(await send({ "webhook-id": "msg_other" }), 401, "another id");
    assert.equal(await send({ "webhook-timestamp": "1000000000" }), 401, "old");
    assert.equal(await send({ "webhook-signature": "v1,AAAA" }), 401, "forged");
    assert.equal(await send({ "webhook-signature": "" }), 401, "unsigned");
    await receiver.end();
  }
});

test("[GD3] examples that cannot run here are at least complete, and the body shown is a real webhook's", async () => {
  for (const { text } of ALL.flatMap(examplesOf).filter(({ lang }) => lang === "php")) {
    const code = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').replaceAll(/\/\/.*$/gm, "");
    assert.ok(text.startsWith("<?php\n"));
    for (const [open, shut] of ["()", "{}", "[]"]) {
      assert.equal(code.split(open ?? "").length, code.split(shut ?? "").length, `${open} ${text}`);
    }
    for (const line of code.split("\n").slice(1)) assert.match(line, /^ *\}?$|[;{(,]\s*$/, line);
  }
  await server.call("POST", "/user/webhook-endpoints", {
    body: { url: `${hooks.url}/real`, events: ["message_added"] },
  });
  const begun = await server.call("POST", "/conversations", { body: { assistant_id: assistant } });
  await server.call("POST", `/conversations/${begun.body.conversation_id}/messages`, {
    body: { message: "When are you open?" },
  });
  const isReal = ({ path, text }: { path: string; text: string }) =>
    path === "/real" && text.includes('"role":"user"');
  while (!hooks.received.some(isReal)) await hooks.until(hooks.received.length + 1);
  const { text } = examplesOf("webhooks").find(({ lang }) => lang === "json") ?? assert.fail();
  const shapeOf = (value: unknown): unknown => (typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shapeOf(part)]).sort())
    : typeof value);
  assert.deepEqual(shapeOf(JSON.parse(text)), shapeOf(hooks.received.find(isReal)?.body));
});

test("[GD4] the pages load nothing from elsewhere, and the server never sends a key in them", async () => {
  for (const path of ["/docs", ...Object.keys(GUIDES).map((name) => `/docs/${name}`)]) {
    const response = await fetch(server.url + path, {
      headers: { Authorization: `Bearer ${server.key}` },
    });
    assert.equal(response.status, 200, path);
    const html = await response.text();
    assert.ok(!html.includes(server.key) && html.length < 32 * 1024, path);
    assert.ok(html.includes("YOUR_A"), path);
    for (const [, address = ""] of html.matchAll(/<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"/g)) {
      assert.match(address, /^\/docs\/|^data:,$/, `${path} loads ${address}`);
    }
  }
  assert.equal((await fetch(`${server.url}/docs/reference`)).status, 200);
  assert.equal((await fetch(`${server.url}/docs/none`)).status, 404);
});

test("[GD5] [UI150] signed in with a key, the examples contain it, otherwise a hint; every width, both themes, and in forced colours the chosen language", { skip }, async () => {
  assert.ok(browser);
  const member = await memberOf(server, "owner", server.key);
  await withDashboard(async ({ page, look }) => {
    const shown = page.locator(".example:not([hidden]) code").first();
    await page.goto(`${server.url}/docs/first-reply`);
    await page.getByText("The examples have the key").waitFor();
    await page.getByRole("button", { name: "Python" }).click();
    const python = examplesOf("first-reply").find(({ lang }) => lang === "py")?.text ?? assert.fail();
    assert.equal(await shown.textContent(), `${filled(python)}\n`);
    await look();
    // [UI150]
    await page.emulateMedia({ forcedColors: "active" });
    const [chosen, other] = await Promise.all(["Python", "curl"].map((name) =>
      page.getByRole("button", { name }).first()
        .evaluate((button) => getComputedStyle(button).color)));
    assert.notEqual(chosen, other);
    await page.emulateMedia({ forcedColors: null });
    // The language goes along; the assistant is chosen.
    await page.getByRole("link", { name: "Stream a reply" }).click();
    await page.getByLabel("Assistant in the examples").selectOption({ label: "Keeper" });
    assert.ok((await shown.textContent())?.includes(assistant));
    assert.ok((await shown.textContent())?.startsWith("import json"));
    await look();
    for (const path of ["/docs", "/docs/webhooks"]) {
      await page.goto(server.url + path);
      await page.getByText("The examples have the key").waitFor();
      await look();
    }
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${server.url}/docs`);
  await page.getByText("Sign in with an API key").waitFor();
  assert.ok((await page.locator("code").allTextContents()).some((text) => text.includes("YOUR_API_KEY")));
  await page.request.post(`${server.url}/api/auth/login`, {
    data: { email: member.email, password: PASSWORD, remember: false },
  });
  await page.reload();
  await page.getByText("You are signed in without a key").waitFor();
  assert.ok(!(await page.content()).includes(server.key));
  // The tag of the widget's guide, on a page of another site.
  const tag = examplesOf("widget").find(({ lang }) => lang === "html")?.text ?? assert.fail();
  shop.answer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<!doctype html><title>Site</title><h1>Site</h1>${filled(tag)}`);
  });
  await page.goto(shop.url);
  await page.locator("assistant-chat").getByRole("button").first().waitFor();
  await context.close();
});
