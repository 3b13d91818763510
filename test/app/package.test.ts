// The package as somebody else installs it: what `npm pack` makes, unpacked into an empty folder
// beside its dependencies, which the long form installs from the registry and the short form links.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { ask } from "#support/api.ts";
import { flow, makePdf } from "#support/documents/documents.ts";
import { uploadFile, whenRead } from "#support/documents/knowledge.ts";
import { assertReplies } from "#support/first-reply.ts";
import type * as Client from "#client/client.ts";
import { entryOf } from "#scripts/entry.js";
import { trimPackages } from "#cli/trimming.js";
import { IS_PROOF } from "#support/proof.ts";

const ROOT = join(import.meta.dirname, "../..");
/** It is 102 where this was written; a library that came in with everything adds ten. */
const RESIDENT_MB_MAX = 115;
const run = promisify(execFile);
interface Manifest {
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
}

const folder = mkdtempSync(join(tmpdir(), "parley-package-"));
const installed = join(folder, "node_modules/parley");

before(async () => {
  // `npm test` has built before. Building now would take dist/ from tests that run beside this.
  if (!entryOf("main").startsWith(join(ROOT, "dist"))) await run("npm", ["run", "build"], { cwd: ROOT });
  await run("npm", ["pack", "--pack-destination", folder], { cwd: ROOT });
  const [tarball = ""] = readdirSync(folder).filter((file) => file.endsWith(".tgz"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  if (IS_PROOF) {
    await run("npm", ["install", "--no-audit", "--no-fund", `./${tarball}`], { cwd: folder });
    return;
  }
  mkdirSync(installed, { recursive: true });
  await run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", installed]);
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Manifest;
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    const from = join(ROOT, "node_modules", name);
    if (!existsSync(from)) continue;
    mkdirSync(join(folder, "node_modules", name, ".."), { recursive: true });
    symlinkSync(from, join(folder, "node_modules", name));
  }
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** A process of its own does, whose library asks for its other half by name. */
async function assertReadsPdf(url: string): Promise<void> {
  const { stdout } = await run(process.execPath, [
    join(installed, "dist/cli.js"), "account", "create", "--name", "A", "--json",
  ], { cwd: folder, env: { PATH: process.env.PATH, PARLEY_DATA_DIR: join(folder, "data") } });
  const { api_key: key } = JSON.parse(stdout) as { api_key: string };
  const { data: { id } } = await ask({ url, key }, "/user/knowledgebases", { name: "Manual" });
  const document = await uploadFile({ url }, id, makePdf([flow(["Open at nine."])]), { type: "pdf", key });
  const { status } = await whenRead({ url }, document, { key });
  assert.equal(status, "active");
}

test("[OP160][DB645][OP222] the package works: an assistant answers, pages come built, no source is included", async () => {
  const server = spawn(process.execPath, [join(installed, "dist/cli.js"), "serve"], {
    cwd: folder,
    env: { PATH: process.env.PATH, PARLEY_PORT: "0", PARLEY_DATA_DIR: join(folder, "data") },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(server, "exit");
  try {
    let said = "";
    let assistant = "";
    let listening = { url: "", program: "" };
    for await (const line of createInterface({ input: server.stdout })) {
      said += line;
      assistant ||= /assistant +(\S+)/.exec(line)?.[1] ?? "";
      if (!line.includes('"msg":"listening"')) continue;
      listening = JSON.parse(line) as typeof listening;
      break;
    }
    server.stdout.resume();
    const { url, program } = listening;
    assert.equal(program, "dist");
    // A program of somebody else would use the package's own client.
    const { createParley } = await import(join(installed, "dist/client.js")) as typeof Client;
    await assertReplies(createParley({ baseUrl: `${url}/api` }), assistant);
    for (const [path, type] of [
      ["/", "text/html"], ["/widget.js", "text/javascript"], ["/widget-call.js", "text/javascript"],
      ["/dashboard/dashboard.js", "text/javascript"], ["/dashboard/dashboard.css", "text/css"],
      ["/talk/talk.js", "text/javascript"], ["/docs", "text/html"], ["/docs/guides.js", "text/javascript"],
      ["/docs/swagger-ui-bundle.js", "text/javascript"], ["/openapi.json", "application/json"],
    ] as const) {
      const page = await fetch(`${url}${path}`);
      assert.equal(page.status, 200, path);
      assert.match(page.headers.get("content-type") ?? "", new RegExp(type), path);
      assert.notEqual(await page.text(), "", path);
    }
    // Where there are no npm scripts.
    assert.match(said, /Point it at a real model: PARLEY_MODEL_URL=\S+ npx parley serve/);
    assert.match(await (await fetch(`${url}/dashboard/texts.js`)).text(), /"command":"npx parley"/);
    await assertReadsPdf(url);
  } finally {
    server.kill("SIGTERM");
  }
  assert.deepEqual(await exited, [0, null]);
  const sources = readdirSync(installed, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".d.ts"));
  assert.deepEqual(sources, []);
});

test("[OP166] the idle package stays within its memory limit", {
  skip: process.platform !== "linux",
}, async () => {
  // On the folder that is there by now, as restarts are.
  const server = spawn(
    process.execPath, ["--single-threaded-gc", join(installed, "dist/main.js")], {
      cwd: folder,
      env: { PATH: process.env.PATH, PARLEY_PORT: "0", PARLEY_DATA_DIR: join(folder, "data") },
      stdio: ["ignore", "pipe", "inherit"],
    });
  const exited = once(server, "exit");
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.includes('"msg":"listening"')) break;
  }
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  const residentMb = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
  server.kill("SIGTERM");
  await exited;
  assert.ok(residentMb <= RESIDENT_MB_MAX, `${residentMb} MB`);
});

test("[OP161] the package's command has every subcommand, and its threads and processes start", async () => {
  const parley = async (...args: string[]) => (await run(
    process.execPath, [join(installed, "dist/cli.js"), ...args],
    { cwd: folder, env: { PATH: process.env.PATH, PARLEY_DATA_DIR: join(folder, "data-2") } })).stdout;
  const own = (await run(process.execPath, [join(ROOT, "src/cli.ts"), "--help"])).stdout;
  assert.equal(await parley("--help"), own);
  const account = JSON.parse(await parley("account", "create", "--name", "A", "--json")) as object;
  assert.ok("api_key" in account, JSON.stringify(account));
  assert.match(await parley("ledger", "verify"), /./);
});

test("[OP162] `parley/client` has types for TypeScript and runs as JavaScript", async () => {
  writeFileSync(join(folder, "plain.js"), `
    import { createParley } from "parley/client";
    const parley = createParley({ baseUrl: "http://127.0.0.1:9/api", apiKey: "1|x" });
    console.log(typeof parley.GET, typeof parley.send);
  `);
  const { stdout } = await run(process.execPath, ["plain.js"], { cwd: folder });
  assert.equal(stdout.trim(), "function function");
  writeFileSync(join(folder, "typed.ts"), `
    import { createParley } from "parley/client";
    const parley = createParley({ baseUrl: "http://127.0.0.1:9/api", apiKey: "1|x" });
    export const { data } = await parley.GET("/user/me");
    export const balance: number | undefined = data?.total_balance;
    // @ts-expect-error: there is no such route
    await parley.GET("/user/nothing");
  `);
  await run(process.execPath, [
    join(ROOT, "node_modules/@typescript/native/bin/tsc"), "--noEmit", "--strict", "--target", "es2022",
    "--module", "nodenext", "--lib", "es2022,dom,dom.iterable,esnext.disposable",
    "--allowJs", "--checkJs", "plain.js", "typed.ts",
  ], { cwd: folder }).catch((error: { stdout: string }) => assert.fail(error.stdout));
});

test("[OP167] parley trim keeps of packages only what this machine loads, once, and they still load", async () => {
  const modules = mkdtempSync(join(folder, "trimmed-"));
  for (const path of ["uWebSockets.js/dist/bin", "better-sqlite3"]) {
    cpSync(join(ROOT, "node_modules", path), join(modules, path), { recursive: true });
  }
  assert.ok(trimPackages(modules).length > 10);
  const { modules: abi } = process.versions;
  assert.deepEqual(readdirSync(join(modules, "uWebSockets.js/dist/bin")),
    [`uws_${process.platform}_${process.arch}_${abi}.node`]);
  const { default: Sqlite } = await import(join(modules, "better-sqlite3/lib/index.js")) as
    { default: new (path: string) => { close(): void } };
  new Sqlite(":memory:").close();
  assert.deepEqual(trimPackages(modules), []);
});

test("[CL350] a clone that was never built says which Node it needs where Node cannot run its sources", () => {
  const clone = mkdtempSync(join(folder, "unbuilt-"));
  for (const path of ["package.json", "scripts", "src/cli.ts", "src/main.ts", "src/require-node.js", "src/cli/trimming.js"]) {
    cpSync(join(ROOT, path), join(clone, path), { recursive: true });
  }
  const earlier = `Object.defineProperty(process, "versions",
    { value: { ...process.versions, node: "20.20.2" } });`;
  for (const script of ["start", "parley"]) {
    const { status, stderr } = spawnSync(process.execPath, [
      "--no-experimental-strip-types", `--import=data:text/javascript,${encodeURIComponent(earlier)}`,
      join(clone, `scripts/${script}.js`),
    ], { encoding: "utf8" });
    assert.match(stderr, /^Parley needs Node 22, this is v\S+\. [^\n]+\n$/, script);
    assert.equal(status, 78, script);
  }
});

test("[OP221] a read-only clone is not trimmed, without a message; other failures are reported", async () => {
  const clone = mkdtempSync(join(folder, "clone-"));
  for (const path of ["package.json", "scripts/trim.js", "src/cli/trimming.js", "node_modules/uWebSockets.js/dist/bin"]) {
    cpSync(join(ROOT, path), join(clone, path), { recursive: true });
  }
  const program = (code: string): string => `import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    fs.rmSync = () => { throw Object.assign(new Error("${code}: rm"), { code: "${code}" }); };
    syncBuiltinESMExports();
    (await import(${JSON.stringify(join(clone, "scripts/trim.js"))})).trim();`;
  const saidOf = async (code: string): Promise<string> =>
    (await run(process.execPath, ["--input-type=module", "-e", program(code)])).stderr;
  for (const code of ["EROFS", "EACCES", "EPERM"]) assert.equal(await saidOf(code), "", code);
  assert.equal(await saidOf("EIO"), "parley: node_modules was not trimmed: EIO: rm\n");
});
