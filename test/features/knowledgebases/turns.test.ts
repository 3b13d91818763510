// The order in which accounts have their documents read, and which process the kernel ends first.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createExtractor } from "#features/knowledgebases/extraction.ts";
import { createDocumentProcessor } from "#features/knowledgebases/processing.ts";
import { ask } from "#support/api.ts";
import { uploadFile, whenRead as whenReadBy } from "#support/documents/knowledge.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { startProcess } from "#support/process.ts";
import { startTestServer, testDataDir } from "#support/server.ts";

const server = await startTestServer({ env: { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" } });
after(() => server.close());

type Account = Pick<typeof server, "key" | "accountId">;

async function newKnowledgebase({ key }: Account): Promise<string> {
  const { body } = await server.call("POST", "/user/knowledgebases", { key, body: { name: "K" } });
  return `/user/knowledgebases/${(body.data as { id: number }).id}`;
}

async function addSite({ key }: Account, base: string, url: string): Promise<number> {
  const { status, body } = await server.call("POST", `${base}/documents`, {
    key, body: { name: "Site", type: "website", url },
  });
  assert.equal(status, 201, JSON.stringify(body));
  return (body.data as { id: number }).id;
}

async function addFile({ key }: Account, base: string): Promise<number> {
  const form = new FormData();
  form.set("name", "Notes");
  form.set("type", "txt");
  form.set("file", new Blob(["Mine."]), "notes.txt");
  const response = await fetch(`${server.url}/api${base}/documents`, {
    method: "POST", headers: { Authorization: `Bearer ${key}` }, body: form,
  });
  const { data } = await response.json() as { data: { id: number } };
  return data.id;
}

/** Its status once it is read. */
async function whenRead({ key, accountId }: Account, base: string, id: number): Promise<string> {
  const { bus } = server.app.features;
  for (;;) {
    const changed = Promise.withResolvers<void>();
    const stop = bus.subscribe(`account:${accountId}`, () => changed.resolve());
    const { body } = await server.call("GET", `${base}/documents/${id}`, { key });
    const { status } = body.data as { status: string };
    if (status === "processing") await changed.promise;
    stop();
    if (status !== "processing") return status;
  }
}

test("[KB116] an account's slow websites delay neither files nor another's website", async () => {
  const [slow, quick] = [await startEndpoint(), await startEndpoint()];
  slow.answer(() => undefined);
  quick.answer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<p>Quick.</p>");
  });
  const other = await server.newAccount();
  const [pile, base] = [await newKnowledgebase(server), await newKnowledgebase(other)];
  for (let count = 0; count < 4; count += 1) {
    await addSite(server, pile, `${slow.url}/${count}`);
  }
  assert.equal(await whenRead(server, pile, await addFile(server, pile)), "active");
  assert.equal(await whenRead(other, base, await addSite(other, base, quick.url)), "active");
  assert.equal(server.app.features.knowledge.processor.unread(), 4);
  await server.call("DELETE", pile);
  await Promise.all([slow.close(), quick.close()]);
});

test("[KB117] when memory is short the kernel kills an extractor, not the server", {
  skip: process.platform !== "linux",
}, async () => {
  const extractor = createExtractor({
    log: createLogger("silent"), system: createSystem(), allowPrivateNetworks: [],
  });
  const path = join(testDataDir(), "notes.txt");
  writeFileSync(path, "Read.");
  assert.equal((await extractor.extract({ type: "txt", path })).kind, "extracted");
  const adjusted = readFileSync(`/proc/${extractor.pid()}/oom_score_adj`, "utf8");
  assert.equal(adjusted.trim(), "1000");
  await extractor.close();
});

test("[EX131] a document is still read when a service stop signals the extractor too", async () => {
  const site = await startEndpoint();
  const extractor = createExtractor({
    log: createLogger("silent"), system: createSystem(), allowPrivateNetworks: ["127.0.0.1/32"],
  });
  site.answer(({ url }, response) => {
    if (url === "/robots.txt") return void response.writeHead(404).end();
    for (const signal of ["SIGTERM", "SIGINT"]) process.kill(extractor.pid() as number, signal);
    response.setHeader("content-type", "text/html");
    response.end("<p>Read.</p>");
  });
  const source = { type: "website" as const, urls: [`${site.url}/`], follow: 0 };
  const { kind } = await extractor.extract(source);
  assert.equal(kind, "extracted");
  await extractor.close();
  await site.close();
});

test("[EX132] documents are read where processes may not change their priority", {
  skip: spawnSync("strace", ["-o", "/dev/null", "true"]).status !== 0 && "no strace that may refuse",
}, async () => {
  const server = await startProcess(testDataDir(), {}, [
    "strace", "-D", "-f", "-o", "/dev/null", "-e", "trace=setpriority",
    "-e", "inject=setpriority:error=EPERM",
  ]);
  const { url, key } = server;
  const { data: { id } } = await ask(server, "/user/knowledgebases", { name: "K" });
  const document = await uploadFile({ url }, id, "We open at nine.", { key });
  assert.equal((await whenReadBy({ url }, document, { key: key ?? "" })).status, "active");
  const exited = once(server.process, "exit");
  server.process.kill("SIGTERM");
  await exited;
});

test("[KB134] a document with no room to be read is read once there is room, without a restart", async () => {
  const system = createManualSystem();
  const failures = [
    Object.assign(new Error("no space left on device"), { code: "ENOSPC" }),
    new StorageFailure("the database could not be written"),
  ];
  const asked = failures.length + 1;
  const next = <Value>(value: Value): Promise<Value> => {
    const failure = failures.shift();
    return failure ? Promise.reject(failure) : Promise.resolve(value);
  };
  const read = Promise.withResolvers<string>();
  let fetched = 0;
  const processor = createDocumentProcessor({
    store: {
      beginReading: () => Promise.resolve(true),
      finishReading: ({ outcome }: { outcome: { kind: string } }) => {
        read.resolve(outcome.kind);
        return Promise.resolve([]);
      },
    } as never,
    extractor: {
      extract: () => Promise.resolve({ kind: "failed", reason: "Nothing in it." }),
      close: () => Promise.resolve(),
    } as never,
    embedder: null,
    files: {
      fetch: () => {
        fetched += 1;
        return next(true);
      },
    },
    removals: { remove: () => Promise.resolve() },
    folder: server.dataDir, documentsMax: 1, bus: server.app.features.bus, system,
    log: {
      // What waits by the clock is there with the next turn.
      error: () => setImmediate(() => {
        system.advance(LIMITS.filesRetryMs);
        if (processor.unread() === 0) read.reject(new Error("it was given up"));
      }),
    } as never,
  });
  processor.enqueue({ id: 1, accountId: 1, type: "txt", source: { file: "one" } } as never);
  assert.equal(await read.promise, "failed");
  assert.equal(fetched, asked);
  await processor.close();
});

test("[KB462] questions that are deleted while they are about to be read are no error", async () => {
  const said: unknown[] = [];
  const looked = Promise.withResolvers<void>();
  const processor = createDocumentProcessor({
    store: {
      beginReading: () => Promise.resolve(true),
      textOf: () => {
        looked.resolve();
        return Promise.resolve(null);
      },
      finishReading: (read: unknown) => Promise.resolve(said.push(read) && []),
    } as never,
    extractor: { close: () => Promise.resolve() } as never,
    embedder: null,
    files: { fetch: () => Promise.resolve(true) },
    removals: { remove: () => Promise.resolve() },
    folder: server.dataDir, documentsMax: 1, bus: server.app.features.bus,
    system: createManualSystem(),
    log: { error: (about: unknown) => void said.push(about) } as never,
  });
  processor.enqueue({ id: 1, accountId: 1, type: "faq", source: { written: "faq" } } as never);
  await looked.promise;
  while (processor.unread() > 0) await turn();
  assert.deepEqual(said, []);
  await processor.close();
});

/** What a program says of an extractor and a `source` for it, run below `shell`. */
function saidOfExtractor(script: string, shell = ""): { stdout: string; stderr: string } {
  const path = join(testDataDir(), "one.txt");
  writeFileSync(path, "One.");
  const program = `
    import { createSystem } from "#core/system.ts";
    import { createExtractor } from "#features/knowledgebases/extraction.ts";
    const extractor = createExtractor({
      log: console, system: createSystem(), allowPrivateNetworks: [], documentsMax: 1,
    });
    const source = { type: "txt", path: ${JSON.stringify(path)} };
    const statusOf = (error) => error.status ?? error.message;
    ${script}
    process.exit();`;
  return spawnSync("sh", [
    "-c", `${shell} exec "$0" "$@"`,
    process.execPath, "--no-warnings", "--input-type=module", "-e", program,
  ], { encoding: "utf8", timeout: 30_000 });
}

test("[EX140] with too many files open a document is refused for now (503) and can be read later", () => {
  const { stdout, stderr } = saidOfExtractor(`
    const { closeSync, openSync } = await import("node:fs");
    const open = [];
    try {
      for (;;) open.push(openSync("/dev/null"));
    } catch {}
    const refused = await extractor.extract(source).catch(statusOf);
    for (const one of open) closeSync(one);
    setInterval(() => undefined, 1000).unref();
    const { kind } = await extractor.extract(source);
    console.log(refused, kind);`, "ulimit -n 200;");
  assert.equal(stdout, "503 extracted\n", stderr);
});

test("[OP262] a document whose process cannot be forked is refused for now (503), and later ones are read", () => {
  const { stdout, stderr } = saidOfExtractor(`
    const readings = [1, 2, 3].map(() => extractor.extract(source).catch(statusOf));
    // More than a program may be given: Node throws, as it does at a fork without memory.
    process.env.HTTPS_PROXY = "x".repeat(200_000);
    process.kill(extractor.pid(), "SIGKILL");
    const [killed, ...waiting] = await Promise.all(readings);
    const refusals = [killed.kind, ...waiting, await extractor.extract(source).catch(statusOf)];
    delete process.env.HTTPS_PROXY;
    setInterval(() => undefined, 1000).unref();
    const { kind } = await extractor.extract(source);
    console.log(String(refusals), kind);`);
  assert.equal(stdout, "failed,503,503,503 extracted\n", stderr);
});
