// What operators meet at the edges of a process: metrics, a start that fails, no room for uploads.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync,
} from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import Database from "better-sqlite3";
import { createApp } from "#app/app.ts";
import { loadModels } from "#app/models.ts";
import { readConfig } from "#config/config.ts";
import { createLogger } from "#core/logger.ts";
import { programFile } from "#core/program.ts";
import { createSystem } from "#core/system.ts";
import { openConfigured } from "#storage/engines/open.ts";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { ask } from "#support/api.ts";
import { aboutTheFile } from "#support/engines.ts";
import { CLI, MAIN, parley, startProcess, type Running } from "#support/process.ts";
import { startTestServer, testDataDir } from "#support/server.ts";

test("[OP149] metrics need this machine or the token, strangers add no series", async () => {
  const server = await startTestServer();
  const { registry } = server.app.features.metrics;
  const read = (url: string, headers = {}) => fetch(`${url}/metrics`, { headers });
  assert.equal((await read(server.url)).status, 200);
  const forwarded = await read(server.url, { "X-Forwarded-For": "192.0.2.1" });
  assert.equal(forwarded.status, 403);
  const series = async () => (await registry.metrics()).split("\n")
    .filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.replace(/ \S+$/, ""));
  const types = [...(await registry.metrics()).matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  const isCounter = ([, , type]: string[]): boolean => type === "counter";
  assert.deepEqual(types.filter((one) => isCounter(one) !== one[1]?.endsWith("_total")), []);
  const before = await series();
  assert.deepEqual(before.filter((line) => !line.startsWith("parley_")), []);
  for (const path of ["/user/me", "/user/calls", "/nothing", "/conversations/x", "/v1/models"]) {
    for (const method of ["GET", "POST", "DELETE"]) await server.call(method, path, { key: "1|wrong" });
  }
  // The garbage collector's kinds come as they happen.
  const isOurs = (line: string): boolean => !line.includes("nodejs_");
  assert.deepEqual((await series()).filter(isOurs), before.filter(isOurs));
  await server.close();
  const token = "a-token-of-metrics";
  const guarded = await startTestServer({ env: { PARLEY_METRICS_TOKEN: token } });
  const bearer = (text: string) => ({ Authorization: `Bearer ${text}` });
  assert.equal((await read(guarded.url)).status, 401);
  assert.equal((await read(guarded.url, bearer("another-token-of-it"))).status, 401);
  assert.equal((await read(guarded.url, bearer(token))).status, 200);
  await guarded.close();
});

/** Until a process that does not end is given up. */
const START_MS = 60_000;

function startOnce(env: Record<string, string>) {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [MAIN], {
    env: { PARLEY_PORT: "0", ...env }, encoding: "utf8", timeout: START_MS,
    killSignal: "SIGKILL",
  });
  return { status, signal, output: `${stdout}${stderr}` };
}

test("[OP150] whatever stops a start is reported in one sentence, exit 69", async () => {
  const dataDir = testDataDir();
  const file = join(dataDir, "file");
  writeFileSync(file, "");
  const unwritable = startOnce({ PARLEY_DATA_DIR: join(file, "below") });
  assert.equal(unwritable.status, 69);
  assert.match(unwritable.output, /^parley: the data folder .* cannot be written: .*PARLEY_DATA_DIR\n$/);
  // No folder can be made there, and Node itself would try for ever.
  const nowhere = startOnce({ PARLEY_DATA_DIR: "/proc/parley/data" });
  assert.equal(nowhere.status, 69);
  assert.match(nowhere.output, /^parley: the data folder \/proc\/parley\/data cannot be written: .*ENOENT.*\n$/);
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const taken = startOnce({
    PARLEY_DATA_DIR: dataDir, PARLEY_PORT: String((other.address() as AddressInfo).port),
  });
  assert.equal(taken.status, 69);
  assert.match(taken.output, /^parley: cannot listen on .*: another program uses the port/m);
  assert.doesNotMatch(taken.output, /^ +at |"stack"/m);
  other.close();
  rmSync(dataDir, { recursive: true });
});

