// Folders of the data folder that are other disks, by a link or mounted there, and backups to a
// disk that is only read and to what is no file.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs, {
  existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync,
  symlinkSync, writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { copyKept, openFiles } from "#app/files.ts";
import { makeArchive } from "#cli/archive.ts";
import { readConfig } from "#config/config.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem, nextTurn } from "#core/system.ts";
import { createFolderFiles } from "#files/folder.ts";
import { lockBackups } from "#storage/engines/sqlite/database.ts";
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

test("[OP280] folders of the data folder may be on other disks: files get there, and a backup has them", { skip: noOtherDisk }, async () => {
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

test("[OP286] a backup has a recording removed meanwhile from another disk, and its hard link goes with the backup", { skip: noOtherDisk }, async () => {
  const dataDir = await folderWithAccount();
  const recordings = newDir(mkdtempSync(join(tmpdir(), "parley-disk-")));
  symlinkSync(recordings, join(dataDir, "recordings"));
  const sound = join(recordings, "one.wav");
  writeFileSync(sound, "sound");
  const archive = join(newDir(), "all.tar.gz");
  const read = readConfig({ PARLEY_DATA_DIR: dataDir });
  assert.ok(read.kind === "ok");
  const making = makeArchive(read.config, archive);
  const isLinked = () => readdirSync(dataDir).some((name) => name.startsWith(".staging-")
    && existsSync(join(dataDir, name, "recordings", "one.wav")));
  while (!isLinked()) await nextTurn();
  rmSync(sound);
  await making;
  const restored = newDir();
  assert.equal((await parley(restored, ["restore", archive])).code, 0);
  assert.equal(readFileSync(join(restored, "recordings", "one.wav"), "utf8"), "sound");
  assert.deepEqual(readdirSync(recordings), []);

  // As one that was killed leaves it.
  for (const folder of [join(dataDir, ".staging-1", "recordings"), join(recordings, ".staging-1")]) {
    mkdirSync(folder, { recursive: true });
  }
  writeFileSync(join(recordings, ".staging-1", "two.wav"), "sound");
  lockBackups(dataDir)!.release();
  assert.deepEqual([readdirSync(recordings), existsSync(join(dataDir, ".staging-1"))], [[], false]);
});

test("[CL181] [CL182] a backup of a data folder on a disk without hard links is complete; folders come back private", async (t) => {
  const dataDir = await folderWithAccount();
  mkdirSync(join(dataDir, "recordings"));
  writeFileSync(join(dataDir, "recordings", "one.wav"), "sound");
  const archive = join(newDir(), "all.tar.gz");
  const read = readConfig({ PARLEY_DATA_DIR: dataDir });
  assert.ok(read.kind === "ok");
  t.mock.method(fs, "linkSync", () => {
    throw Object.assign(new Error("ENOSYS: function not implemented, link"), { code: "ENOSYS" });
  });
  syncBuiltinESMExports();
  try {
    await makeArchive(read.config, archive);
  } finally {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  }
  const restored = newDir();
  assert.equal((await parley(restored, ["restore", archive])).code, 0);
  assert.equal(readFileSync(join(restored, "recordings", "one.wav"), "utf8"), "sound");
  assert.equal(statSync(join(restored, "recordings")).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(join(dataDir, "recordings")), ["one.wav"]);
});

test("[OP285] a disk's own root entries, as lost+found, are no files: others are moved, and nothing waits", async () => {
  const [dataDir, shared] = [newDir(), newDir()];
  for (const folder of ["recordings", "scratch"]) {
    mkdirSync(join(dataDir, folder, "lost+found"), { recursive: true });
  }
  writeFileSync(join(dataDir, "recordings", "one.wav"), "sound");
  const read = readConfig({ PARLEY_DATA_DIR: dataDir, PARLEY_FILES_URL: `file://${shared}` });
  assert.ok(read.kind === "ok");
  const options = { config: read.config, system: createSystem(), log: createLogger("silent") };
  const places = await openFiles(options);
  assert.equal((await copyKept(options, new Set())).copied, 1);
  await places.takeAlong({ remove: () => Promise.resolve(), retry: () => Promise.resolve() });
  await places.close();
  assert.equal(readFileSync(join(shared, "recordings", "one.wav"), "utf8"), "sound");
  assert.deepEqual(readdirSync(join(dataDir, "recordings")), ["lost+found"]);
  const { out } = await parley(dataDir, ["doctor"]);
  assert.doesNotMatch(out, /waiting in the data folder/);
});

const mayNotMount = spawnSync("unshare", ["-m", "true"]).status !== 0;

/** What the script printed where something is mounted at `place`; `$@` is the command. */
function withMounted(place: string, what: string, dataDir: string, script: string): string {
  const { stdout, stderr } = spawnSync(
    "unshare",
    ["-m", "sh", "-c", `mount ${what} "$0" && exec 2>&1; ${script}`, place,
      process.execPath, CLI],
    { encoding: "utf8", env: { PATH: process.env.PATH, PARLEY_DATA_DIR: dataDir } });
  assert.equal(stderr, "");
  return stdout;
}

test("[CL160] a restore over a mount says to unmount it, then works; a read-only backup folder is reported", { skip: mayNotMount }, async () => {
  const dataDir = await folderWithAccount();
  mkdirSync(join(dataDir, "recordings"));
  writeFileSync(join(dataDir, "recordings", "one.wav"), "sound");
  const archive = join(newDir(), "all.tar.gz");
  assert.equal((await parley(dataDir, ["backup", archive])).code, 0);

  const restored = newDir();
  const mounted = join(restored, "recordings");
  mkdirSync(mounted);
  const said = withMounted(mounted, `--bind ${newDir()}`, restored,
    `"$@" restore ${archive}; umount "$0"; "$@" restore ${archive}; "$@" account list`);
  const refused = `parley: ${mounted} is mounted, so it cannot be moved aside: unmount it and try again\n`;
  assert.ok(said.startsWith(refused), said);
  assert.match(said, /account_id .*\n1 +A /);
  assert.equal(readFileSync(join(mounted, "one.wav"), "utf8"), "sound");

  const readOnly = newDir();
  assert.equal(withMounted(readOnly, "-t tmpfs -o ro none", dataDir, '"$@" backup "$0/all.tar.gz"'),
    `parley: ${readOnly}/all.tar.gz cannot be written: the file system is read-only\n`);
});

test("[CL179] a backup is neither written to nor read from a device or pipe, even with --force; it needs a name, not -", async () => {
  const dataDir = await folderWithAccount();
  const pipe = join(newDir(), "pipe");
  assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
  for (const command of [["backup"], ["backup", "--force"], ["restore", "--force"]]) {
    for (const file of [pipe, "-"]) {
      assert.deepEqual(await parley(dataDir, [...command, file]), {
        code: 1, out: "",
        err: `parley: ${file} is not a file: backups are written to and read from a file\n`,
      });
    }
    const unnamed = await parley(dataDir, [...command, ""]);
    assert.deepEqual([unnamed.code, unnamed.err], [64, "parley: FILE is required\n"]);
  }
  assert.ok(lstatSync(pipe).isFIFO());
});

test("[CL178] with a read-only temporary folder doctor still tests the file store, and openapi says so", { skip: mayNotMount }, async () => {
  const [dataDir, temporary] = [await folderWithAccount(), newDir()];
  const said = withMounted(temporary, "-t tmpfs -o ro none", dataDir, 'export TMPDIR="$0"; '
    + `PARLEY_FILES_URL=file://${newDir()} "$@" doctor | grep files; "$@" openapi`);
  assert.match(said, /^ok +files +\S+ stores and returns files\n/);
  assert.ok(said.endsWith(
    `parley: ${temporary} cannot be written: the file system is read-only\n`), said);
});

test("[CL162] [CL176] a restore into a partly mounted folder, of the same disk too, is refused before anything moves; the server runs on", { skip: mayNotMount }, async () => {
  const [dataDir, source] = [await folderWithAccount(), await folderWithAccount()];
  const archive = join(newDir(), "all.tar.gz");
  assert.equal((await parley(source, ["backup", archive])).code, 0);
  const mounted = join(dataDir, "recordings");
  mkdirSync(mounted);
  const names = readdirSync(dataDir);
  // As the volumes of a container are, the second is of the same disk.
  for (const what of ["-t tmpfs none", `--bind ${newDir()}`]) {
    const said = withMounted(mounted, what, dataDir,
      `"$@" restore --force ${archive}; "$@" account list`);
    assert.match(said, new RegExp(
      `^parley: ${mounted} is mounted, so it cannot be moved aside: unmount it and try again\naccount_id`));
    assert.deepEqual(readdirSync(dataDir).filter((name) => !names.includes(name)), []);
  }
});

test("[CL177] a mount that blocks a half-done restore is named; a mounted database is refused", { skip: mayNotMount }, async () => {
  const dataDir = await folderWithAccount();
  const [mounted, staging] = [join(dataDir, "recordings"), join(dataDir, ".restoring-1")];
  for (const [folder, text] of [[mounted, "old"], [join(staging, "recordings"), "new"]] as const) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "one.wav"), text);
  }
  writeFileSync(join(dataDir, "restoring.json"), JSON.stringify({
    staging, stamp: "1", names: ["recordings"], coming: ["recordings"],
  }));
  const said = withMounted(mounted, "-t tmpfs none", dataDir,
    '"$@" account list; PARLEY_PORT=0 "$@" serve; echo $?; umount "$0"; "$@" account list');
  const why = `an interrupted restore cannot be finished: ${mounted} is mounted, so it cannot be moved aside:`
    + " unmount it and try again";
  assert.ok(said.startsWith(`parley: ${why}\n`
    + `parley: the data folder ${dataDir} cannot be written: ${why}; see PARLEY_DATA_DIR\n69\naccount_id`), said);
  assert.equal(readFileSync(join(mounted, "one.wav"), "utf8"), "new");

  const archive = join(newDir(), "all.tar.gz");
  assert.equal((await parley(dataDir, ["backup", archive])).code, 0);
  const database = join(dataDir, "parley.db");
  const elsewhere = join(newDir(), "parley.db");
  writeFileSync(elsewhere, readFileSync(database));
  assert.equal(withMounted(database, `--bind ${elsewhere}`, dataDir, `"$@" restore --force ${archive}`),
    `parley: ${database} is mounted, so it cannot be moved aside: unmount it and try again\n`);
});

