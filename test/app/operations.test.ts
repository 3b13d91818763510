// Running the server: health, documents, a disk that fails, two servers on one folder.
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import fs, { readFileSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { watchOpenFiles } from "#app/open-files.ts";
import { createLogger } from "#core/logger.ts";
import { ask } from "#support/api.ts";
import { askUntil } from "#support/asking.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { aboutTheFile, isOverPostgres } from "#support/engines.ts";
import { freePorts } from "#support/free-ports.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { engineEnv, MAIN, startProcess } from "#support/process.ts";
import { startTestServer, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const withoutStrace = spawnSync("strace", ["-o", "/dev/null", "true"]).status !== 0
  && "no strace that may look on";

test("[OP1] health, metrics, the OpenAPI document and its viewer answer", async () => {
  const server = await startTestServer();
  const get = (path: string) => fetch(server.url + path);
  for (const path of ["/livez", "/readyz"]) assert.equal((await get(path)).status, 200, path);
  const metrics = await (await get("/metrics")).text();
  assert.match(metrics, /parley_http_request_duration_seconds/);
  const lease = isOverPostgres ? [] : ["lease_seconds +Inf"];
  for (const gauge of [...lease, "nodes 1", "nodes_draining 0", "lease_clock 1",
    'waiting{what="documents"} 0', 'waiting{what="webhooks"} 0']) {
    assert.ok(metrics.includes(`\nparley_${gauge}\n`), gauge);
  }
  const document = (await (await get("/openapi.json")).json()) as {
    openapi: string;
    paths: Record<string, object>;
  };
  assert.equal(document.openapi, "3.1.0");
  assert.ok(document.paths["/conversations/{uuid}/messages"]);
  for (const path of ["/docs", "/docs/reference", "/docs/start.js", "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js"]) {
    assert.equal((await get(path)).status, 200, path);
  }
  await server.close();
});

test("[OP179] process metrics are collected from the first scrape on, which already has them", async () => {
  const server = await startTestServer();
  const lag = "parley_nodejs_eventloop_lag_mean_seconds";
  assert.equal(server.app.features.metrics.registry.getSingleMetric(lag), undefined);
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const [, seconds] = new RegExp(`^${lag} (\\S+)$`, "m").exec(text) ?? [];
  assert.ok(Number(seconds) > 0 && Number(seconds) < 60, text);
  await server.close();
});

test("[OP206] a sandbox that forbids opening files is not taken for running out of file descriptors", () => {
  const { openSync } = fs;
  fs.openSync = () => {
    throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
  };
  syncBuiltinESMExports();
  try {
    let stops = 0;
    const system = createManualSystem();
    const server = {
      isListening: () => true, stopListening: () => void (stops += 1), listenAgain: () => true,
    };
    const watch = watchOpenFiles({ server, system, log: createLogger("silent") });
    system.advance(60_000);
    watch.cancel();
    assert.equal(stops, 0);
  } finally {
    fs.openSync = openSync;
    syncBuiltinESMExports();
  }
});

test("[OP180] a server out of file descriptors says so, stops accepting, and resumes once some are free", {
  skip: process.platform !== "linux" && "no prlimit",
}, async (context) => {
  const server = await startProcess(
    testDataDir(), {}, ["prlimit", "--nofile=80:80", "--"]);
  context.after(() => server.process.kill("SIGKILL"));
  let said = "";
  server.process.stdout?.on("data", (bytes: Buffer) => void (said += bytes.toString()));
  const sockets: Socket[] = [];
  const deadline = AbortSignal.timeout(30_000);
  const isTaken = async (): Promise<boolean> => {
    deadline.throwIfAborted();
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    // Those that wait in the system's line are cut when the server listens no more.
    socket.on("error", () => undefined);
    sockets.push(socket);
    return once(socket, "connect").then(() => true, () => false);
  };
  while (await isTaken()) if (sockets.length > 80) await delay(50);
  await askUntil(() => said, (text) => /"open_files_max":80.*raise `ulimit -n`/.test(text));
  for (const socket of sockets) socket.destroy();
  while (!await isTaken()) await delay(50);
  assert.equal((await fetch(`${server.url}/livez`)).status, 200);
  for (const socket of sockets) socket.destroy();
});

/** From now on the system says that the disk did not take what it was to keep (EIO). */
async function failSyncs(context: TestContext, { pid }: ChildProcess): Promise<void> {
  const injector = spawn("strace", [
    "-f", "-p", String(pid), "-e", "trace=fsync,fdatasync",
    "-e", "inject=fsync,fdatasync:error=EIO", "-o", "/dev/null",
  ], { stdio: ["ignore", "ignore", "pipe"] });
  context.after(() => injector.kill());
  for await (const line of createInterface({ input: injector.stderr })) {
    if (line.includes("attached")) break;
  }
  injector.stderr.resume();
}

test("[OP2] when the disk fails a commit nothing is acknowledged and charging stops", {
  skip: aboutTheFile || withoutStrace,
}, async (context) => {
  const dataDir = testDataDir();
  const child = spawn(process.execPath, [MAIN], {
    env: { PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_RATE_LIMITS: "off" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  context.after(() => child.kill("SIGKILL"));
  let send = "";
  let key = "";
  let url = "";
  for await (const line of createInterface({ input: child.stdout })) {
    send ||= /(http\S+\/messages)/.exec(line)?.[1] ?? "";
    key ||= /API key +(\S+)/.exec(line)?.[1] ?? "";
    if (line.includes('"msg":"listening"')) ({ url } = JSON.parse(line) as { url: string });
    if (url !== "") break;
  }
  child.stdout.resume();
  const post = () =>
    fetch(send, { method: "POST", body: JSON.stringify({ message: "When are you open?" }) });
  assert.equal((await post()).status, 200);
  await failSyncs(context, child);
  for (let count = 0; count < 2; count += 1) assert.equal((await post()).status, 503);
  assert.equal((await fetch(`${url}/readyz`)).status, 503);
  assert.equal((await ask({ url, key }, "/user/me")).total_balance, 4.99);
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
  assert.deepEqual(await auditBeside(dataDir), { accounts: 1, entries: 2, problems: [] });
  rmSync(dataDir, { recursive: true });
});

test("[OP3] a second server on the same folder is refused; SIGTERM ends the first with 0", async () => {
  const dataDir = testDataDir();
  const env = { PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "0" };
  const first = spawn(process.execPath, [MAIN], { env, stdio: ["ignore", "pipe", "ignore"] });
  await once(first.stdout, "data");
  const second = spawn(process.execPath, [MAIN], { env, stdio: "ignore" });
  assert.deepEqual(await once(second, "exit"), [69, null]);
  const exited = once(first, "exit");
  first.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
  rmSync(dataDir, { recursive: true });
});

test("[OP4] the lock file names every optional package it needs and no install script", () => {
  const path = join(import.meta.dirname, "../../package-lock.json");
  const text = readFileSync(path, "utf8");
  const { packages } = JSON.parse(text) as {
    packages: Record<string, { optionalDependencies?: object; hasInstallScript?: boolean }>;
  };
  for (const [name, entry] of Object.entries(packages)) {
    // Two bring their binaries as optional packages, and their scripts are for where none fits;
    // those of the others, for tests alone, only say something.
    const known = ["koffi", "esbuild", "@google/genai", "protobufjs"];
    const isKnown = known.includes(name.replace("node_modules/", ""));
    if (!isKnown) assert.notEqual(entry.hasInstallScript, true, name);
    for (const optional of Object.keys(entry.optionalDependencies ?? {})) {
      assert.ok(packages[`node_modules/${optional}`], `${optional} of ${name}`);
    }
  }
  // A folder of this repository is the only place that is named.
  assert.doesNotMatch(text, /"resolved": "(?!scripts\/bundled")/, "no registry hosts");
  // npm would run node-gyp for any package with a binding.gyp, whatever the lock file says.
  assert.match(readFileSync(join(import.meta.dirname, "../../.npmrc"), "utf8"), /^ignore-scripts=true$/m);
});

test("[OP183] SIGUSR1 opens no debugger", async () => {
  const port = await freePorts();
  const dataDir = testDataDir();
  const { process: child, url } = await startProcess(
    dataDir, { NODE_OPTIONS: `--inspect-port=${port}` });
  child.kill("SIGUSR1");
  for (let look = 0; look < 50; look += 1) {
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    await assert.rejects(fetch(`http://127.0.0.1:${port}/json`));
  }
  child.kill("SIGTERM");
  await once(child, "exit");
  rmSync(dataDir, { recursive: true });
});

test("[OP5] [OP181] SIGTERM, also twice at once, lets a running reply finish, refuses new ones and tells watchers to reconnect", async () => {
  const hold = Promise.withResolvers<void>();
  const model = await startScriptedModel();
  model.script(() => ({ tokens: ["one ", "two"], hold: hold.promise, holdAfter: 1 }));
  const dataDir = testDataDir();
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_MODEL_URL: model.url,
      ...await engineEnv(dataDir),
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const lineWith = async (text: string): Promise<string> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`no line with ${text}`);
      if (value.includes(text)) return value;
    }
  };
  const send = /(http\S+\/messages)/.exec(await lineWith("/messages"))?.[1] ?? "";
  await lineWith('"msg":"listening"');
  const kept = await fetch(send.replace("/messages", "/stream"));
  const post = () => fetch(send, { method: "POST", body: JSON.stringify({ message: "Hello" }) });
  const answered = post();
  await model.waitFor("requests");
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await lineWith('"msg":"stopping"');
  child.kill("SIGTERM");
  await assert.rejects(post(), "new connections are refused");
  hold.resolve();
  assert.equal(((await (await answered).json()) as { message: string }).message, "one two");
  assert.match(await kept.text(), /two.*event: reconnect/s);
  assert.deepEqual(await exited, [0, null]);
  assert.deepEqual(await auditBeside(dataDir), { accounts: 1, entries: 2, problems: [] });
  await model.close();
  rmSync(dataDir, { recursive: true });
});
