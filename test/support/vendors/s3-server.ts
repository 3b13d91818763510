// A real S3 server on loopback that checks signatures, for tests of files in a bucket; it can be
// stopped and come back at its port.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import S3rver from "@20minutes/s3rver";

const BUCKET = "parley-files";
/** The server's only pair of keys. */
const KEY = "S3RVER";

export interface S3Server {
  /** Settings that make a server keep its files here. */
  env: Record<string, string>;
  endpoint: string;
  bucket: string;
  key: string;
  /** Its files: `<folder>/<bucket>/<name>._S3rver_object`. */
  pathOf(name: string): string;
  /** The next upload stops after its first bytes; resolves once it has. */
  hold(): Promise<void>;
  /**
   * The next upload waits until the function that this resolves to is called, is stored then, and
   * answered with 500; resolves once all of it has come.
   */
  failStored(): Promise<() => void>;
  /** The next removal is neither carried out nor answered; resolves once it was requested. */
  holdRemoval(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Calls `held` after the first piece and never goes on. */
async function* stuckAfterFirst(content: AsyncIterable<Buffer>, held: () => void) {
  for await (const piece of content) {
    yield piece;
    held();
    await new Promise(() => undefined);
  }
}

type Take = () => ((release: () => void) => void) | null;

async function run(
  directory: string, port: number, takeHold: Take, takeFailure: Take, takeHoldOfRemoval: Take,
): Promise<{ server: S3rver; port: number }> {
  const server = new S3rver({
    address: "127.0.0.1", port, silent: true, directory, vhostBuckets: false,
    configureBuckets: [{ name: BUCKET }],
  });
  const { store } = server;
  const put = store.putContent.bind(store);
  // Unlike s3rver by itself, but like every bucket: an upload that is cut off is not stored.
  store.putContent = async (path, content) => {
    const partial = `${path}.${randomUUID()}`;
    const held = takeHold();
    const failing = takeFailure();
    const stored = await put(partial, held && !Buffer.isBuffer(content)
      ? Readable.from(stuckAfterFirst(content, () => held(() => undefined))) : content);
    if (failing) await new Promise<void>((release) => failing(release));
    renameSync(partial, path);
    if (failing) throw new Error("it is stored all the same");
    return stored;
  };
  const remove = store.deleteObject.bind(store);
  store.deleteObject = async (bucket, key) => {
    const held = takeHoldOfRemoval();
    if (!held) return remove(bucket, key);
    held(() => undefined);
    await new Promise(() => undefined);
  };
  const address = await server.run();
  return { server, port: address.port };
}

export async function startS3Server(): Promise<S3Server> {
  const folder = mkdtempSync(join(tmpdir(), "parley-s3-"));
  const holds: Record<"upload" | "failure" | "removal", ReturnType<Take>> = {
    upload: null, failure: null, removal: null,
  };
  const taking = (what: keyof typeof holds): Take => () => {
    const taken = holds[what];
    holds[what] = null;
    return taken;
  };
  const takes = [taking("upload"), taking("failure"), taking("removal")] as const;
  const first = await run(folder, 0, ...takes);
  const { port } = first;
  let running: S3rver | null = first.server;
  const stop = async (): Promise<void> => {
    if (!running) return;
    const closed = once(running.httpServer, "close");
    running.httpServer.close();
    running.httpServer.closeAllConnections();
    running = null;
    await closed;
  };
  const endpoint = `http://127.0.0.1:${port}`;
  return {
    env: {
      PARLEY_FILES_URL: `s3+${endpoint}/${BUCKET}/desk`,
      PARLEY_S3_ACCESS_KEY: KEY, PARLEY_S3_SECRET_KEY: KEY,
    },
    endpoint, bucket: BUCKET, key: KEY,
    pathOf: (name) => join(folder, BUCKET, "desk", `${name}._S3rver_object`),
    hold: () => new Promise((resolve) => (holds.upload = () => resolve())),
    failStored: () => new Promise((resolve) => (holds.failure = resolve)),
    holdRemoval: () => new Promise((resolve) => (holds.removal = () => resolve())),
    stop,
    start: async () => {
      running = (await run(folder, port, ...takes)).server;
    },
    close: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
