// The README's first command, in a folder with nothing but what is in git: it brings no package of
// development, runs the sources, and what it leaves on the disk has a bound.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { createParley } from "#client/client.ts";
import { assertReplies } from "#support/first-reply.ts";
import { noBrowser, openBrowser } from "#support/pages/browser.ts";
import { startHost } from "#support/pages/widget-page.ts";

const ROOT = join(import.meta.dirname, "../..");
const DISK_MB_MAX = 350;
const folder = mkdtempSync(join(tmpdir(), "parley-light-"));
const readme = readFileSync(join(ROOT, "README.md"), "utf8");
const command = /^```\n(npm .*)\n```$/m.exec(readme)?.[1] ?? "";
const [install = "", start = ""] = command.split(" && ");

/** As in a shell of somebody's own: nothing of the npm that runs the tests but where it fetches. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) =>
    !/^(?:npm_|INIT_CWD|NODE_OPTIONS|NODE_TEST)/i.test(name)
    || /^npm_config_(?:cache|registry|\w*proxy|cafile|userconfig)$/i.test(name))),
  npm_config_prefer_offline: "true",
  PARLEY_PORT: "0",
};

before(async () => {
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
    cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 24,
  }).split("\0").filter((file) => file !== "" && existsSync(join(ROOT, file)));
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(ROOT, file), join(folder, file));
  }
  assert.deepEqual([install, start], ["npm ci --omit=dev", "npm start"]);
  await promisify(execFile)("sh", ["-c", install], { cwd: folder, env });
});
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));

async function serve(
  use: (url: string, key: string, assistant: string) => Promise<void>,
): Promise<void> {
  const server = spawn("sh", ["-c", `exec ${start}`], {
    cwd: folder, env, stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(server, "exit");
  const told: Record<string, string> = {};
  try {
    for await (const line of createInterface({ input: server.stdout })) {
      const [, name = "", value = ""] = /^ +(API key|assistant) +(\S+)/.exec(line) ?? [];
      told[name] ??= value;
      if (!line.includes('"msg":"listening"')) continue;
      Object.assign(told, JSON.parse(line));
      break;
    }
    server.stdout.resume();
    assert.equal(told.program, "sources");
    await use(told.url ?? "", told["API key"] ?? "", told.assistant ?? "");
  } finally {
    server.kill("SIGTERM");
  }
  assert.deepEqual(await exited, [0, null]);
}

/** The pages as joined without a compiler: the dashboard signs in, the chat is answered. */
async function assertPagesWork(url: string, key: string, assistant: string): Promise<void> {
  const browser = await openBrowser("refused");
  const host = await startHost(url);
  try {
    const page = await browser.newPage();
    const errors: unknown[] = [];
    page.on("pageerror", (error) => errors.push(error));
    await page.goto(url);
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Assistants" }).first().click();
    await page.getByRole("heading", { name: "Assistants", level: 1 }).waitFor();
    await page.getByRole("link", { name: "Demo front desk" }).click();
    await page.getByRole("link", { name: "Test chat" }).click();
    await page.getByRole("button", { name: "Start the conversation" }).click();
    await page.locator("[role=log] .markdown p").filter({ hasText: "How can I help?" }).waitFor();
    await page.goto(host.add({ attributes: { "data-assistant": assistant } }));
    await page.locator("assistant-chat").getByRole("button").first().click();
    await page.getByRole("textbox").fill("When are you open?");
    await page.keyboard.press("Enter");
    await page.locator("assistant-chat").getByText("Opening hours").first().waitFor();
    const calls = await page.evaluate(`import("${url}/widget-call.js").then(({ openCall }) => typeof openCall)`);
    assert.equal(calls, "function");
    assert.deepEqual(errors, []);
  } finally {
    await host.close();
    await browser.close();
  }
}

test("[OP163] the README's first command works in an empty clone, without development packages", async () => {
  assert.ok(!existsSync(join(folder, "node_modules/esbuild")), "esbuild is development's");
  assert.ok(!existsSync(join(folder, "node_modules/typescript")), "typescript is development's");
  await serve(async (url, key, assistant) => {
    await assertReplies(createParley({ baseUrl: `${url}/api` }), assistant);
    for (const path of ["/widget.js", "/dashboard/dashboard.js", "/dashboard/dashboard.css", "/docs"]) {
      const page = await fetch(`${url}${path}`);
      assert.equal(page.status, 200, path);
      assert.notEqual(await page.text(), "", path);
    }
    if (!noBrowser()) await assertPagesWork(url, key, assistant);
  });
});

test("[OP164] the command's files on disk have a size limit", (t) => {
  const [mb = ""] = execFileSync("du", ["-sm", folder], { encoding: "utf8" }).split("\t");
  t.diagnostic(`${mb} MB`);
  assert.ok(Number(mb) <= DISK_MB_MAX, `${mb} MB`);
});
