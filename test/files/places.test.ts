// Recordings and documents of the real server in a bucket of a real S3 server: while it is there,
// while it is not, and while the server is killed.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, test } from "node:test";
import { readConfig } from "#config/config.ts";
import { contradictions } from "#config/contradictions.ts";
import { LIMITS } from "#core/limits.ts";
import { createSystem } from "#core/system.ts";
import { callApi, type CallResult } from "#support/api.ts";
import { parseWav } from "#support/calls/wav.ts";
import { json, parley, startProcess } from "#support/process.ts";
import {
  assistantBody, newAssistant, newConversation, openBeside, startTestServer, testDataDir,
} from "#support/server.ts";
import { startS3Server } from "#support/vendors/s3-server.ts";

const s3 = await startS3Server();
const dirs: string[] = [];
after(async () => {
  await s3.close();
  dirs.forEach((dir) => rmSync(dir, { recursive: true, force: true }));
});
function newDir(): string {
  const dir = testDataDir();
  dirs.push(dir);
  return dir;
}
const env = { PARLEY_SPEECH: "loopback", ...s3.env };
const filesIn = (dir: string, folder: string): string[] =>
  (existsSync(join(dir, folder)) ? readdirSync(join(dir, folder)) : []);
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const stack = new Error("it never came to this");
  for (let left = 1200; !await holds(); left -= 1) {
    if (left === 0) throw stack;
    await sleep(25);
  }
}

type Call = (method: string, path: string, body?: object) => Promise<CallResult>;
const through = ({ url, key }: { url: string; key: string | null }): Call =>
  (method, path, body) => callApi(url, method, path, { key, body });

