// The manifest that `npm pack` ships: of the packages only those that dist/ loads from where they are
// installed, as everything else is bundled there. npm packs the file that lies here, so that prepack
// puts the one in the other's place (`manifest.js ship`) and postpack takes it back (`manifest.js keep`).
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const MANIFEST = join(ROOT, "package.json");
/** The clone's, while the other is packed. */
const KEPT = join(ROOT, ".package.json");
/** Written by build.ts. */
const LOADED = join(ROOT, "dist/packages.json");
/** The client's types are written with its. */
const NAMED_BY_TYPES = "openapi-fetch";

export function shippedManifest() {
  const { scripts, imports, overrides, devDependencies, dependencies, ...shipped } =
    JSON.parse(readFileSync(existsSync(KEPT) ? KEPT : MANIFEST, "utf8"));
  const loaded = JSON.parse(readFileSync(LOADED, "utf8"));
  const entries = Object.entries(dependencies)
    .filter(([name]) => name === NAMED_BY_TYPES || loaded.includes(name));
  return { ...shipped, dependencies: Object.fromEntries(entries) };
}

function ship() {
  const text = `${JSON.stringify(shippedManifest(), null, 2)}\n`;
  // An earlier one may have been interrupted before it took its own back.
  if (!existsSync(KEPT)) renameSync(MANIFEST, KEPT);
  writeFileSync(MANIFEST, text);
}

function keep() {
  if (existsSync(KEPT)) renameSync(KEPT, MANIFEST);
}

if (import.meta.main) (process.argv[2] === "ship" ? ship : keep)();
