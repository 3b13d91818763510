// One contract for files, wherever they lie: a folder, and a bucket of a real S3 server.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { buffer } from "node:stream/consumers";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import type { Files } from "#files/files.ts";
import { createFolderFiles } from "#files/folder.ts";
import { createRemovals } from "#files/removals.ts";
import { createS3Files } from "#files/s3.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import { startS3Server } from "#support/vendors/s3-server.ts";

const scratch = mkdtempSync(join(tmpdir(), "parley-files-"));
const s3 = await startS3Server();
const system = createSystem();
const log = createLogger("silent");
const inBucket = (secretKey = s3.key, path = `${s3.bucket}/desk`) => createS3Files({
  endpoint: s3.endpoint, path, accessKey: s3.key, secretKey, region: "us-east-1", system, log,
});
const PLACES: Record<string, Files> = {
  folder: createFolderFiles({ root: join(scratch, "files"), system, log }),
  bucket: inBucket(),
};
// Timers of the system keep no process alive.
const awake = setInterval(() => undefined, 1000);
after(async () => {
  clearInterval(awake);
  await Promise.all(Object.values(PLACES).map((files) => files.close()));
  await s3.close();
  rmSync(scratch, { recursive: true });
});

const MB = 1024 * 1024;
const bytesOf = (length: number, seed = 1): Buffer => {
  const bytes = Buffer.alloc(length);
  for (let at = 0, value = seed; at < length; at += 1) {
    value = (value * 1_103_515_245 + 12_345) % 2 ** 31;
    bytes[at] = value >>> 16;
  }
  return bytes;
};
let count = 0;
async function localFile(bytes: Buffer): Promise<string> {
  const path = join(scratch, `local-${(count += 1)}`);
  await writeFile(path, bytes);
  return path;
}
const everything = async (files: Files, name: string): Promise<Buffer | null> => {
  const found = await files.read(name);
  return found && await buffer(found.body);
};

for (const [place, files] of Object.entries(PLACES)) {
  test(`[FI1] ${place}: a file is put, read, fetched, replaced and removed`, async () => {
    const name = "recordings/one.wav";
    const [one, other] = [bytesOf(3 * MB + 17), bytesOf(1000, 7)];
    assert.equal(await files.read(name), null);
    const copy = join(scratch, `${place}-copy`);
    assert.equal(await files.fetch(name, copy), false);
    await assert.rejects(stat(copy), { code: "ENOENT" });

    const local = await localFile(one);
    await files.put(name, local);
    assert.ok((await readFile(local)).equals(one), "the local file stays");
    assert.ok((await everything(files, name))?.equals(one));
    assert.equal(await files.fetch(name, copy), true);
    assert.ok((await readFile(copy)).equals(one));
    // The copy is the caller's: what is done to it is not done to the file.
    await writeFile(copy, "something else");
    await files.put(name, local);
    assert.ok((await everything(files, name))?.equals(one), "put twice");

    await files.put(name, await localFile(other));
    assert.ok((await everything(files, name))?.equals(other));
    await files.remove(name);
    await files.remove(name);
    assert.equal(await files.read(name), null);
  });

  test(`[FI2] ${place}: a range returns what was asked for, cut at the end of the file and empty beyond it`, async () => {
    const name = "recordings/ranges.wav";
    const bytes = bytesOf(5000);
    await files.put(name, await localFile(bytes));
    for (const [first, last, want] of [
      [10, 19, bytes.subarray(10, 20)], [0, 4999, bytes], [4990, 9_999_999, bytes.subarray(4990)],
      [4999, 4999, bytes.subarray(4999)], [5000, 5010, bytes.subarray(5000)],
    ] as const) {
      const found = await files.read(name, { first, last });
      assert.equal(found?.bytes, 5000, `${first}-${last}`);
      assert.ok((await buffer(found.body)).equals(want), `${first}-${last}`);
    }
    assert.equal(await files.read("recordings/none.wav", { first: 0, last: 9 }), null);
    await files.put("documents/empty", await localFile(Buffer.alloc(0)));
    assert.deepEqual(await everything(files, "documents/empty"), Buffer.alloc(0));
  });

  test(`[FI3] ${place}: concurrent readers and writers see one whole file or the other`, async () => {
    const name = "documents/busy";
    const versions = [bytesOf(MB, 3), bytesOf(MB, 5)];
    const locals = await Promise.all(versions.map(localFile));
    await files.put(name, locals[0]!);
    const seen = await Promise.all(Array.from({ length: 12 }, async (_, index) => {
      if (index % 3 === 0) {
        await files.put(name, locals[index % 2]!);
        return null;
      }
      const path = join(scratch, `${place}-busy-${index}`);
      assert.equal(await files.fetch(name, path), true);
      return readFile(path);
    }));
    for (const bytes of seen) {
      if (bytes) assert.ok(versions.some((version) => version.equals(bytes)), String(bytes.length));
    }
  });

  test(`[FI4] ${place}: a name cannot leave its folder, and a file that does not exist cannot be put`, async () => {
    for (const name of ["../secret", "recordings/../../secret", "secret", "recordings/.part", "/etc/x"]) {
      await assert.rejects(async () => files.read(name), /not a file name/, name);
    }
    await assert.rejects(files.put("documents/none", join(scratch, "none")), { code: "ENOENT" });
    assert.equal(await files.read("documents/none"), null);
  });
}

