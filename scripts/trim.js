// Trims a clone without development's packages once, before its server starts (start.js); where
// nothing may be deleted, everything stays.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { trimPackages } from "#cli/trimming.js";

const MODULES = join(import.meta.dirname, "../node_modules");
/** A read-only folder is so on purpose. */
const FORBIDDEN = ["EROFS", "EACCES", "EPERM"];
/** Files for debugging and type checking. */
const DEVELOPED_WITH = /\.map$|\.d\.[cm]?ts$/;

export function trim() {
  if (existsSync(join(MODULES, "typescript"))) return;
  try {
    if (trimPackages(MODULES).length === 0) return;
    for (const path of readdirSync(MODULES, { recursive: true })) {
      if (DEVELOPED_WITH.test(path)) rmSync(join(MODULES, path), { force: true });
    }
  } catch (error) {
    if (FORBIDDEN.includes(error.code)) return;
    process.stderr.write(`parley: node_modules was not trimmed: ${error.message}\n`);
  }
}