/** What is put into the process before the program is loaded. */
const FAILINGS = {
  "no such package": `import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) {
      if (name === "uWebSockets.js") throw new Error("no such package");
      return next(name, context);
    } });`,
  "no more files": `import { createRequire } from "node:module";
    import { isMainThread } from "node:worker_threads";
    const Database = createRequire(${JSON.stringify(MAIN)})("better-sqlite3");
    if (isMainThread) Database.prototype.loadExtension = () => { throw new Error("no more files"); };`,
};

test("[OP220] a start that fails after the database thread runs exits by itself, with 69", {
  skip: aboutTheFile,
}, () => {
  for (const [why, code] of Object.entries(FAILINGS)) {
    const dataDir = testDataDir();
    const { status, signal, output } = startOnce({
      PARLEY_DATA_DIR: dataDir,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}`,
    });
    assert.deepEqual([status, signal], [69, null], output);
    assert.match(output, new RegExp(`^parley: ${why}$`, "m"));
    rmSync(dataDir, { recursive: true });
  }
});

test("[OP223] an invalid file of texts is named in one sentence, exit 78", () => {
  for (const [folder, text] of [["dashboard-texts", '{ "Save": 1 }'], ["widget-texts", "{ not JSON"]] as const) {
    const dataDir = testDataDir();
    mkdirSync(join(dataDir, folder));
    writeFileSync(join(dataDir, folder, "fi.json"), text);
    const { status, output } = startOnce({ PARLEY_DATA_DIR: dataDir });
    assert.equal(status, 78, output);
    assert.match(output, /^parley: \S+fi\.json (?:must be a JSON object of texts|cannot be read: .*JSON.*)\n$/);
    rmSync(dataDir, { recursive: true });
  }
});

test("[OP243] files of texts, models and plans may begin with a byte order mark, as Windows editors write", () => {
  const dataDir = testDataDir();
  mkdirSync(join(dataDir, "dashboard-texts"), { recursive: true });
  const write = (name: string, text = readFileSync(programFile(`data/${name}`), "utf8")): string => {
    writeFileSync(join(dataDir, name), `\uFEFF${text}`);
    return join(dataDir, name);
  };
  write("dashboard-texts/fi.json", '{ "Save": "Tallenna" }');
  const { status, output } = startOnce({
    PARLEY_DATA_DIR: dataDir,
    PARLEY_MODELS_FILE: write("models.json"), PARLEY_PLANS_FILE: write("plans.json"),
    // What it says last: all of them were read.
    PARLEY_HOST: "192.0.2.1",
  });
  assert.match(output, /^parley: cannot listen on 192\.0\.2\.1/m);
  assert.equal(status, 69, output);
  rmSync(dataDir, { recursive: true });
});

test("[OP244] doctor leaves nothing in an unused data folder, and creates none", () => {
  const dataDir = testDataDir();
  for (const folder of [join(dataDir, "none", "yet"), dataDir]) {
    const said = execFileSync(process.execPath, [CLI, "doctor"], {
      env: { PARLEY_DATA_DIR: folder }, encoding: "utf8",
    });
    assert.match(said, /^ok +model /m);
    assert.deepEqual(readdirSync(dataDir), []);
  }
  rmSync(dataDir, { recursive: true });
});

test("[OP200] a service that may not read the machine's addresses says what it lacks, exit 78", () => {
  const dataDir = testDataDir();
  // As systemd's RestrictAddressFamilies= has it without AF_NETLINK.
  const refusing = `import os from "node:os"; import { syncBuiltinESMExports } from "node:module";
    os.networkInterfaces = () => { throw new Error("uv_interface_addresses returned 97"); };
    syncBuiltinESMExports();`;
  const { status, output } = startOnce({
    PARLEY_DATA_DIR: dataDir,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(refusing)}`,
  });
  assert.equal(status, 78, output);
  assert.match(output, /^parley: the addresses of this machine cannot be read: .*AF_NETLINK/m);
  rmSync(dataDir, { recursive: true });
});

