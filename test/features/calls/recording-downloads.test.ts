// Recordings as programs fetch them: whole, slowly, and from where a download broke off.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { get, request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { buffer } from "node:stream/consumers";
import { connect } from "node:net";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { nextTurn, type System } from "#core/system.ts";
import { createHttpServer, type HttpServer } from "#http/server.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { startTestServer, testDataDir } from "#support/server.ts";

const dataDir = testDataDir();
const server = await startTestServer({ env: { PARLEY_DATA_DIR: dataDir } });
after(async () => {
  await server.close();
  rmSync(dataDir, { recursive: true });
});

const uuid = "0b1f6b7e-3f0c-4c5e-9a54-0d6a4f1f2c11";
/** More than the sockets on the way hold. */
const sound = randomBytes(12 * 1024 * 1024);
mkdirSync(join(dataDir, "recordings"), { recursive: true });
writeFileSync(join(dataDir, "recordings", `${uuid}.wav`), sound);
const link = server.app.features.recordings.linkOf(`${uuid}.wav`, `${server.url}/api`);

async function ask(headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const [response] = await once(get(link, { headers }), "response") as [IncomingMessage];
  return response;
}

test("[CR362] a recording states its length, and arrives whole however slowly it is read", async () => {
  const quick = await ask();
  assert.deepEqual([quick.statusCode, quick.headers["content-length"]], [200, String(sound.length)]);
  assert.ok((await buffer(quick)).equals(sound));
  const head = request(link, { method: "HEAD" });
  head.end();
  const [{ headers }] = await once(head, "response") as [IncomingMessage];
  assert.equal(headers["content-length"], String(sound.length));
  const slow = await ask();
  const parts: Buffer[] = [];
  for await (const part of slow) {
    parts.push(part as Buffer);
    // The server runs here, too: it writes until nothing more is taken.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(Buffer.concat(parts).equals(sound));
});

test("[CR363] an interrupted recording download resumes to the end; a page's player gets pieces", async () => {
  const from = 3_000_001;
  const rest = await ask({ range: `bytes=${from}-` });
  assert.deepEqual(
    [rest.statusCode, rest.headers["content-range"], rest.headers["content-length"]],
    [206, `bytes ${from}-${sound.length - 1}/${sound.length}`, String(sound.length - from)],
  );
  assert.ok((await buffer(rest)).equals(sound.subarray(from)));
  const some = await ask({ range: `bytes=10-${from}` });
  assert.equal(some.headers["content-range"], `bytes 10-${from}/${sound.length}`);
  assert.ok((await buffer(some)).equals(sound.subarray(10, from + 1)));
  // It would keep a connection that it does not read from for as long as it stands still.
  const player = await ask({ range: "bytes=0-", "sec-fetch-dest": "audio" });
  assert.equal(player.headers["content-range"], `bytes 0-${1024 * 1024 - 1}/${sound.length}`);
  assert.ok((await buffer(player)).equals(sound.subarray(0, 1024 * 1024)));
});

test("[CR521] suffix ranges; a file changed meanwhile comes whole for If-Range; HEAD has every header", async () => {
  const whole = await ask();
  const etag = whole.headers.etag ?? assert.fail("no ETag");
  whole.destroy();
  assert.match(etag, /^"[\w-]+"$/);
  for (const [suffix, from] of [["500", sound.length - 500], ["999999999", 0]] as const) {
    const end = await ask({ range: `bytes=-${suffix}` });
    assert.deepEqual([end.statusCode, end.headers["content-range"], end.headers.etag],
      [206, `bytes ${from}-${sound.length - 1}/${sound.length}`, etag]);
    assert.ok((await buffer(end)).equals(sound.subarray(from)));
  }
  for (const range of ["bytes=-0", `bytes=${sound.length}-`]) {
    const none = await ask({ range });
    assert.deepEqual([none.statusCode, none.headers["content-range"]], [416, `bytes */${sound.length}`]);
    none.resume();
  }
  const same = await ask({ "range": "bytes=44-143", "if-range": etag });
  assert.equal(same.statusCode, 206);
  assert.ok((await buffer(same)).equals(sound.subarray(44, 144)));
  for (const changed of ['"ogg-1"', `W/${etag}`, "Tue, 03 Mar 2026 10:00:00 GMT"]) {
    const other = await ask({ "range": "bytes=44-143", "if-range": changed });
    assert.deepEqual([other.statusCode, other.headers["content-range"]], [200, undefined]);
    assert.ok((await buffer(other)).equals(sound));
  }
  for (const range of ["bytes=-", "bytes=0-1,5-9", "pages=1-2"]) {
    const all = await ask({ range });
    assert.deepEqual([all.statusCode, all.headers["content-length"]], [200, String(sound.length)]);
    all.destroy();
  }
  const head = request(link, { method: "HEAD", headers: { range: "bytes=0-9" } });
  head.end();
  const [{ statusCode, headers }] = await once(head, "response") as [IncomingMessage];
  assert.deepEqual([statusCode, headers["content-length"], headers.etag],
    [200, String(sound.length), etag]);
});

const createAnswers = ({ every }: System): HttpServer => createHttpServer({
  tls: null, trustedProxies: [], uploadsMax: 1, log: createLogger("silent"), every,
  newRequestId: () => "1", renderError: () => ({ status: 500, json: {} }),
});

test("[CR522] a slow reader is offered the rest again and again; one that reads nothing for minutes is dropped", async (context) => {
  const system = createManualSystem();
  const answers = createAnswers(system);
  const closed = Promise.withResolvers<void>();
  // The system gives a socket whose reader was quick for a moment room for tens of megabytes.
  const long = Buffer.concat(Array.from({ length: 6 }, () => sound));
  let at = 0;
  answers.route({
    method: "GET", pattern: "/slow", bodyBytesMax: 0,
    handle: () => ({
      status: 200, contentType: "audio/wav", bytes: long.length,
      stream: (stream) => {
        const write = (): void => {
          while (at < long.length && stream.write(long.subarray(at, at += 16 * 1024)));
        };
        stream.onDrain(write);
        stream.onClose(closed.resolve);
        write();
      },
    }),
  });
  /** Resolves to how much was taken once nothing more is. */
  const taken = async (): Promise<number> => {
    const before = at;
    for (let turn = 0; turn < 100; turn += 1) await nextTurn();
    return at === before && at > 0 ? at : taken();
  };
  const socket = connect(await answers.listen("127.0.0.1", 0), "127.0.0.1");
  context.after(() => {
    socket.destroy();
    answers.close();
  });
  const parts: Buffer[] = [];
  socket.pause();
  socket.on("data", (part) => void parts.push(part));
  socket.write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  let before = await taken();
  let offered = before;
  // A little is less than what the system waits for before it says that there is room again.
  for (let wanted = 400_000; offered === before; wanted += 400_000) {
    socket.resume();
    while (parts.reduce((sum, { length }) => sum + length, 0) < wanted) await nextTurn();
    socket.pause();
    before = await taken();
    assert.ok(before < long.length, "nothing was offered");
    system.advance(LIMITS.downloadOfferMs);
    offered = await taken();
  }
  system.advance(LIMITS.stalledDownloadMs + 2 * LIMITS.downloadOfferMs);
  await closed.promise;
  socket.resume();
  await once(socket, "close");
  const all = Buffer.concat(parts);
  const body = all.subarray(all.indexOf("\r\n\r\n") + 4);
  assert.ok(body.length < long.length && body.equals(long.subarray(0, body.length)));
});

test("[CR364] a file written in full before it is read arrives whole; one shorter than declared breaks off", async () => {
  const answers = createAnswers(createManualSystem());
  const at = (path: string, bytes: number): void => answers.route({
    method: "GET", pattern: path, bodyBytesMax: 0,
    handle: () => ({
      status: 200, contentType: "audio/wav", bytes,
      // More than is taken at once, and its end right behind it.
      stream: (stream) => {
        stream.write(sound);
        stream.end();
      },
    }),
  });
  at("/whole", sound.length);
  at("/cut", sound.length + 1);
  const port = await answers.listen("127.0.0.1", 0);
  const read = async (path: string): Promise<Buffer> => {
    const asked = get(`http://127.0.0.1:${port}${path}`);
    const [response] = await once(asked, "response") as [IncomingMessage];
    return buffer(response);
  };
  assert.ok((await read("/whole")).equals(sound));
  await assert.rejects(read("/cut"));
  answers.close();
});
