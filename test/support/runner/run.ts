// Runs every test (`npm test`): prepares what all of them load, distributes the files over some
// processes, and runs a few of these at a time: those that wait for calls in real time beside those
// that keep a processor busy.
import { build, stop } from "esbuild";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { run } from "node:test";
import { spec, tap } from "node:test/reporters";
import { entryOf } from "#scripts/entry.js";
import { databasePath } from "#storage/engines/sqlite/database.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import { BUNDLED, CACHE, PACKAGES, PLACES_FILE, SOURCES_FILE } from "./prepared.js";

const ROOT = join(import.meta.dirname, "../../..");
const AT_A_TIME = 4;
/** Each runs some files one after another (one-process.ts). */
const PROCESSES = 16;

/** Writes all sources into one file, with an index: a test file loads some of them. */
function prepareSources(): void {
  const paths = globSync("{src,test,workers,scripts,bench}/**/*.ts", { cwd: ROOT })
    .filter((path) => !path.endsWith(".d.ts")).map((path) => join(ROOT, path));
  let end = 0;
  const places: Record<string, [start: number, end: number]> = {};
  const texts = paths.map((path) => {
    const text = Buffer.from(stripTypeScriptTypes(readFileSync(path, "utf8")));
    places[path] = [end, end += text.length];
    return text;
  });
  writeFileSync(SOURCES_FILE, Buffer.concat(texts));
  writeFileSync(PLACES_FILE, JSON.stringify(places));
}

async function preparePackages(): Promise<void> {
  await build({
    entryPoints: Object.fromEntries(Object.entries(BUNDLED).map(([name, file]) => [file, name])),
    absWorkingDir: ROOT, outdir: PACKAGES, bundle: true, splitting: true, format: "esm",
    platform: "node", logLevel: "warning",
  });
  // The compiler is a process of its own, not needed again.
  await stop();
  writeFileSync(join(PACKAGES, "package.json"), '{ "type": "module" }');
}

/** Servers start on a copy of a new database, which has only the schema. */
async function prepareDatabase(): Promise<void> {
  const folder = mkdtempSync(join(CACHE, "data-"));
  await (await openStorage(folder, "inline")).close();
  process.env.PREPARED_DATABASE = databasePath(folder);
}

/** The program of a process that runs these files. */
function prepareProcess(number: number, files: string[]): string {
  const path = join(CACHE, `process-${number}.js`);
  const runner = join(import.meta.dirname, "one-process.ts");
  writeFileSync(path, `import { runFiles } from ${JSON.stringify(runner)};
await runFiles(${JSON.stringify(files)});\n`);
  return path;
}

if (!entryOf("main").endsWith(".js")) throw new Error("dist/ is older than the sources: npm run build");
rmSync(CACHE, { recursive: true, force: true });
mkdirSync(CACHE, { recursive: true });
prepareSources();
await preparePackages();
await prepareDatabase();

const files = globSync("test/**/*.test.ts", { cwd: ROOT }).map((path) => join(ROOT, path))
  .map((path) => ({ path, bytes: statSync(path).size }))
  .toSorted((a, b) => b.bytes - a.bytes).map(({ path }) => path);
run({
  files: Array.from({ length: PROCESSES }, (_, at) =>
    prepareProcess(at, files.filter((_, index) => index % PROCESSES === at))),
  concurrency: AT_A_TIME,
  execArgv: ["--import", join(import.meta.dirname, "prepared.js")],
})
  .on("test:fail", () => {
    process.exitCode = 1;
  })
  .compose(process.stdout.isTTY ? spec : tap)
  .pipe(process.stdout);
