// `node dies-at-rename.ts COUNT FOLDER FILE`: restores a backup as the command does, and is killed
// with SIGKILL where it would rename its COUNT-th file. The command itself takes seconds to load.
import assert from "node:assert/strict";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { restoreArchive } from "#cli/archive.ts";
import { readConfig } from "#config/config.ts";
import { lockDataDir } from "#storage/engines/sqlite/database.ts";

const [, , count, dataDir = "", file = ""] = process.argv;
const rename = fs.renameSync;
let left = Number(count);
fs.renameSync = (from, to) => {
  left -= 1;
  if (left === 0) process.kill(process.pid, "SIGKILL");
  rename(from, to);
};
syncBuiltinESMExports();
const outcome = readConfig({ PARLEY_DATA_DIR: dataDir });
assert.ok(outcome.kind === "ok");
assert.ok(lockDataDir(dataDir));
await restoreArchive(outcome.config, file, "stamp");
process.exit(0);
