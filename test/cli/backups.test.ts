// A backup is everything a server needs, and a restore is whole or has not happened.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import fs, {
  cpSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync,
  truncateSync, writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { Webhook } from "standardwebhooks";
import { makeArchive, restoreArchive } from "#cli/archive.ts";
import { readConfig } from "#config/config.ts";
import {
  databasePath, lockBackups, lockDataDir, openForInspection,
} from "#storage/engines/sqlite/database.ts";
import { askUntil } from "#support/asking.ts";
import { CLI, json, parley, startProcess } from "#support/process.ts";
import { newAssistant, startTestServer, testDataDir, type TestServer } from "#support/server.ts";
import { newTrunk } from "#support/sip/sip-trunks.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const dirs: string[] = [];
after(() => dirs.forEach((dir) => rmSync(dir, { recursive: true, force: true })));
function newDir(): string {
  const dir = testDataDir();
  dirs.push(dir);
  return dir;
}

const HEADERS = [{ name: "Authorization", value: "Bearer canary" }];

/** One of everything that is sealed. */
async function sealEverything(server: TestServer): Promise<void> {
  const tool = await server.call("POST", "/user/tools", {
    body: {
      name: "look", description: "Looks", endpoint: "https://example.com", method: "POST",
      headers: HEADERS, static_fields: [{ key: "token", value: "canary" }],
    },
  });
  assert.equal(tool.status, 201, JSON.stringify(tool.body));
  await newTrunk(server, { phone_number: "+4930901820999" });
  await newAssistant(server, {
    tools: [{ type: "calendar_integration", calcom_api_key: "cal_canary", calcom_event_slug: "x" }],
  });
}

