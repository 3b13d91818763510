// Deletes from node_modules what this machine cannot load: packages bring their binaries for every
// platform, and sources to compile them from. In a clone without development's packages that happens
// once, before the server starts (start.js); where nothing may be deleted, everything stays. In the
// folder of somebody else, where the package is installed, `parley trim` does it when it is asked to.
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
/** What these are compiled from, and programs against the Node that comes as a package. */
const COMPILED_FROM = ["better-sqlite3/deps", `node-${platform}-${arch}/include`];
/** What is debugged with and checked against. */
const DEVELOPED_WITH = /\.map$|\.d\.[cm]?ts$/;

const list = (folder) => existsSync(folder) ? readdirSync(folder) : [];

/** Paths below `modules`; none where they are gone, or where it cannot be judged what is loaded. */
function unused(modules) {
  if (!versions.node.startsWith(`${NODE_MAJOR}.`)) return [];
  const foreign = Object.entries(BINARIES).flatMap(([folder, loaded]) => {
    const files = list(join(modules, folder));
    const isKnown = files.some((file) => loaded.includes(file));
    return isKnown ? files.filter((file) => !loaded.includes(file)).map((file) => join(folder, file)) : [];
  });
  if (foreign.length === 0) return [];
  return [...foreign, ...COMPILED_FROM.filter((path) => existsSync(join(modules, path)))];
}

const remove = (modules, paths) =>
  paths.forEach((path) => rmSync(join(modules, path), { recursive: true, force: true }));

/** Answers the paths below `modules` that were deleted. */
export function trimPackages(modules) {
  const paths = unused(modules);
  remove(modules, paths);
  return paths;
}

/** The clone's own, unless it is where Parley is developed. */
export function trim() {
  if (existsSync(join(MODULES, "typescript"))) return;
  try {
    if (trimPackages(MODULES).length === 0) return;
    remove(MODULES, readdirSync(MODULES, { recursive: true }).filter((path) => DEVELOPED_WITH.test(path)));
  } catch (error) {
    process.stderr.write(`parley: node_modules was not trimmed: ${error.message}\n`);
  }
}
