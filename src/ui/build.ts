// Serves what is bundled from this folder: the chat widget and the dashboard. Bundled in memory at
// the first request, so there is no build step and nothing to keep in step with the sources.
// Mounted by app.ts.
import { join } from "node:path";
import type { Format } from "esbuild";
import { assetOf, assetReply as reply, type Asset } from "#http/asset.ts";
import type { HeaderMap, HttpRequest, Reply } from "#http/exchange.ts";
import type { HttpServer } from "#http/server.ts";
import { PAGE_HEADERS } from "./pages.ts";

interface Bundle {
  js: Asset;
  /** Empty where no stylesheet is imported. */
  css: Asset;
}

interface Source {
  entry: string;
  format: Format;
}

const WIDGET: Source = { entry: join(import.meta.dirname, "widget", "main.ts"), format: "iife" };
/** What the widget loads when somebody calls. */
const CALL: Source = { entry: join(import.meta.dirname, "widget", "call.ts"), format: "esm" };
const DASHBOARD: Source = {
  entry: join(import.meta.dirname, "dashboard", "main.tsx"), format: "esm",
};
/** Browsers with everything the two use: dialogs, adopted stylesheets, look-behind. */
const TARGETS = ["chrome119", "edge119", "firefox125", "safari17"];
/** Loaded by pages of any origin, also by those that ask for CORP. */
const WIDGET_HEADERS: HeaderMap = {
  "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "X-Content-Type-Options": "nosniff",
};

async function build({ entry, format }: Source): Promise<Bundle> {
  const esbuild = await import("esbuild");
  const { outputFiles } = await esbuild.build({
    entryPoints: [entry], outdir: "bundle", bundle: true, minify: true, write: false, format,
    target: TARGETS, jsx: "automatic", jsxImportSource: "preact", charset: "utf8",
    legalComments: "none", logLevel: "silent",
  });
  // The compiler is a process of its own, not needed again.
  await esbuild.stop();
  const find = (suffix: string): Asset =>
    assetOf(outputFiles.find(({ path }) => path.endsWith(suffix))?.contents ?? new Uint8Array());
  return { js: find(".js"), css: find(".css") };
}

/** One after the other: stopping the compiler would stop another's work too. */
let working: Promise<unknown> = Promise.resolve();
function bundle(source: Source): Promise<Bundle> {
  const bundled = working.then(() => build(source));
  working = bundled.catch(() => undefined);
  return bundled;
}

export const bundleWidget = async (): Promise<Asset> => (await bundle(WIDGET)).js;
export const bundleCall = async (): Promise<Asset> => (await bundle(CALL)).js;
export const bundleDashboard = (): Promise<Bundle> => bundle(DASHBOARD);

/** Bundles at the first request; a failure is tried again by the next. */
function once<Bundled>(make: () => Promise<Bundled>): () => Promise<Bundled> {
  let bundled: Promise<Bundled> | null = null;
  return () => bundled ??= make().catch((error: unknown) => {
    bundled = null;
    throw error;
  });
}

const JAVASCRIPT = "text/javascript; charset=utf-8";
const STYLES = "text/css; charset=utf-8";

export function mountBundles(server: HttpServer): void {
  const get = (pattern: string, handle: (http: HttpRequest) => Promise<Reply>): void =>
    server.route({ method: "GET", pattern, bodyBytesMax: 0, handle });
  const widget = once(bundleWidget);
  for (const pattern of ["/widget.js", "/embed.js"]) {
    get(pattern, async (http) => reply(await widget(), JAVASCRIPT, http, WIDGET_HEADERS));
  }
  const call = once(bundleCall);
  get("/widget-call.js", async (http) => reply(await call(), JAVASCRIPT, http, WIDGET_HEADERS));
  const dashboard = once(bundleDashboard);
  get("/dashboard/dashboard.js", async (http) =>
    reply((await dashboard()).js, JAVASCRIPT, http, PAGE_HEADERS));
  get("/dashboard/dashboard.css", async (http) =>
    reply((await dashboard()).css, STYLES, http, PAGE_HEADERS));
}
