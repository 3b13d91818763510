// Files that are sent to the server by clients that do not wait for the answer.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { after, test } from "node:test";
import { Fault } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { renderFault, toFault } from "#http/errors.ts";
import { createHttpServer } from "#http/server.ts";
import { askUntil } from "#support/asking.ts";

const log = createLogger("silent");
const system = createSystem();

test("[CV149] a file is there until whoever keeps it is done, also when its client leaves meanwhile", async () => {
  const folder = mkdtempSync(`${tmpdir()}/parley-uploads-`);
  const server = createHttpServer({
    tls: null, trustedProxies: [], uploadsMax: 1, log,
    every: (intervalMs, run) => system.every(intervalMs, run),
    newRequestId: () => system.uuid(),
    renderError: (error, request) => renderFault(toFault(error, log, request), "message"),
  });
  const [begun, released] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
  server.route({
    method: "POST", pattern: "/keep", bodyBytesMax: 100,
    upload: { folder, fileBytesMax: 1000, admit: () => Promise.resolve() },
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
  const body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nbill\r\n--b--\r\n";
  const client = connect(port, "127.0.0.1");
  client.write("POST /keep HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    + `Content-Length: ${body.length}\r\n\r\n${body}`);
  const path = await begun.promise;
  client.resetAndDestroy();
  // Its place is another's once the server knows that it has left.
  const form = new FormData();
  form.set("note", "nothing");
  const send = async () =>
    (await fetch(`http://127.0.0.1:${port}/keep`, { method: "POST", body: form })).status;
  await askUntil(send, (status) => status === 422);
  await send();
  assert.equal(existsSync(path), true);
  released.resolve();
  await askUntil(() => existsSync(path), (isThere) => !isThere);
});