const layers = newDir();
const layered = join(layers, "all");
for (const name of ["lower/data", "upper", "work", "all"]) mkdirSync(join(layers, name), { recursive: true });
const overlay = `-t overlay -o lowerdir=${layers}/lower,upperdir=${layers}/upper,workdir=${layers}/work none`;
const noLayers = mayNotMount
  || spawnSync("unshare", ["-m", "sh", "-c", `mount ${overlay} ${layered}`]).status !== 0;

test("[CL180] a restore replaces a data folder of an image layer, without a volume, and keeps the old one", { skip: noLayers }, async () => {
  const [source, baked] = [await folderWithAccount(), join(layers, "lower", "data")];
  for (const [folder, text] of [[baked, "old"], [source, "new"]] as const) {
    mkdirSync(join(folder, "recordings"));
    writeFileSync(join(folder, "recordings", "one.wav"), text);
  }
  const archive = join(newDir(), "all.tar.gz");
  assert.equal((await parley(source, ["backup", archive])).code, 0);
  const said = withMounted(layered, overlay, join(layered, "data"), `"$@" restore --force ${archive}; `
    + '"$@" account list; cat "$0"/data/recordings/one.wav "$0"/data/recordings.before*/one.wav');
  assert.match(said, /^restored .*\naccount_id .*\n1 +A .*\nnewold$/);
});

const PUT = `
import { createSystem } from "#core/system.ts";
import { createFolderFiles } from "#files/folder.ts";
const files = createFolderFiles({ root: process.env.PARLEY_DATA_DIR, system: createSystem() });
await files.put("recordings/one.wav", process.argv[1]);
`;

test("[OP287] a recording reaches its folder on another disk when the data folder's disk is full", { skip: mayNotMount }, () => {
  const [dataDir, other] = [newDir(), newDir()];
  for (const folder of ["recordings", "scratch"]) mkdirSync(join(other, folder));
  const sound = join(other, "scratch", "one.wav");
  writeFileSync(sound, new Uint8Array(2 ** 20));
  const said = withMounted(dataDir, "-t tmpfs -o size=64k none", dataDir,
    `ln -s ${other}/* "$0" && "$1" --input-type=module -e '${PUT}' ${sound}`);
  assert.equal(said, "");
  assert.equal(statSync(join(other, "recordings", "one.wav")).ino, statSync(sound).ino);
});