test("[OP202] a different Node than the bundled one says how to run the bundled one, exit 78", () => {
  const other = `Object.defineProperty(process, "versions",
    { value: { ...process.versions, node: "24.1.0" } });`;
  const { status, output } = startOnce({
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(other)}`,
  });
  assert.equal(status, 78, output);
  const [, command = ""] = /^Parley needs Node 22, .* came with it: (\S+ \S+)\n$/.exec(output) ?? [];
  const [node = "", program] = command.split(" ");
  assert.equal(program, MAIN, output);
  assert.match(execFileSync(node, ["--version"], { encoding: "utf8" }), /^v22\./);
});

test("[OP325] under Yarn's Plug'n'Play, where documents fail, a start says the fix, exit 78", () => {
  const dataDir = testDataDir();
  const pnp = `Object.defineProperty(process, "versions",
    { value: { ...process.versions, pnp: "3" } });`;
  const { status, output } = startOnce({
    PARLEY_DATA_DIR: dataDir,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(pnp)}`,
  });
  assert.equal(status, 78, output);
  assert.match(output, /^parley: .* Plug'n'Play: put `nodeLinker: node-modules` into .*\n$/);
  rmSync(dataDir, { recursive: true });
});

test("[OP207] a newer version's database is reported in one sentence, exit 78", { skip: aboutTheFile }, () => {
  const dataDir = testDataDir();
  const db = new Database(databasePath(dataDir));
  db.pragma("user_version = 9999");
  db.close();
  const { status, output } = startOnce({ PARLEY_DATA_DIR: dataDir });
  assert.equal(status, 78, output);
  assert.match(output, /^parley: the database has schema 9999, newer than .*: use a newer Parley, or restore a backup .*\n$/);
  rmSync(dataDir, { recursive: true });
});

test("[OP292] after an update the older version runs from the earlier backup", { skip: aboutTheFile }, async () => {
  const dataDir = testDataDir();
  const backup = join(dataDir, "before.tar");
  const stop = async ({ process: child }: Running): Promise<void> => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    assert.deepEqual(await exited, [0, null]);
  };
  const older = await startProcess(dataDir);
  assert.equal((await parley(dataDir, ["backup", backup])).code, 0);
  await stop(older);
  const db = new Database(databasePath(dataDir));
  db.exec("DROP TABLE webhook_deliveries");
  db.pragma("user_version = 9999");
  db.close();
  assert.match(startOnce({ PARLEY_DATA_DIR: dataDir }).output, /newer than .* or restore a backup/);
  const restored = await parley(dataDir, ["restore", backup, "--force"]);
  assert.match(restored.out, /^restored .*; the database it replaced is .*parley\.db\.before-restore-/);
  const again = await startProcess(dataDir);
  const me = await fetch(`${again.url}/api/user/me`, { headers: { Authorization: `Bearer ${older.key}` } });
  assert.equal(me.status, 200);
  await stop(again);
  assert.match((await parley(dataDir, ["ledger", "verify"])).out, /^the ledger is correct/);
  rmSync(dataDir, { recursive: true });
});

test("[OP201] a data folder behind a dangling link, or below a file, is reported as that", () => {
  const dataDir = testDataDir();
  const link = join(dataDir, "link");
  symlinkSync(join(dataDir, "not-mounted"), link);
  const linked = startOnce({ PARLEY_DATA_DIR: link });
  assert.equal(linked.status, 69);
  assert.match(linked.output, /cannot create the folder \S+link: it is a link whose target does not exist; see PARLEY_DATA_DIR\n$/);
  writeFileSync(join(dataDir, "file"), "");
  const below = startOnce({ PARLEY_DATA_DIR: join(dataDir, "file", "below") });
  assert.match(below.output, /cannot create the folder \S+file: a file with this name exists; see PARLEY_DATA_DIR\n$/);
  rmSync(dataDir, { recursive: true });
});

