// Files that are sent to the server by clients that do not wait for the answer.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { after, test } from "node:test";
import { Fault } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem, nextTurn } from "#core/system.ts";
import { renderFault, toFault } from "#http/errors.ts";
import { createHttpServer } from "#http/server.ts";
import { askUntil } from "#support/asking.ts";

const log = createLogger("silent");
const system = createSystem();

const BODY = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nbill\r\n--b--\r\n";
const UPLOAD = "POST /keep HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
  + `Content-Length: ${BODY.length}\r\n\r\n${BODY}`;

/** A server whose only route keeps a file until it is told to; `admit`: as routes have it. */
async function keeping(admit: () => Promise<void>, uploadsMax = 1) {
  const folder = mkdtempSync(`${tmpdir()}/parley-uploads-`);
  const server = createHttpServer({
    tls: null, trustedProxies: ["127.0.0.1"], uploadsMax, log,
    every: (intervalMs, run) => system.every(intervalMs, run),
    newRequestId: () => system.uuid(),
    renderError: (error, request) => renderFault(toFault(error, log, request), "message"),
  });
  const [begun, released] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
  server.route({
    method: "POST", pattern: "/keep", bodyBytesMax: 100,
    upload: { folder, fileBytesMax: 1_000_000, admit },
    handle: async ({ form }) => {
      if (!form?.file) throw new Fault(422, "No file.");
      begun.resolve(form.file.path);
      await released.promise;
      return { status: 200, json: {} };
    },
  });
  after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  const port = await server.listen("127.0.0.1", 0);
  return { port, folder, begun: begun.promise, release: () => released.resolve() };
}

test("[CV149] an upload's file stays until its handler is done, even if the client disconnects", async () => {
  const { port, begun, release } = await keeping(() => Promise.resolve());
  const client = connect(port, "127.0.0.1");
  client.write(UPLOAD);
  const path = await begun;
  client.resetAndDestroy();
  // Its place is another's once the server knows that it has left.
  const form = new FormData();
  form.set("note", "nothing");
  const send = async () =>
    (await fetch(`http://127.0.0.1:${port}/keep`, { method: "POST", body: form })).status;
  await askUntil(send, (status) => status === 422);
  await send();
  assert.equal(existsSync(path), true);
  release();
  await askUntil(() => existsSync(path), (isThere) => !isThere);
});

test("[CV170] a small file that takes longer to store than a client may be silent is still answered", async () => {
  const { port, begun, release } = await keeping(() => nextTurn());
  const client = connect(port, "127.0.0.1");
  const over = Promise.race([once(client, "data"), once(client, "close")]);
  client.write(UPLOAD);
  await begun;
  const silent = connect(port, "127.0.0.1").resume();
  await once(silent, "close");
  release();
  const [answer] = await over;
  assert.match(String(answer), /^HTTP\/1\.1 200/);
  client.destroy();
});

test("[EX145] a file that arrives slowly, a few kB a second, is accepted", async () => {
  const { port, release } = await keeping(() => nextTurn());
  release();
  const client = connect(port, "127.0.0.1");
  const over = Promise.race([once(client, "data"), once(client, "close")]);
  const send = (text: string) => client.write(`${text.length.toString(16)}\r\n${text}\r\n`);
  client.write(UPLOAD.slice(0, UPLOAD.indexOf("Content-Length"))
    + "Transfer-Encoding: chunked\r\n\r\n");
  send(BODY.slice(0, BODY.indexOf("bill")));
  const drip = setInterval(() => send("bill".repeat(500)), 250);
  await once(connect(port, "127.0.0.1").resume(), "close");
  clearInterval(drip);
  send(BODY.slice(BODY.indexOf("bill")));
  client.write("0\r\n\r\n");
  assert.match(String(await over), /^HTTP\/1\.1 200/);
  client.destroy();
});

/** The files in the folder that this process has open, deleted ones too. */
const openIn = (folder: string): string[] => readdirSync("/proc/self/fd")
  .map((one) => {
    try {
      return readlinkSync(`/proc/self/fd/${one}`);
    } catch (error) {
      // It was closed since the list was made.
      return String(error);
    }
  }).filter((path) => path.startsWith(folder));

test("[EX186] an upload that breaks off leaves no open file", {
  skip: existsSync("/proc/self/fd") ? false : "only Linux lists the open files",
}, async () => {
  const { port, folder } = await keeping(() => Promise.resolve());
  const client = connect(port, "127.0.0.1");
  client.write(UPLOAD.slice(0, UPLOAD.indexOf("bill") + 2));
  await askUntil(() => openIn(folder).length, (count) => count === 1);
  client.resetAndDestroy();
  await askUntil(() => openIn(folder).length, (count) => count === 0);
  // It is closed before it is removed.
  await askUntil(() => readdirSync(folder).length, (count) => count === 0);
});

test("[CV171] whoever uploads slowly holds a quarter of the places, and others still upload", async () => {
  const { port } = await keeping(() => Promise.resolve(), 8);
  const send = async (address: string): Promise<number> => {
    const body = new FormData();
    body.set("note", "no file");
    const headers = { "x-forwarded-for": address };
    return (await fetch(`http://127.0.0.1:${port}/keep`, { method: "POST", body, headers })).status;
  };
  const slow = Array.from({ length: 2 }, () => {
    const client = connect(port, "127.0.0.1");
    client.write(UPLOAD.replace("Host: x", "Host: x\r\nX-Forwarded-For: 2001:db8::1").slice(0, -10));
    return client;
  });
  await askUntil(() => send("2001:db8::2"), (status) => status === 503);
  assert.equal(await send("2001:db8:0:1::1"), 422);
  slow[0]?.resetAndDestroy();
  await askUntil(() => send("2001:db8::2"), (status) => status === 422);
  slow[1]?.destroy();
});
