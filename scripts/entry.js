// Chooses the program that runs: the one that was built, when no source is newer than it, else the
// sources as they lie here. Plain JavaScript, because it runs before everything else.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const SOURCES = ["src", "workers", "scripts", "data"];

const changedMs = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function newest(folder) {
  let ms = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    // Where a server keeps its data nothing is a source.
    if (entry.isDirectory()) ms = Math.max(ms, entry.name === "local" ? 0 : newest(path));
    else ms = Math.max(ms, changedMs(path));
  }
  return ms;
}

function isBuilt() {
  const builtMs = changedMs(join(ROOT, "dist/main.js"));
  if (builtMs === 0) return false;
  const paths = SOURCES.map((folder) => newest(join(ROOT, folder)));
  return Math.max(...paths, changedMs(join(ROOT, "package-lock.json"))) <= builtMs;
}

/** The file to start; `name` is `main` or `cli`. */
export const entryOf = (name) => join(ROOT, isBuilt() ? `dist/${name}.js` : `src/${name}.ts`);