test("[OP177][OP178] at a terminal every start says where the dashboard is; an absent model server gets a warning", {
  skip: spawnSync("script", ["--version"]).status !== 0 && "no program that makes a terminal",
}, async () => {
  const dataDir = testDataDir();
  const gone = createServer().listen(0, "127.0.0.1");
  await once(gone, "listening");
  const { port } = gone.address() as AddressInfo;
  gone.close();
  const command = `'${process.execPath}' '${MAIN}'`;
  const terminal = spawn("script", ["-qfec", command, "/dev/null"], {
    env: {
      PATH: process.env.PATH, PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off",
      PARLEY_MODEL_URL: `http://127.0.0.1:${port}/v1`,
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(terminal, "exit");
  let said = "";
  for await (const line of createInterface({ input: terminal.stdout })) {
    said += `${line}\n`;
    // As somebody at the terminal stops it.
    if (line.includes('"msg":"the model server')) terminal.stdin.end("\u0003");
  }
  await exited;
  const { url } = JSON.parse(/^\{.*"listening".*$/m.exec(said)?.[0] ?? "") as { url: string };
  assert.ok(said.includes(`  Parley is running: ${url}/\n`), said);
  assert.match(said, /npm run -s parley -- key create/);
  const warning = JSON.parse(/^\{.*"the model server.*$/m.exec(said)?.[0] ?? "") as object;
  assert.partialDeepStrictEqual(warning, {
    level: "warn", setting: "PARLEY_MODEL_URL", server: `http://127.0.0.1:${port}`,
    detail: `does not answer: connect ECONNREFUSED 127.0.0.1:${port}`,
  });
  rmSync(dataDir, { recursive: true });
});

test("[OP152] a failed start ends the process, whatever was open by then", () => {
  const dataDir = testDataDir();
  mkdirSync(dataDir, { recursive: true });
  // The database is open before the folders are made.
  writeFileSync(join(dataDir, "scratch"), "");
  const { status, output, signal } = startOnce({ PARLEY_DATA_DIR: dataDir });
  assert.deepEqual([status, signal], [69, null], output);
  assert.match(output, /^parley: cannot create the folder .*: a file with this name exists/m);
  rmSync(dataDir, { recursive: true });
});

test("[OP168] what was opened is closed when a later part of the start fails", async () => {
  const dataDir = testDataDir();
  writeFileSync(join(dataDir, "scratch"), "");
  const outcome = readConfig({
    PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_LOG_LEVEL: "silent",
  });
  assert.ok(outcome.kind === "ok");
  const { config } = outcome;
  const models = loadModels(config);
  assert.ok(models.kind === "ok");
  const opening = openConfigured(config, "thread");
  const options = { config, models: models.entries, log: createLogger("silent"), system: createSystem() };
  await assert.rejects(createApp(options, opening), /cannot create the folder .*: a file with this name exists/);
  const storage = await opening;
  await assert.rejects(storage.accounts.listAccounts());
  rmSync(dataDir, { recursive: true });
});

/** A process, and where documents of a knowledgebase of its account are. */
async function startWithKnowledgebase(dataDir: string) {
  const { process: child, url, key } = await startProcess(dataDir);
  const headers = { Authorization: `Bearer ${key}` };
  const { data } = await ask({ url, key }, "/user/knowledgebases", { name: "K" });
  return {
    child, url, headers, documents: `${url}/api/user/knowledgebases/${data.id}/documents`,
  };
}

test("[OP151] an upload the disk has no room for answers 503 and the server lives", async () => {
  const dataDir = testDataDir();
  const { child, url, headers, documents } = await startWithKnowledgebase(dataDir);
  const wal = `${databasePath(dataDir)}-wal`;
  const room = (existsSync(wal) ? statSync(wal).size : 0) + 1_000_000;
  execFileSync("prlimit", ["--pid", String(child.pid), `--fsize=${room}`]);
  const form = new FormData();
  form.set("name", "Long");
  form.set("type", "txt");
  form.set("file", new File(["x".repeat(2 * room)], "long.txt"));
  const refused = await fetch(documents, { method: "POST", headers, body: form });
  assert.equal(refused.status, 503);
  assert.match(await refused.text(), /no room to store/);
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
  rmSync(dataDir, { recursive: true });
});

test("[OP170] a document the database has no room for is refused with the reason, and leaves no file", {
  skip: aboutTheFile,
}, async () => {
  const dataDir = testDataDir();
  const { child, headers, documents } = await startWithKnowledgebase(dataDir);
  const form = new FormData();
  form.set("name", "Short");
  form.set("type", "txt");
  form.set("file", new File(["We open at nine."], "short.txt"));
  const { size } = statSync(`${databasePath(dataDir)}-wal`);
  execFileSync("prlimit", ["--pid", String(child.pid), `--fsize=${size}`]);
  const refused = await fetch(documents, { method: "POST", headers, body: form });
  assert.deepEqual([refused.status, await refused.json()], [500, {
    error: "Failed to create document. Please try again.",
    reason: "The server cannot store anything at the moment.",
  }]);
  const waiting = join(dataDir, "documents");
  assert.deepEqual(existsSync(waiting) ? readdirSync(waiting) : [], []);
  assert.deepEqual((await (await fetch(documents, { headers })).json() as { data: [] }).data, []);
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
  rmSync(dataDir, { recursive: true });
});

test("[OP153] a wrong key for a certificate, a duplicate model and a taken SIP port are one sentence each", async () => {
  const dataDir = testDataDir();
  const [pem, models] = [join(dataDir, "key.pem"), join(dataDir, "models.json")];
  writeFileSync(pem, "no key");
  const [first] = JSON.parse(readFileSync(programFile("data/models.json"), "utf8")) as object[];
  writeFileSync(models, JSON.stringify([first, first]));
  const other = createServer().listen(0, "0.0.0.0");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const cases: [env: Record<string, string>, status: number, sentence: RegExp][] = [
    [{ PARLEY_TLS_KEY_FILE: pem, PARLEY_TLS_CERT_FILE: pem }, 78,
      /^parley: PARLEY_TLS_KEY_FILE and PARLEY_TLS_CERT_FILE cannot be used together: .+\n$/],
    [{ PARLEY_TLS_KEY_FILE: dataDir, PARLEY_TLS_CERT_FILE: dataDir }, 78, /cannot be used together: EISDIR/],
    [{ PARLEY_MODELS_FILE: models }, 78, /^parley: PARLEY_MODELS_FILE gives an id to two models\n$/],
    [{ PARLEY_SIP_PORT: String(port) }, 69,
      /^parley: cannot listen for SIP on 0\.0\.0\.0:\d+: .*EADDRINUSE.*PARLEY_SIP_PORT\n$/m],
    [{ PARLEY_FILES_URL: `file://${pem}` }, 78, /^parley: PARLEY_FILES_URL names a folder/],
    [{ PARLEY_PUBLIC_URL: "https://x.example/?a=b" }, 78, /^parley: PARLEY_PUBLIC_URL must be a URL without/],
  ];
  for (const [env, status, sentence] of cases) {
    const ran = startOnce({ PARLEY_DATA_DIR: join(dataDir, "data"), ...env });
    assert.equal(ran.status, status, ran.output);
    assert.match(ran.output, sentence);
  }
  other.close();
  rmSync(dataDir, { recursive: true });
});