/** A call that was recorded, on record. */
async function recordedCall(server: TestServer): Promise<{ id: number; recording_url: string }> {
  const { id } = await newAssistant(server, {
    type: "outbound", status: "active", record: true, post_call_evaluation: false,
    endpoint_sensitivity: 1,
  });
  const made = await server.call("POST", "/user/make_call", {
    body: { phone_number: "+15550100042", assistant_id: id },
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const callId = made.body.call_id as number;
  const over = Promise.withResolvers<void>();
  const stop = server.app.features.bus.subscribe(`call:${callId}`, (notice) => {
    if (notice.kind !== "committed") return;
    if (notice.event.type === "transcript_added") void server.call("POST", `/user/calls/${callId}/end`);
    if (notice.event.type === "call_ended") over.resolve();
  });
  await over.promise;
  stop();
  return (await server.call("GET", `/user/calls/${callId}`)).body;
}

const bytesOf = async (url: string): Promise<Buffer> => {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
};

test("[CL29] a restored server opens its secrets, signs as before and plays its recordings", async () => {
  const env = { PARLEY_SPEECH: "loopback", PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
  const first = await startTestServer({ env });
  const receiver = await startWebhookReceiver();
  await sealEverything(first);
  const endpoint = await first.call("POST", "/user/webhook-endpoints", {
    body: { url: receiver.url, events: ["balance_changed"] },
  });
  const call = await recordedCall(first);
  const recording = await bytesOf(call.recording_url);
  assert.ok(recording.length > 1000);
  mkdirSync(join(first.dataDir, "documents"), { recursive: true });
  writeFileSync(join(first.dataDir, "documents", "two.pdf"), "documents");
  const file = join(newDir(), "all.tar.gz");
  const made = await parley(first.dataDir, ["backup", file]);
  assert.equal(made.code, 0, made.err);
  await first.close();
  const told = receiver.received.length;

  const other = newDir();
  const restored = await parley(other, ["restore", file]);
  assert.equal(restored.code, 0, restored.err);
  assert.equal(readFileSync(join(other, "documents", "two.pdf"), "utf8"), "documents");
  const second = await startTestServer({ dataDir: other, env });
  const { key } = first;
  const list = await second.call("GET", "/user/tools", { key });
  assert.deepEqual([list.status, list.body[0].headers], [200, HEADERS]);
  const again = await second.call("GET", `/user/calls/${call.id}`, { key });
  assert.deepEqual(await bytesOf(again.body.recording_url), recording);
  await second.app.features.accounts.credit(first.accountId, 1_000_000);
  const message = (await receiver.until(told + 1)).at(-1)!;
  new Webhook(endpoint.body.data.secret).verify(message.text, message.headers as never);
  await second.close();
  await receiver.close();
});

interface Findings {
  findings: { check: string; ok: boolean; detail: string }[];
}
const examined = async (dir: string, env: Record<string, string> = {}) => {
  const ran = await parley(dir, ["doctor", "--json"], env);
  assert.equal(ran.err, "");
  const { findings } = json(ran) as unknown as Findings;
  return { code: ran.code, ...findings.find(({ check }) => check === "secret")! };
};

test("[CL30] doctor tests the secret on everything sealed, and names what it does not open", async () => {
  const dataDir = newDir();
  const again = await startTestServer({ dataDir });
  await sealEverything(again);
  assert.deepEqual(await examined(dataDir),
    { code: 0, check: "secret", ok: true, detail: "decrypts all 4 encrypted values" });
  const wrong = await examined(dataDir, { PARLEY_SECRET: "another secret of 16" });
  assert.deepEqual([wrong.code, wrong.ok], [1, false]);
  const everything = /\(headers of tool 1, static fields of tool 1, password of SIP trunk \+4930901820999, Cal\.com key of assistant 1\): set the right secret/;
  assert.match(wrong.detail, everything);
  // The newest tool opens; an older thing of another kind does not.
  const trunks = await again.app.features.phoneNumbers.sipTrunks.all();
  await again.close();
  writeFileSync(join(dataDir, "secret"), "another secret of 16\n");
  const later = await startTestServer({ dataDir });
  await later.call("POST", "/user/tools", {
    body: { name: "new", description: "Looks", endpoint: "https://example.com", method: "GET" },
  });
  await later.close();
  const mixed = await examined(dataDir);
  assert.equal(mixed.ok, false);
  assert.match(mixed.detail, new RegExp(`SIP trunk \\${trunks[0]!.phoneNumber}`));
  assert.doesNotMatch(mixed.detail, /tool 2/);
  assert.match(mixed.detail, /enter these again$/);
});

test("[CL82] a backup made under another PARLEY_SECRET is refused, as is one without its own", async () => {
  const own = { PARLEY_SECRET: "the secret of the operator" };
  const dataDir = newDir();
  assert.equal((await parley(dataDir, ["account", "create", "--name", "A"], own)).code, 0);
  const file = join(newDir(), "all.tar.gz");
  const made = await parley(dataDir, ["backup", file, "--json"], own);
  assert.equal(json(made).holds_secret, false, made.err);
  const other = newDir();
  const wrong = await parley(other, ["restore", file], { PARLEY_SECRET: "another secret of 16" });
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /PARLEY_SECRET is not the secret this backup was made with/);
  const missing = await parley(other, ["restore", file]);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /made with a PARLEY_SECRET that it does not contain/);
  assert.deepEqual(readdirSync(other), ["server.lock"]);
  const restored = await parley(other, ["restore", file], own);
  assert.equal(restored.code, 0, restored.err);
});

test("[CL101] a start without the secret of sealed data exits and generates none; under another it warns", async () => {
  const dataDir = newDir();
  const server = await startTestServer({ dataDir });
  await sealEverything(server);
  await server.close();
  const path = join(dataDir, "secret");
  const secret = readFileSync(path, "utf8");
  rmSync(path);
  await assert.rejects(startTestServer({ dataDir }),
    /^Error: the secret of the database in \S+ is missing \(needed for headers of tool 1, .*\): restore the file "secret" from a backup/);
  assert.ok(!existsSync(path), "no other one is in its way");
  const made = await parley(dataDir, ["backup", join(newDir(), "all.tar.gz")]);
  assert.equal(made.code, 0, made.err);
  assert.match(made.out, /It contains no secret: it is missing: restore it, or set PARLEY_SECRET to it\./);
  const other = await startProcess(dataDir, { PARLEY_SECRET: "another secret of 16" });
  other.process.kill("SIGKILL");
  assert.match(other.said, /"closed":"headers of tool 1, [^"]+","of":4,.*decrypts none of the encrypted values/);
  writeFileSync(path, secret);
  assert.equal((await examined(dataDir)).detail, "decrypts all 4 encrypted values");
});

test("[CL101] webhooks alone need the secret; a folder that needs none yet is said to have none", async () => {
  const dataDir = newDir();
  assert.equal((await parley(dataDir, ["account", "create", "--name", "A"])).code, 0);
  const file = join(newDir(), "all.tar.gz");
  const early = await parley(dataDir, ["backup", file]);
  assert.match(early.out, /It contains no secret: none is needed yet\.$/m, early.err);
  const server = await startTestServer({ dataDir });
  const endpoint = await server.call("POST", "/user/webhook-endpoints", {
    body: { url: "https://example.com", events: ["balance_changed"] },
  });
  assert.equal(endpoint.status, 201);
  await server.close();
  rmSync(join(dataDir, "secret"));
  await assert.rejects(startTestServer({ dataDir }), /\(needed for secrets of webhooks and sites\)/);
  assert.equal((await examined(dataDir)).ok, false);
});

const FILES = ["secret", "documents/one.pdf", "recordings/one.wav"];

/** A folder whose every part says whose it is. */
async function folderOf(name: string): Promise<string> {
  const dir = newDir();
  assert.equal((await parley(dir, ["account", "create", "--name", name])).code, 0);
  for (const folder of ["documents", "recordings"]) mkdirSync(join(dir, folder));
  for (const file of FILES) writeFileSync(join(dir, file), name);
  return dir;
}

function partsOf(dir: string): string[] {
  const db = openForInspection(databasePath(dir));
  const { name } = db.prepare<[], { name: string }>("SELECT name FROM accounts").get()!;
  db.close();
  return [name, ...FILES.map((file) => readFileSync(join(dir, file), "utf8").trim())];
}

test("[CL84] a second concurrent backup is refused; leftovers of a dead one are removed", async () => {
  const dir = newDir();
  const made = await parley(dir, ["account", "create", "--name", "A"]);
  assert.equal(made.code, 0, made.err);
  const file = join(newDir(), "all.tar.gz");
  const held = lockBackups(dir);
  const staging = join(dir, ".staging-first");
  mkdirSync(staging);
  const refused = await parley(dir, ["backup", file]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /another backup of this folder is running/);
  assert.ok(existsSync(staging) && !existsSync(file));
  held?.release();
  const done = await parley(dir, ["backup", file]);
  assert.equal(done.code, 0, done.err);
  assert.ok(existsSync(file) && !existsSync(staging));
});

test("[CL108] a killed backup leaves a partial file, which the next backup removes, wherever it goes", async () => {
  const dir = await folderOf("large");
  const long = join(dir, "recordings", "long.wav");
  writeFileSync(long, randomBytes(2 ** 26));
  const folder = newDir();
  const killed = join(folder, "monday.tar.gz");
  const dying = spawn(process.execPath, [CLI, "backup", killed], {
    env: { PATH: process.env.PATH ?? "", PARLEY_DATA_DIR: dir }, stdio: "ignore",
  });
  await askUntil(() => existsSync(`${killed}.partial`), Boolean);
  const gone = once(dying, "exit");
  dying.kill("SIGKILL");
  await gone;
  assert.deepEqual(readdirSync(folder), ["monday.tar.gz.partial"]);
  rmSync(long);
  const next = await parley(dir, ["backup", join(folder, "tuesday.tar.gz")]);
  assert.equal(next.code, 0, next.err);
  assert.deepEqual(readdirSync(folder), ["tuesday.tar.gz"]);
});

test("[CL106] a start removes leftovers of a dead backup, but nothing of a running one", async () => {
  const dataDir = newDir();
  const staging = join(dataDir, ".staging-first");
  const held = lockBackups(dataDir);
  mkdirSync(join(staging, "recordings"), { recursive: true });
  writeFileSync(join(staging, "recordings", "deleted.wav"), "a second name");
  await (await startTestServer({ dataDir })).close();
  assert.ok(existsSync(staging));
  held?.release();
  await (await startTestServer({ dataDir })).close();
  assert.ok(!existsSync(staging));
});

const TELL_MEMORY = `data:text/javascript,process.on("exit",
  () => process.stderr.write(String(process.resourceUsage().maxRSS)))`;

test("[CL120] a restore needs constant memory, however large or compressed its backup", async () => {
  const dir = await folderOf("zeros");
  const long = join(dir, "recordings", "long.wav");
  writeFileSync(long, "");
  truncateSync(long, 2 ** 28);
  const file = join(newDir(), "all.tar.gz");
  assert.equal((await parley(dir, ["backup", file])).code, 0);
  rmSync(long);
  const restored = await parley(newDir(), ["restore", file], {}, ["--import", TELL_MEMORY]);
  assert.equal(restored.code, 0, restored.err);
  assert.ok(Number(restored.err) < 288 * 1024, `${restored.err} KiB`);
});

const SMALL_DISK = 'mount -t tmpfs -o size=1m small "$0" && exec "$@"';
const noSmallDisk = spawnSync("unshare", ["-m", "true"]).status === 0
  ? false
  : "needs a mount of its own";

/** What the script says, and what it leaves on a small disk that is mounted at `small`. */
function runIn(small: string, dataDir: string, file: string, script: string): string {
  const run = ["-m", "sh", "-c", SMALL_DISK, small, "sh", "-c", `${script}; ls -A "$0"`, small];
  const ran = spawnSync("unshare", [...run, process.execPath, CLI], {
    encoding: "utf8", env: { PATH: process.env.PATH ?? "", PARLEY_DATA_DIR: dataDir, FILE: file },
  });
  return ran.stdout + ran.stderr;
}

test("[CL150] a backup elsewhere needs no room in the data folder; the next one removes dead leftovers", { skip: noSmallDisk }, async () => {
  const [dir, small, folder, dead] = [await folderOf("large"), newDir(), newDir(), newDir()];
  const file = join(folder, "copy.tar.gz");
  const said = runIn(small, small, file, `cp ${databasePath(dir)} "$0/parley.db"
    mkdir "$0/.staging-first"; ln -s ${dead} "$0/.staging-first/beside"; "$@" backup "$FILE"`);
  assert.match(said, /^backed up to (?!.*\.staging)/s);
  assert.deepEqual([existsSync(dead), ...readdirSync(folder)], [false, "copy.tar.gz"]);
  assert.equal((await parley(newDir(), ["restore", file])).code, 0);
});

test("[CL103] [CL110] a full place is named, the backup's target or the data folder, and nothing is left in it", { skip: noSmallDisk }, async () => {
  const dir = await folderOf("large");
  writeFileSync(join(dir, "recordings", "long.wav"), randomBytes(2 ** 21));
  const file = join(newDir(), "all.tar.gz");
  assert.equal((await parley(dir, ["backup", file])).code, 0);
  const small = newDir();
  const inSmall = (dataDir: string, script: string): string => runIn(small, dataDir, file, script);
  const full = (path: string): string => `parley: ${path} cannot be written: the disk is full\n`;
  const target = join(small, "copy.tar.gz");
  assert.equal(inSmall(dir, '"$@" backup "$0/copy.tar.gz"'), full(target));
  assert.equal(inSmall(small, '"$@" restore "$FILE"'), `server.lock\n${full(small)}`);
  const filled = `cp -r ${join(dir, "parley.db")} ${join(dir, "secret")} "$0"; cat /dev/zero > "$0/fill"`;
  const asked = ['backup "$FILE.3"', "key create", "doctor"].map((what) =>
    inSmall(small, `${filled} 2> "$FILE.lost"; "$@" ${what}`));
  assert.ok(asked[0]?.endsWith(full(small)), asked[0]);
  assert.match(asked[1] ?? "", /cannot be written: input\/output error|could not be written: .*full/);
  const findings = /^ok +server +not running$.*^WRONG +free disk .*^WRONG +durable commits .*: the disk is full$.*^WRONG +database .* cannot be written: .*^ok +model /ms;
  assert.match(asked[2] ?? "", findings);
});

/** What the work did to the disk: what it waited for, and which names it gave. */
async function diskOf(t: TestContext, work: () => Promise<unknown>): Promise<string[]> {
  const { fsyncSync, renameSync } = fs;
  const done: string[] = [];
  t.mock.method(fs, "fsyncSync", (descriptor: number) => {
    done.push(`on disk: ${readlinkSync(`/proc/self/fd/${descriptor}`)}`);
    fsyncSync(descriptor);
  });
  t.mock.method(fs, "renameSync", (from: string, to: string) => {
    done.push(`named: ${to}`);
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  await work();
  t.mock.restoreAll();
  syncBuiltinESMExports();
  return done;
}

test("[CL97] a backup reported as done survives a power cut, under its name", {
  skip: process.platform === "linux" ? false : "needs /proc",
}, async (t) => {
  const dir = await folderOf("flushed");
  const outcome = readConfig({ PARLEY_DATA_DIR: dir });
  assert.ok(outcome.kind === "ok");
  const folder = realpathSync(newDir());
  const target = join(folder, "all.tar.gz");
  const done = await diskOf(t, () => makeArchive(outcome.config, target));
  assert.deepEqual(done.slice(-3),
    [`on disk: ${target}.partial`, `named: ${target}`, `on disk: ${folder}`]);
});

test("[CL98] a restore reported as done survives a power cut", {
  skip: process.platform === "linux" ? false : "needs /proc",
}, async (t) => {
  const from = await folderOf("kept");
  const outcome = readConfig({ PARLEY_DATA_DIR: from });
  assert.ok(outcome.kind === "ok");
  const file = join(newDir(), "all.tar.gz");
  await makeArchive(outcome.config, file);
  const dir = realpathSync(newDir());
  const done = await diskOf(t, () =>
    restoreArchive({ ...outcome.config, PARLEY_DATA_DIR: dir }, file, "stamp"));
  const steps = done.map((step) => step.replace(/\.restoring-\w+/, "staging"));
  const planned = steps.indexOf(`named: ${join(dir, "restoring.json")}`);
  for (const name of [basename(databasePath("")), ...FILES]) {
    const step = `on disk: ${join(dir, "staging", name)}`;
    const at = steps.indexOf(step);
    assert.ok(at >= 0 && at < planned, `${step} in ${steps.join("; ")}`);
  }
  assert.equal(steps[planned - 1], `on disk: ${join(dir, "restoring.json.partial")}`);
  assert.equal(steps[planned + 1], `on disk: ${dir}`);
  assert.ok(steps.length > planned + 4, "what is moved comes after its plan");
  assert.deepEqual(steps.slice(-2), [`on disk: ${dir}`, `on disk: ${dir}`]);
});

/** Copies of the folder before each name the work gives, and after it: what a kill there leaves. */
async function killsOf(t: TestContext, dir: string, work: () => Promise<unknown>) {
  const { renameSync } = fs;
  const left: string[] = [];
  const copy = (): void => {
    left.push(newDir());
    cpSync(dir, left.at(-1)!, { recursive: true });
  };
  t.mock.method(fs, "renameSync", (from: string, to: string) => {
    copy();
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  await work();
  t.mock.restoreAll();
  syncBuiltinESMExports();
  copy();
  return left;
}

test("[CL83] killed at any point of a restore, the folder is the old one or the whole new one", async (t) => {
  const [dir, after] = await Promise.all([folderOf("before"), folderOf("after")]);
  const file = join(newDir(), "all.tar.gz");
  assert.equal((await parley(after, ["backup", file])).code, 0);
  const outcome = readConfig({ PARLEY_DATA_DIR: dir });
  assert.ok(outcome.kind === "ok");
  const left = await killsOf(t, dir, () => restoreArchive(outcome.config, file, "stamp"));
  const seen: string[] = [];
  for (const [at, copy] of left.entries()) {
    // At its own place, which the plan of the restore names.
    rmSync(dir, { recursive: true });
    cpSync(copy, dir, { recursive: true });
    const wasTorn = !existsSync(databasePath(dir));
    // A command goes on with it; one tells for all.
    if (wasTorn && !seen.includes("after, torn")) {
      assert.match((await parley(dir, ["account", "list"])).out, /after/);
    }
    // What a server does first.
    lockDataDir(dir)?.release();
    const parts = partsOf(dir);
    assert.deepEqual(parts, FILES.concat("").map(() => parts[0]), `killed at rename ${at + 1}`);
    assert.ok(!readdirSync(dir).some((name) => name.startsWith(".restoring") || name === "restoring.json"));
    seen.push(`${parts[0]}${wasTorn ? ", torn" : ""}`);
  }
  assert.equal(seen[0], "before");
  assert.ok(seen.includes("after, torn") && seen.length > 8, seen.join("; "));
});
