// Loads a test file from what the runner has prepared once for all of them (run.ts): sources without
// their types, packages of hundreds of files as one each, and threads and pages as they were built.
// Without it a file of tests takes a second longer to load. Programs that tests start do without,
// and run as they are shipped. Plain JavaScript, because each thread loads it.
import { readFileSync } from "node:fs";
import { enableCompileCache, registerHooks, stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isMainThread } from "node:worker_threads";

export const CACHE = join(import.meta.dirname, "../../../node_modules/.cache/tests");
export const SOURCES_FILE = join(CACHE, "sources.js");
/** Where each file is in `SOURCES_FILE`, in bytes. */
export const PLACES_FILE = join(CACHE, "places.json");
export const PACKAGES = join(CACHE, "packages");
/** Packages of a few hundred files, which are bundled; their own modules get the originals. */
export const BUNDLED = {
  "@sinclair/typebox": "typebox",
  "@sinclair/typebox/compiler": "typebox-compiler",
  "@sinclair/typebox/value": "typebox-value",
  "libphonenumber-js/core": "libphonenumber-core",
  "@redocly/ajv/dist/2020.js": "ajv-2020",
};
const ROOT = new URL("../../../", import.meta.url);
const { imports } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
const ROOMS = Object.fromEntries(Object.entries(imports)
  .map(([name, folder]) => [name.slice(0, -1), new URL(folder.slice(0, -1), ROOT).href]));
const PROGRAM = new URL("src/base/core/program.ts", ROOT).href;
/** Replaces the module that says whether the program runs built. */
const BUILT_PROGRAM = new URL("built-program.js", import.meta.url).href;

/** Replaces `node:test` for tests. */
const ONE_PROCESS = new URL("one-process.ts", import.meta.url).href;

/** Resolves our imports, for which Node tries many places; null: Node resolves it. */
function placeOf(specifier, parent) {
  if (specifier === "node:test") return parent === ONE_PROCESS ? null : ONE_PROCESS;
  if (parent === undefined || parent.includes("/node_modules/")) return null;
  const file = BUNDLED[specifier];
  if (file !== undefined) return pathToFileURL(join(PACKAGES, `${file}.js`)).href;
  if (!specifier.endsWith(".ts")) return null;
  if (specifier.startsWith(".")) return new URL(specifier, parent).href;
  const room = specifier.slice(0, specifier.indexOf("/") + 1);
  return room in ROOMS ? ROOMS[room] + specifier.slice(room.length) : null;
}

/** Not called in the runner, which is loaded before anything is prepared. */
function prepare() {
  enableCompileCache(CACHE);
  /** Threads run built files, and need no sources. */
  const places = isMainThread ? JSON.parse(readFileSync(PLACES_FILE, "utf8")) : {};
  const sources = isMainThread ? readFileSync(SOURCES_FILE) : Buffer.alloc(0);
  registerHooks({
    resolve(specifier, context, next) {
      const url = placeOf(specifier, context.parentURL);
      if (url === null) return next(specifier, context);
      return { url: url === PROGRAM ? BUILT_PROGRAM : url, format: "module", shortCircuit: true };
    },
    load(url, context, next) {
      if (!url.startsWith("file:") || !url.endsWith(".ts")) return next(url, context);
      const path = fileURLToPath(url);
      const place = places[path];
      const source = place ? sources.toString("utf8", ...place)
        : stripTypeScriptTypes(readFileSync(path, "utf8"));
      return { format: "module", source, shortCircuit: true };
    },
  });
}

if (process.env.NODE_TEST_CONTEXT !== undefined) prepare();