/** A call in progress that is recorded, of which more than a second has been heard. */
async function liveCall(call: Call, assistantId: number): Promise<number> {
  const made = await call("POST", "/user/make_call", {
    phone_number: "+15550100042", assistant_id: assistantId,
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const id = made.body.call_id as number;
  await until(async () => (await call("GET", `/user/calls/${id}`)).body.transcript !== "");
  return id;
}
async function over(call: Call, id: number) {
  await call("POST", `/user/calls/${id}/end`);
  const busy = ["initiated", "ringing", "in-progress", "ended"];
  await until(async () => !busy.includes((await call("GET", `/user/calls/${id}`)).body.status));
  return (await call("GET", `/user/calls/${id}`)).body;
}
const ASSISTANT = {
  type: "outbound", status: "active", record: true, post_call_evaluation: false,
  endpoint_sensitivity: 1,
};
const nameOf = (link: string): string => `recordings/${new URL(link).pathname.split("/").at(-1)}.wav`;
const bytesOf = async (url: string): Promise<Buffer> => {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
};

/** Leaves so many files for a message; their answers in order. */
async function attach({ url }: { url: string }, uuid: string, count: number): Promise<number[]> {
  const answers: number[] = [];
  while (answers.length < count) {
    const body = new FormData();
    body.set("file", new Blob(["%PDF-1.7"]), "bill.pdf");
    const sent = await fetch(`${url}/api/conversations/${uuid}/attachments`, { method: "POST", body });
    answers.push(sent.status);
    await sent.body?.cancel();
  }
  return answers;
}

async function upload(server: { url: string; key: string | null }, text: string) {
  const { body: base } = await through(server)("POST", "/user/knowledgebases", { name: "Manual" });
  const form = new FormData();
  form.set("name", "Notes");
  form.set("type", "txt");
  form.set("file", new Blob([text]), "notes.txt");
  const path = `/user/knowledgebases/${base.data.id}/documents`;
  const response = await fetch(`${server.url}/api${path}`, {
    method: "POST", headers: { Authorization: `Bearer ${server.key}` }, body: form,
  });
  const { status, headers } = response;
  return { path, status, headers, body: await response.json() as { data: { id: number } } };
}

test("[FI7] with PARLEY_FILES_URL recordings and documents are only there, played by range, deleted with their owner", async () => {
  const server = await startTestServer({ env, dataDir: newDir() });
  const call = through(server);
  await s3.stop();
  await s3.start();
  const { path, status, body } = await upload(server, "Bicycles are rented by the day.");
  assert.equal(status, 201, JSON.stringify(body));
  const document = async () => (await server.call("GET", `${path}/${body.data.id}`)).body.data.status;
  await until(async () => await document() !== "processing");
  assert.equal(await document(), "active");

  const { id: assistantId } = await newAssistant(server, ASSISTANT);
  const id = await liveCall(call, assistantId);
  assert.equal(filesIn(server.dataDir, "scratch").length, 1);
  const { recording_url: link } = await over(call, id);
  const stored = readFileSync(s3.pathOf(nameOf(link)));
  assert.ok(parseWav(stored).channels[0]!.length > 1000);
  for (const folder of ["scratch", "recordings", "documents", "uploads"]) {
    await until(() => filesIn(server.dataDir, folder).length === 0);
  }
  assert.ok((await bytesOf(link)).equals(stored));
  const part = await fetch(link, { headers: { range: "bytes=100-" } });
  assert.deepEqual([part.status, part.headers.get("content-range")],
    [206, `bytes 100-${stored.length - 1}/${stored.length}`]);
  assert.ok(Buffer.from(await part.arrayBuffer()).equals(stored.subarray(100)));
  const end = await fetch(link, { headers: { range: "bytes=-100" } });
  assert.equal(end.headers.get("content-range"),
    `bytes ${stored.length - 100}-${stored.length - 1}/${stored.length}`);
  assert.ok(Buffer.from(await end.arrayBuffer()).equals(stored.subarray(-100)));
  const past = await fetch(link, { headers: { range: `bytes=${stored.length}-` } });
  assert.deepEqual([past.status, past.headers.get("content-range")], [416, `bytes */${stored.length}`]);

  assert.equal((await server.call("DELETE", `/user/calls/${id}`)).status, 200);
  assert.ok(!existsSync(s3.pathOf(nameOf(link))));
  assert.equal((await fetch(link)).status, 404);
  await server.close();
});

test("[FI7] as Opus too: the WAV stays until the Opus is stored, neither in scratch, both deleted with the call", async () => {
  const server = await startTestServer({
    env: { ...env, PARLEY_RECORDING_FORMAT: "opus" }, dataDir: newDir(),
  });
  const call = through(server);
  const { id: assistantId } = await newAssistant(server, ASSISTANT);
  const { id, recording_url: link } = await over(call, await liveCall(call, assistantId));
  const [wav, ogg] = [nameOf(link), nameOf(link).replace(".wav", ".ogg")].map(s3.pathOf);
  await until(() => existsSync(ogg!) && !existsSync(wav!));
  await until(() => filesIn(server.dataDir, "scratch").length === 0);
  const played = await fetch(link);
  assert.equal(played.headers.get("content-type"), "audio/ogg");
  assert.ok(Buffer.from(await played.arrayBuffer()).equals(readFileSync(ogg!)));
  assert.equal((await server.call("DELETE", `/user/calls/${id}`)).status, 200);
  assert.deepEqual([existsSync(wav!), existsSync(ogg!)], [false, false]);
  await server.close();
});

test("[FI8] [CV152] while the bucket is down uploads are 503 and not counted, calls continue and recordings play from scratch", async () => {
  const server = await startTestServer({ env, dataDir: newDir() });
  const call = through(server);
  const { id: assistantId } = await newAssistant(server, ASSISTANT);
  const kept = (await over(call, await liveCall(call, assistantId))).recording_url;
  const { uuid } = await newAssistant(server, { widget_settings: { attachments: true } });
  const conversation = await newConversation(server, uuid);
  await s3.stop();
  assert.deepEqual(await attach(server, conversation, 1), [503]);
  const refused = await upload(server, "Nothing of this is kept.");
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "30"]);
  await until(() => filesIn(server.dataDir, "uploads").length === 0);
  const { body: bases } = await server.call("GET", "/user/knowledgebases");
  assert.equal(bases.data[0].documents_count, 0);
  assert.equal((await fetch(kept)).status, 503);

  const waiting = await over(call, await liveCall(call, assistantId));
  const unwanted = await over(call, await liveCall(call, assistantId));
  assert.equal(waiting.status, "ended_by_assistant");
  const bytes = await bytesOf(waiting.recording_url);
  assert.equal(filesIn(server.dataDir, "scratch").length, 2);
  for (const one of [unwanted.id, (await server.call("GET", "/user/calls")).body.data.at(-1).id]) {
    assert.equal((await server.call("DELETE", `/user/calls/${one}`)).status, 200);
  }
  await s3.start();
  assert.equal((await fetch(kept)).status, 200, "it could not be removed");
  const most = LIMITS.attachmentsOfConversationMax;
  assert.deepEqual(await attach(server, conversation, most + 1), [...Array(most).fill(201), 400]);
  const attached = dirname(s3.pathOf("attachments/any"));
  assert.equal(readdirSync(attached).filter((name) => name.endsWith("_object")).length, most);
  // What the clock does.
  await server.app.features.recordings.retry();
  await server.close();
  const again = await startTestServer({ env, dataDir: server.dataDir });
  assert.ok(readFileSync(s3.pathOf(nameOf(waiting.recording_url))).equals(bytes));
  assert.deepEqual(filesIn(server.dataDir, "scratch"), []);
  assert.ok(!existsSync(s3.pathOf(nameOf(unwanted.recording_url))));
  await again.close();
});