test("[FI5] a bucket that is down, refuses the key or is missing answers 503, and nothing has happened", async () => {
  const files = PLACES.bucket!;
  const name = "recordings/kept.wav";
  const bytes = bytesOf(2000);
  const local = await localFile(bytes);
  await files.put(name, local);
  const refusal = { name: "Fault", status: 503, retryAfterS: 30 };
  for (const other of [inBucket("wrong"), inBucket(s3.key, "no-such-bucket")]) {
    await assert.rejects(other.put(name, local), refusal);
    await assert.rejects(other.read(name), refusal);
    await assert.rejects(other.remove(name), refusal);
    await other.close();
  }
  await s3.stop();
  await assert.rejects(files.put(name, await localFile(bytesOf(10))), refusal);
  await assert.rejects(files.read(name), refusal);
  await assert.rejects(files.fetch(name, join(scratch, "down")), refusal);
  await s3.start();
  assert.ok((await everything(files, name))?.equals(bytes));
});

/** The store of a database in the folder, and its end. */
async function removalsIn(folder: string) {
  const { removals: store, close } = await openStorage(folder, "inline");
  return { store, close };
}

test("[FI6] a file that could not be removed is noted and removed later, by another process too", async () => {
  const files = PLACES.bucket!;
  const folder = mkdtempSync(join(scratch, "removals-"));
  const name = "recordings/unwanted.wav";
  await files.put(name, await localFile(bytesOf(100)));
  await s3.stop();
  const first = await removalsIn(folder);
  await createRemovals({ files, store: first.store, system, log }).remove(name);
  await first.close();
  await s3.start();
  assert.ok(await everything(files, name));
  const { store, close } = await removalsIn(folder);
  const later = createRemovals({ files, store, system, log });
  await later.retry();
  assert.equal(await files.read(name), null);
  assert.deepEqual(await store.due(system.now(), 10), []);
  await close();
});

test("[FI16] a stored file that nothing refers to is removed after an hour or two, one in use is not", async () => {
  const files = PLACES.folder!;
  const { store, close } = await removalsIn(mkdtempSync(join(scratch, "expected-")));
  let now = system.now();
  const { expect, retry } = createRemovals({ files, store, system: { now: () => now }, log });
  for (const name of ["documents/lost", "documents/stored"]) {
    await expect(name);
    await files.put(name, await localFile(bytesOf(10)));
  }
  // The document's own transaction does this.
  await store.forget({ names: ["documents/stored"] });
  await retry();
  assert.ok(await everything(files, "documents/lost"), "it may still be on its way");
  now += 2 * 60 * 60 * 1_000_000;
  await retry();
  assert.equal(await files.read("documents/lost"), null);
  assert.ok(await everything(files, "documents/stored"));
  await close();
});

test("[FI260] a file that can never be removed does not keep the others", async () => {
  const { store, close } = await removalsIn(mkdtempSync(join(scratch, "kept-")));
  const removed: string[] = [];
  const remove = (name: string) =>
    name === "one" ? Promise.reject(new Error("it is locked")) : Promise.resolve(void removed.push(name));
  await store.note({ names: ["one", "two", "three"], dueAt: 1 });
  const { retry } = createRemovals({ files: { remove }, store, system, log });
  await retry();
  await retry();
  assert.deepEqual(removed.sort(), ["three", "two"]);
  assert.deepEqual(await store.due(system.now(), 10), ["one"]);
  await close();
});

test("[FI14] a folder that cannot be created is refused at once", {
  skip: process.platform === "linux" ? false : "needs /proc",
}, async () => {
  const nowhere = createFolderFiles({ root: "/proc/parley/files", system, log });
  await assert.rejects(nowhere.put("recordings/one.wav", await localFile(bytesOf(10))), /ENOENT/);
});

test("[FI6] when a file can neither be removed nor noted, the log says so", async () => {
  const logged: string[] = [];
  const down = () => Promise.reject(new Error("down"));
  const removals = createRemovals({
    files: { remove: down }, store: { note: down, forget: down, due: down }, system,
    log: {
      ...log, warn: () => undefined, error: (_: object, text: string) => void logged.push(text),
    } as never,
  });
  await removals.remove("recordings/one.wav");
  await removals.retry();
  assert.deepEqual(logged, ["could not record which files to remove"]);
});
