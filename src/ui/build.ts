// Bundles the chat widget and the dashboard from this folder: for the package when it is built
// (scripts/build.ts), in a checkout when somebody asks for them (bundles.ts).
import type * as Esbuild from "esbuild";
import { readFileSync } from "node:fs";
import { programFile } from "#core/program.ts";
import { assetOf, etagOf, type Asset } from "#http/asset.ts";
import { hasTexts, translatable } from "./translatable.ts";

/** Keyed by the end of the file's name: `.js`, `-more.css`; a missing one is served empty. */
type Bundle = Map<string, Asset>;

interface Source {
  entry: string;
  format: "iife" | "esm";
  /** What the entry loads on demand; the code that both share becomes a third script. */
  later?: string;
}

const DASHBOARD: Source = {
  entry: "dashboard/main.tsx", format: "esm", later: "dashboard/pages/more.ts",
};
const SOURCES = {
  "widget.js": { entry: "widget/main.ts", format: "iife" },
  // Loaded when a visitor opens the widget, and when they call.
  "widget-chat.js": { entry: "widget/chat.ts", format: "esm" },
  "widget-call.js": { entry: "widget/call.ts", format: "esm" },
  "dashboard.js": DASHBOARD,
  "dashboard.css": DASHBOARD,
  "dashboard-shared.js": DASHBOARD,
  "dashboard-more.js": DASHBOARD,
  "dashboard-more.css": DASHBOARD,
} satisfies Record<string, Source>;

export type BundleName = keyof typeof SOURCES;
export const BUNDLE_NAMES = Object.keys(SOURCES) as BundleName[];

/**
 * The oldest browsers each runs in (docs/widget.md). The compiler rewrites newer syntax, but not
 * newer functions and styles: test/ui/browsers.test.ts looks for those.
 */
export const OLDEST: Record<string, string[]> = {
  widget: ["chrome108", "edge108", "firefox121", "safari16"],
  dashboard: ["chrome123", "edge123", "firefox125", "safari17.5"],
};

/** Null where the development dependencies are not installed. */
const compiler = (): Promise<typeof Esbuild | null> =>
  import("esbuild").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ERR_MODULE_NOT_FOUND") return null;
    throw error;
  });

/** Makes the dashboard's modules look up their texts in the reader's language. */
const translating: Esbuild.Plugin = {
  name: "texts",
  setup: ({ onLoad }) => onLoad({ filter: /\.tsx?$/ }, ({ path }) => (hasTexts(path)
    ? { contents: translatable(readFileSync(path, "utf8"), path).code, loader: "jsx" } : null)),
};

const EMPTY = assetOf(new Uint8Array());

async function build({ entry, format, later }: Source): Promise<Bundle> {
  const esbuild = await compiler();
  if (!esbuild) {
    const { linkPage } = await import("./link.ts");
    const { js, css } = linkPage(programFile(`src/ui/${entry}`), format);
    return new Map([[".js", assetOf(js)], [".css", assetOf(css)]]);
  }
  const page = entry.slice(0, entry.indexOf("/"));
  const { outputFiles } = await esbuild.build({
    entryPoints: {
      [page]: programFile(`src/ui/${entry}`),
      ...later === undefined ? {} : { [`${page}-more`]: programFile(`src/ui/${later}`) },
    },
    splitting: later !== undefined, chunkNames: `${page}-shared`,
    outdir: "bundle", bundle: true, minify: true, write: false, format,
    target: OLDEST[page] ?? [], jsx: "automatic", jsxImportSource: "preact", plugins: [translating], charset: "utf8",
    legalComments: "none", logLevel: "silent",
  });
  // The compiler is a process of its own, not needed again.
  await esbuild.stop();
  const texts = new Map(outputFiles.map(({ path, text }) =>
    [path.slice(path.lastIndexOf(page) + page.length), text]));
  return new Map([...bound(texts, page)].map(([end, text]) => [end, assetOf(text)]));
}

/**
 * The script loaded on demand imports names from the shared script, which differ in another build:
 * it is requested by its version, and bundles.ts answers an old version as updated.
 */
function bound(texts: Map<string, string>, page: string): Map<string, string> {
  const more = texts.get("-more.js");
  if (more === undefined) return texts;
  const versioned = `${more}// ${etagOf(texts.get("-shared.js") ?? "")}\n`;
  const address = `/${page}-more.js`;
  const version = `?v=${etagOf(versioned).slice(1, -1)}`;
  return new Map([...texts].map(([end, text]) =>
    [end, end === "-more.js" ? versioned : text.replaceAll(address, address + version)]));
}

/** One after the other: stopping the compiler would stop another's work too. */
let working: Promise<unknown> = Promise.resolve();
const bundles = new Map<Source, Promise<Bundle>>();

/** Bundles on the first request; after a failure the next request tries again. */
export async function bundlePage(name: BundleName): Promise<Asset> {
  const source = SOURCES[name];
  let bundle = bundles.get(source);
  if (!bundle) {
    bundle = working.then(() => build(source));
    bundles.set(source, bundle);
    working = bundle.catch(() => bundles.delete(source));
  }
  return (await bundle).get(/(?:-more|-shared)?\.\w+$/.exec(name)?.[0] ?? "") ?? EMPTY;
}