test("[FI9] [FI10] killed in a put or a call, a recording is put whole at the next start; unclaimed ones are not", async () => {
  const dataDir = newDir();
  let running = await startProcess(dataDir, { ...env, PARLEY_DEMO: "on" });
  const { key } = running;
  let call = through({ ...running, key });
  const made = await call("POST", "/user/assistant", assistantBody(ASSISTANT));
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const assistantId = made.body.data.id as number;
  const ended = await liveCall(call, assistantId);
  const held = s3.hold();
  await call("POST", `/user/calls/${ended}/end`);
  await held;
  const [first] = filesIn(dataDir, "scratch");
  await call("PUT", `/user/assistant/${assistantId}`, { initial_message: "Good morning. ".repeat(60) });
  const { body: { call_id: cut } } = await call("POST", "/user/make_call", {
    phone_number: "+15550100042", assistant_id: assistantId,
  });
  await until(() => filesIn(dataDir, "scratch").length === 2);
  const second = filesIn(dataDir, "scratch").find((name) => name !== first)!;
  await until(() => readFileSync(join(dataDir, "scratch", second)).length > 44);
  running.process.kill("SIGKILL");
  await once(running.process, "exit");
  assert.ok(!existsSync(s3.pathOf(`recordings/${first}`)), "half a file is none");
  const whole = readFileSync(join(dataDir, "scratch", first!));
  copyFileSync(join(dataDir, "scratch", first!), join(dataDir, "scratch", "nobodys.wav"));

  running = await startProcess(dataDir, env);
  call = through({ ...running, key });
  await until(() => filesIn(dataDir, "scratch").length === 0);
  assert.ok(readFileSync(s3.pathOf(`recordings/${first}`)).equals(whole));
  const repaired = parseWav(readFileSync(s3.pathOf(`recordings/${second}`)));
  assert.ok(repaired.channels[0]!.length >= 8000);
  assert.ok(!existsSync(s3.pathOf("recordings/nobodys.wav")));
  for (const id of [ended, cut]) {
    const { body } = await call("GET", `/user/calls/${id}`);
    assert.ok((await bytesOf(body.recording_url)).length > 16_000);
  }
  running.process.kill("SIGTERM");
  await once(running.process, "exit");
});

