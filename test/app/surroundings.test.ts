// The real process in surroundings that operators have: a log whose disk is full, a terminal that
// is closed, a container that asks whether it is alive.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync,
} from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { askUntil } from "#support/asking.ts";
import { aboutTheFile } from "#support/engines.ts";
import { freePorts } from "#support/free-ports.ts";
import { CLI, MAIN, parley, startProcess } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";
import { selfSignedCertificate } from "#support/vendors/realtime-server.ts";

/** More than the database has. */
const LOG_BYTES = 64 * 1024 * 1024;

const statusOf = (url: string): Promise<number> =>
  fetch(url).then(({ status }) => status, () => 0);

test("[OP290] a log that is full blocks nothing, and gets its lines once there is room", {
  skip: spawnSync("prlimit", ["--version"]).status !== 0 && "no program that bounds files",
}, async () => {
  for (const program of [[MAIN], [CLI, "serve"]]) {
    const dataDir = testDataDir();
    const path = join(dataDir, "server.log");
    const log = openSync(path, "a");
    truncateSync(path, LOG_BYTES);
    const port = String(await freePorts());
    const bound = `--fsize=${LOG_BYTES}:unlimited`;
    const server = spawn("prlimit", [bound, process.execPath, ...program], {
      // A setting that nobody knows is said on the other stream.
      env: { PARLEY_PORT: port, PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "on", PARLEY_MODLE_URL: "" },
      stdio: ["ignore", log, log],
    });
    const exited = once(server, "exit");
    // A start that takes long lives before it is ready, and has written nothing yet.
    await askUntil(() => statusOf(`http://127.0.0.1:${port}/readyz`), (status) => status === 200);
    spawnSync("prlimit", [`--pid=${server.pid}`, "--fsize=unlimited:unlimited"]);
    server.kill("SIGTERM");
    assert.deepEqual(await exited, [0, null]);
    const lines = readFileSync(path).subarray(LOG_BYTES).toString().trim().split("\n");
    const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
    assert.deepEqual(messages, ["listening", "stopping", "stopped"]);
    closeSync(log);
    rmSync(dataDir, { recursive: true });
  }
});

test("[OP329] a defect ends the process even when its log has no room", {
  skip: spawnSync("prlimit", ["--version"]).status !== 0 && "no program that bounds files",
}, () => {
  const dataDir = testDataDir();
  const path = join(dataDir, "server.log");
  const log = openSync(path, "a");
  truncateSync(path, 4096);
  const defect = `import { createLogger } from ${JSON.stringify(import.meta.resolve("#core/logger.ts"))};
    createLogger("info").fatal("defect");
    process.exit(1);`;
  const { status } = spawnSync("prlimit", [
    "--fsize=4096", process.execPath, "--input-type=module", "-e", defect,
  ], { stdio: ["ignore", log, "inherit"], timeout: 20_000 });
  assert.equal(status, 1);
  closeSync(log);
  rmSync(dataDir, { recursive: true });
});

