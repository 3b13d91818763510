// Chooses the program to run: the built one if no source is newer, else the sources themselves.
// Plain JavaScript, because it runs before everything else.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const SOURCES = ["src", "workers", "scripts", "data"];

const changedMs = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function newest(folder) {
  let ms = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    // `local` holds a server's data, not sources.
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