test("[FI15] killed between a deletion and its files' removal, the next start removes them", async () => {
  const dataDir = newDir();
  let running = await startProcess(dataDir, { ...env, PARLEY_DEMO: "on" });
  const { url, key } = running;
  const call = through({ url, key });
  const made = await call("POST", "/user/assistant", assistantBody(ASSISTANT));
  const { id, recording_url: link } = await over(call, await liveCall(call, made.body.data.id));
  const recording = s3.pathOf(nameOf(link));
  await until(() => existsSync(recording));
  const documents = (): string[] => {
    const folder = dirname(s3.pathOf("documents/any"));
    return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith("_object")) : [];
  };
  const before = documents();

  let held = s3.holdRemoval();
  const deleting = call("DELETE", `/user/calls/${id}`).catch(() => null);
  await held;
  assert.equal((await call("GET", `/user/calls/${id}`)).status, 404, "the call is gone already");
  held = s3.holdRemoval();
  const { status } = await upload({ url, key }, "Bicycles are rented by the day.");
  assert.equal(status, 201);
  await held;
  const exited = once(running.process, "exit");
  running.process.kill("SIGKILL");
  await Promise.all([exited, deleting]);
  assert.ok(existsSync(recording));
  assert.equal(documents().length, before.length + 1, "it was read, and its file is there");

  running = await startProcess(dataDir, env);
  await until(() => !existsSync(recording) && documents().length === before.length);
  running.process.kill("SIGTERM");
  await once(running.process, "exit");
});

test("[FI261] a recording that cannot be opened is left where it is, and does not keep the others", async () => {
  const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback" } });
  const { recordings } = server.app.features;
  // A link to itself opens for nobody, not even for root.
  const locked = join(recordings.folder, "locked.wav");
  symlinkSync(locked, locked);
  assert.equal(await recordings.repair("locked.wav"), true);
  for (const name of ["a", "z"]) writeFileSync(join(recordings.folder, `${name}.wav`), "cut");
  await recordings.takeUp();
  assert.deepEqual(readdirSync(recordings.folder), ["locked.wav"]);
  await server.close();
});

test("[FI17] a recording deleted while being put is removed, even if the bucket stored it but failed", async () => {
  const server = await startTestServer({ env, dataDir: newDir() });
  const call = through(server);
  const { id: assistantId } = await newAssistant(server, ASSISTANT);
  await s3.stop();
  const { id, recording_url: link } = await over(call, await liveCall(call, assistantId));
  await s3.start();
  const arrived = s3.failStored();
  // What the clock does.
  const put = server.app.features.recordings.retry();
  const store = await arrived;
  assert.equal((await server.call("DELETE", `/user/calls/${id}`)).status, 200);
  assert.deepEqual(filesIn(server.dataDir, "scratch"), []);
  store();
  await put;
  const stored = s3.pathOf(nameOf(link));
  assert.ok(existsSync(stored), "the bucket has answered an error");
  await server.close();
  // As if so long had passed.
  const later = createSystem().now() + 2 * 60 * 60 * 1_000_000;
  const { removals, close } = await openBeside(server.dataDir);
  await removals.note({ names: await removals.due(later, 10), dueAt: 1 });
  await close();
  const again = await startTestServer({ env, dataDir: server.dataDir });
  await until(() => !existsSync(stored));
  await again.close();
});

test("[FI11] files stored before PARLEY_FILES_URL was set are moved there", async () => {
  const dataDir = newDir();
  const before = await startTestServer({ env: { PARLEY_SPEECH: "loopback" }, dataDir });
  const call = through(before);
  const { id: assistantId } = await newAssistant(before, ASSISTANT);
  const { id, recording_url: link } = await over(call, await liveCall(call, assistantId));
  const bytes = await bytesOf(link);
  await before.close();
  const server = await startTestServer({ env, dataDir });
  await until(() => filesIn(dataDir, "recordings").length === 0);
  assert.ok(readFileSync(s3.pathOf(nameOf(link))).equals(bytes));
  const { body } = await server.call("GET", `/user/calls/${id}`, { key: before.key });
  assert.ok((await bytesOf(body.recording_url)).equals(bytes));
  await server.close();
});

test("[FI11] a PARLEY_FILES_URL that is the data folder itself, by any path, moves nothing", async () => {
  const dataDir = newDir();
  mkdirSync(join(dataDir, "recordings"));
  writeFileSync(join(dataDir, "recordings", "one.wav"), "sound");
  const other = join(newDir(), "link");
  symlinkSync(dataDir, other);
  const server = await startTestServer({ env: { PARLEY_FILES_URL: `file://${other}` }, dataDir });
  await sleep(300);
  await server.close();
  assert.equal(readFileSync(join(dataDir, "recordings", "one.wav"), "utf8"), "sound");
});