test("[OP328] a log nobody reads, as with a stalled journald, blocks nothing", async (context) => {
  const dataDir = testDataDir();
  const server = spawn(process.execPath, [MAIN], {
    env: { PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_TRUSTED_PROXIES: "127.0.0.1" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  context.after(() => server.kill("SIGKILL"));
  const exited = once(server, "exit");
  let said = "";
  while (!/"msg":"listening"/.test(said)) {
    const [bytes] = await once(server.stdout, "data") as [Buffer];
    said += bytes.toString();
  }
  server.stdout.pause();
  const { url } = JSON.parse(/^{.*"listening".*$/m.exec(said)?.[0] ?? "") as { url: string };
  // Each address that knows no key is a line; a pipe and its reader have room for some hundreds.
  for (let block = 0; block < 30; block += 1) {
    await Promise.all(Array.from({ length: 50 }, (_, at) => fetch(`${url}/api/user/me`, {
      headers: { Authorization: "Bearer 1|none", "X-Forwarded-For": `10.0.${block}.${at}` },
      signal: AbortSignal.timeout(20_000),
    })));
  }
  server.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
  rmSync(dataDir, { recursive: true });
});

test("[OP291] a server without a terminal survives SIGHUP, as under nohup", async () => {
  const dataDir = testDataDir();
  const { process: child, url } = await startProcess(dataDir);
  const exited = once(child, "exit");
  child.kill("SIGHUP");
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  child.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
  rmSync(dataDir, { recursive: true });
});

test("[OP302] a command without a terminal survives SIGHUP, as under nohup", {
  skip: aboutTheFile,
}, async () => {
  const dataDir = testDataDir();
  assert.equal((await parley(dataDir, ["account", "create", "--name", "A"])).code, 0);
  const database = createServer().listen(0, "127.0.0.1");
  await once(database, "listening");
  const { port } = database.address() as AddressInfo;
  const moving = spawn(process.execPath, [CLI, "move", "--to", `postgres://a:b@127.0.0.1:${port}/c`], {
    env: { PATH: process.env.PATH, PARLEY_DATA_DIR: dataDir }, stdio: ["ignore", "pipe", "ignore"],
  });
  const exited = once(moving, "exit");
  const [socket] = await once(database, "connection") as [Socket];
  moving.kill("SIGHUP");
  database.close();
  socket.destroy();
  assert.deepEqual(await exited, [1, null]);
  rmSync(dataDir, { recursive: true });
});

test("[OP291] closing its terminal stops a server as SIGTERM does", {
  skip: spawnSync("script", ["--version"]).status !== 0 && "no program that makes a terminal",
}, async () => {
  const dataDir = testDataDir();
  const command = `echo pid $$; exec '${process.execPath}' '${MAIN}'`;
  const terminal = spawn("script", ["-qfec", command, "/dev/null"], {
    env: { PATH: process.env.PATH, PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(terminal, "exit");
  let said = "";
  for await (const line of createInterface({ input: terminal.stdout })) {
    said += `${line}\n`;
    if (line.includes('"msg":"listening"')) process.kill(Number(/^pid (\d+)/m.exec(said)?.[1]), "SIGHUP");
  }
  assert.deepEqual(await exited, [0, null]);
  assert.match(said, /"code":0,"msg":"stopped"/);
  rmSync(dataDir, { recursive: true });
});

test("[OP540] the image's health check finds the server alive, with TLS or without", async () => {
  const { key, cert } = await selfSignedCertificate();
  const image = readFileSync(join(import.meta.dirname, "../../Dockerfile"), "utf8");
  const [, check = ""] = /^HEALTHCHECK .*CMD (\[[^]+?\])\n/m.exec(image) ?? [];
  const [, ...args] = JSON.parse(check.replace("\\\n", "")) as string[];
  for (const isSealed of [false, true]) {
    const dataDir = testDataDir();
    const [keyFile, certFile] = [join(dataDir, "key.pem"), join(dataDir, "cert.pem")];
    writeFileSync(keyFile, key);
    writeFileSync(certFile, cert);
    const tls = isSealed ? { PARLEY_TLS_KEY_FILE: keyFile, PARLEY_TLS_CERT_FILE: certFile } : {};
    const env = { PARLEY_PORT: String(await freePorts()), PARLEY_DATA_DIR: dataDir, ...tls };
    const server = spawn(process.execPath, [MAIN], { env, stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(server, "exit");
    for await (const line of createInterface({ input: server.stdout })) {
      if (!line.includes('"msg":"listening"')) continue;
      const alive = spawnSync(process.execPath, args, { env });
      server.kill("SIGTERM");
      assert.equal(alive.status, 0, `${isSealed}: ${alive.stderr}`);
    }
    await exited;
    assert.equal(spawnSync(process.execPath, args, { env }).status, 1);
    rmSync(dataDir, { recursive: true });
  }
});
