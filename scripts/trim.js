// Deletes from node_modules what this machine cannot load: packages bring their binaries for every
// platform, and sources to compile them from. For an installation without development's packages,
// once, before the server starts (start.js); where nothing may be deleted, everything stays.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const MODULES = join(import.meta.dirname, "../node_modules");
/** The Node that runs the server; another one loads other binaries. */
const NODE_MAJOR = "22";
const { arch, platform, versions } = process;
/** Folder → what of it is loaded here. */
const BINARIES = {
  "uWebSockets.js/dist/bin": [`uws_${platform}_${arch}_${versions.modules}.node`],
  "better-sqlite3/prebuilds": [`${platform}-${arch}.node`, `${platform}musl-${arch}.node`],
};
/** What is compiled from, debugged with and checked against. */
const SOURCES = /^(?:better-sqlite3[/\\]deps|node-[\w-]+[/\\]include)$|\.map$|\.d\.[cm]?ts$/;

const list = (folder) => existsSync(folder) ? readdirSync(folder) : [];

/** Paths below node_modules; none where it is development's, is trimmed, or cannot be judged. */
function superfluous() {
  if (!versions.node.startsWith(`${NODE_MAJOR}.`) || existsSync(join(MODULES, "typescript"))) return [];
  const foreign = Object.entries(BINARIES).flatMap(([folder, loaded]) => {
    const files = list(join(MODULES, folder));
    const isKnown = files.some((file) => loaded.includes(file));
    return isKnown ? files.filter((file) => !loaded.includes(file)).map((file) => join(folder, file)) : [];
  });
  if (foreign.length === 0) return [];
  return [...foreign, ...readdirSync(MODULES, { recursive: true }).filter((path) => SOURCES.test(path))];
}

export function trim() {
  try {
    for (const path of superfluous()) rmSync(join(MODULES, path), { recursive: true, force: true });
  } catch (error) {
    process.stderr.write(`parley: node_modules was not trimmed: ${error.message}\n`);
  }
}