test("[FI12] doctor tests the place, backup says what it does not include", async () => {
  const dataDir = newDir();
  assert.equal((await parley(dataDir, ["account", "create", "--name", "A"])).code, 0);
  const examined = async (settings: Record<string, string>) => {
    const { findings } = json(await parley(dataDir, ["doctor", "--json"], settings)) as
      { findings: { check: string; ok: boolean; detail: string }[] };
    return findings.find(({ check }) => check === "files");
  };
  assert.deepEqual(await examined({}), { check: "files", ok: true, detail: "in the data folder" });
  const place = `${s3.endpoint}/${s3.bucket}/desk`;
  mkdirSync(join(dataDir, "scratch"), { recursive: true });
  writeFileSync(join(dataDir, "scratch", "one.wav"), "sound");
  assert.deepEqual(await examined(s3.env), {
    check: "files", ok: true,
    detail: `${place} stores and returns files; 1 of calls in progress or waiting in the data folder`,
  });
  const wrong = await examined({ ...s3.env, PARLEY_S3_SECRET_KEY: "another" });
  assert.equal(wrong?.ok, false);
  assert.match(wrong?.detail ?? "", /the bucket answered 403 SignatureDoesNotMatch/);
  await s3.stop();
  const down = await examined(s3.env);
  await s3.start();
  assert.equal(down?.ok, false);
  assert.match(down?.detail ?? "", /ECONNREFUSED/);
  const archive = join(newDir(), "all.tar.gz");
  const made = await parley(dataDir, ["backup", archive], s3.env);
  assert.match(made.out, new RegExp(`It does not contain recordings and unread documents: they are in ${place}`));
  const other = newDir();
  assert.equal((await parley(other, ["restore", archive], s3.env)).code, 0);
  assert.equal(readFileSync(join(other, "scratch", "one.wav"), "utf8"), "sound");
});

test("[FI13] an invalid place is refused at the start, and so are nodes without shared files", () => {
  const problems = (settings: Record<string, string>): string[] => {
    const outcome = readConfig(settings);
    return outcome.kind === "invalid" ? outcome.problems : [];
  };
  assert.deepEqual(problems(s3.env), []);
  assert.deepEqual(problems({ PARLEY_FILES_URL: `file://${newDir()}` }), []);
  for (const url of ["/mnt/shared", "https://s3.example.com/bucket", "s3+https://s3.example.com",
    "s3+https://key@s3.example.com/bucket", "s3+https://s3.example.com/B", "x"]) {
    assert.match(problems({ ...s3.env, PARLEY_FILES_URL: url }).join(), /PARLEY_FILES_URL must be file:/, url);
  }
  assert.match(problems({ PARLEY_FILES_URL: "file:///mnt/not/there" }).join(), /does not exist/);
  assert.deepEqual(problems({ PARLEY_FILES_URL: s3.env.PARLEY_FILES_URL! }),
    ["PARLEY_FILES_URL names a bucket, which needs PARLEY_S3_ACCESS_KEY and PARLEY_S3_SECRET_KEY"]);
  assert.match(problems({ PARLEY_S3_ACCESS_KEY: "one" }).join(), /must be set together/);
  const nodes = { PARLEY_NATS_URL: "nats://127.0.0.1" };
  assert.match(contradictions({ ...nodes, PARLEY_FILES_URL: null }).join(),
    /^PARLEY_NATS_URL joins nodes, which need files all of them reach: set PARLEY_FILES_URL/);
  const shared = { ...nodes, PARLEY_FILES_URL: { kind: "folder", root: "/mnt" } };
  assert.deepEqual(contradictions(shared), []);
  const calls = { ...shared, PARLEY_PLIVO_AUTH_ID: "MA1" };
  assert.match(contradictions(calls).join(), /^PARLEY_NATS_URL joins .* PARLEY_PLIVO_AUTH_ID .*: set PARLEY_NODE_URL/);
  assert.deepEqual(contradictions({ ...calls, PARLEY_NODE_URL: "https://one.example" }), []);
});
