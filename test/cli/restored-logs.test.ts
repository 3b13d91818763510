// Clients that were there before a backup was restored, and come back to the restored server.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { aboutTheFile } from "#support/engines.ts";
import { parley } from "#support/process.ts";
import {
  newAssistant, newConversation, startTestServer, testDataDir, type TestServer,
} from "#support/server.ts";

test("[CL111] a client with an old position is told that the log was restored, even if it grew past it", {
  skip: aboutTheFile,
}, async () => {
  const dataDir = testDataDir();
  const first = await startTestServer({ dataDir });
  const { uuid: assistant } = await newAssistant(first);
  const uuid = await newConversation(first, assistant);
  const say = (server: TestServer) => server.call("POST", `/conversations/${uuid}/messages`, {
    key: first.key, body: { message: "Hello" },
  });
  const read = async (server: TestServer, query: string, until: RegExp): Promise<string> => {
    const stream = await fetch(`${server.url}/api/conversations/${uuid}/stream${query}`);
    let text = "";
    for await (const part of stream.body ?? []) {
      text += Buffer.from(part as Uint8Array).toString();
      if (until.test(text)) break;
    }
    return text;
  };
  const position = async (): Promise<string> =>
    /id: (\d+)/.exec(await read(first, "", /id: \d+/))?.[1] ?? assert.fail("no position");
  await say(first);
  const other = testDataDir();
  const file = join(dataDir, "all.tar.gz");
  assert.equal((await parley(dataDir, ["backup", file])).code, 0);
  const newest = await position();
  await say(first);
  const ahead = await position();
  await first.close();
  assert.equal((await parley(other, ["restore", file])).code, 0);
  const second = await startTestServer({ dataDir: other });
  for (let turn = 0; turn < 3; turn += 1) assert.equal((await say(second)).status, 200);
  const either = /event: (?:stream_reset|message_added)/;
  assert.match(await read(second, `?after=${Number(newest) - 1}`, either), /event: message_added/);
  assert.match(await read(second, `?after=${ahead}`, either), /event: stream_reset/);
  await second.close();
  for (const dir of [dataDir, other]) rmSync(dir, { recursive: true });
});

test("[CL551] who followed the audit log past the backup gets each entry made since it was restored", {
  skip: aboutTheFile,
}, async () => {
  const [dataDir, other] = [testDataDir(), testDataDir()];
  const first = await startTestServer({ dataDir });
  const { key } = first;
  const add = async (server: TestServer, name: string): Promise<void> => {
    assert.equal((await server.call("POST", "/user/api-keys", { key, body: { name } })).status, 201);
  };
  await add(first, "before the backup");
  const file = join(dataDir, "all.tar.gz");
  assert.equal((await parley(dataDir, ["backup", file])).code, 0);
  for (const name of ["lost", "lost too"]) await add(first, name);
  const { body } = await first.call("GET", "/user/audit", { key });
  const ahead = String(body.data[0].number);
  await first.close();
  assert.equal((await parley(other, ["restore", file])).code, 0);
  const second = await startTestServer({ dataDir: other });
  for (const name of ["one", "two", "three"]) await add(second, name);
  const stream = await fetch(`${second.url}/api/user/audit/stream`, {
    headers: { Authorization: `Bearer ${key}`, "Last-Event-ID": ahead },
  });
  let text = "";
  for await (const part of stream.body ?? []) {
    text += Buffer.from(part as Uint8Array).toString();
    if (text.includes('"three"')) break;
  }
  const names = [...text.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name);
  assert.deepEqual(names.filter((name) => /one|two|three/.test(name ?? "")), ["one", "two", "three"]);
  await second.close();
  for (const dir of [dataDir, other]) rmSync(dir, { recursive: true });
});
