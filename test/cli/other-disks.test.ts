// Folders of the data folder that are other disks, by a link or mounted there, and backups to a
// disk that is only read.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createFolderFiles } from "#files/folder.ts";
import { CLI, parley } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

const dirs: string[] = [];
after(() => dirs.forEach((dir) => rmSync(dir, { recursive: true, force: true })));
function newDir(dir = testDataDir()): string {
  dirs.push(dir);
  return dir;
}
async function folderWithAccount(): Promise<string> {
  const dataDir = newDir();
  assert.equal((await parley(dataDir, ["account", "create", "--name", "A"])).code, 0);
  return dataDir;
}

const disk = newDir(mkdtempSync(join(tmpdir(), "parley-disk-")));
const noOtherDisk = statSync(disk).dev === statSync(newDir()).dev;

test("[OP280] folders of the data folder may be other disks: files come to them, and a backup holds them", { skip: noOtherDisk }, async () => {
  const dataDir = await folderWithAccount();
  for (const folder of ["recordings", "scratch"]) {
    mkdirSync(join(disk, folder));
    symlinkSync(join(disk, folder), join(dataDir, folder));
  }
  writeFileSync(join(dataDir, "scratch", "late.wav"), "late");
  const local = join(dataDir, "local.wav");
  writeFileSync(local, "sound");
  const log = createLogger("silent");
  const files = createFolderFiles({ root: dataDir, system: createSystem(), log });
  await files.put("recordings/one.wav", local);
  await files.put("attachments/two.wav", local);
  assert.equal(readFileSync(join(disk, "recordings", "one.wav"), "utf8"), "sound");
  for (const folder of [dataDir, join(dataDir, "recordings")]) {
    assert.deepEqual(readdirSync(join(folder, ".incoming")), []);
  }
  const archive = join(newDir(), "all.tar.gz");
  const made = await parley(dataDir, ["backup", archive]);
  assert.equal(made.code, 0, made.err);
  const restored = newDir();
  assert.equal((await parley(restored, ["restore", archive])).code, 0);
  const found = ["recordings/one.wav", "attachments/two.wav", "scratch/late.wav"].map((name) =>
    [lstatSync(join(restored, name)).isFile(), readFileSync(join(restored, name), "utf8")]);
  assert.deepEqual(found, [[true, "sound"], [true, "sound"], [true, "late"]]);
});
