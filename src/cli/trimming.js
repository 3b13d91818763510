// Deletes from node_modules what this machine cannot load: packages bring their binaries for every
// platform, and sources to compile them from. Used by `parley trim`, where the package is
// installed, and by scripts/trim.js in a clone. Plain JavaScript, because there it runs before
// everything else.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** The Node that runs the server; another one loads other binaries. */
const NODE_MAJOR = "22";
const { arch, platform, versions } = process;
/** The binaries loaded on this machine, by folder. */
const BINARIES = {
  "uWebSockets.js/dist/bin": [`uws_${platform}_${arch}_${versions.modules}.node`],
  "better-sqlite3/prebuilds": [`${platform}-${arch}.node`, `${platform}musl-${arch}.node`],
};
/** The sources these are compiled from, and headers for the Node that comes as a package. */
const COMPILED_FROM = ["better-sqlite3/deps", `node-${platform}-${arch}/include`];

const list = (folder) => existsSync(folder) ? readdirSync(folder) : [];

/** Paths below `modules`; none if they are gone, or if it is unknown what Node loads. */
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

/** Answers the paths below `modules` that were deleted. */
export function trimPackages(modules) {
  const paths = unused(modules);
  for (const path of paths) rmSync(join(modules, path), { recursive: true, force: true });
  return paths;
}
