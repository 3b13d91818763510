// Serves the chat widget and the dashboard: prebuilt ones from the package, in a checkout those
// that build.ts bundles at the first request. Mounted by mount.ts.
import { RUNS_FROM } from "#core/program.ts";
import { assetOf, assetReply, builtAsset, type Asset } from "#http/asset.ts";
import type { HeaderMap, HttpRequest } from "#http/exchange.ts";
import type { HttpServer } from "#http/server.ts";
import type { BundleName } from "./build.ts";
import { PAGE_HEADERS } from "./pages.ts";

/** Pages of any origin load these, including pages that require CORP. */
const WIDGET_HEADERS: HeaderMap = {
  "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "X-Content-Type-Options": "nosniff",
};

const JAVASCRIPT = "text/javascript; charset=utf-8";
const STYLES = "text/css; charset=utf-8";

/**
 * For a page loaded before an update, which the new second script of the dashboard would not fit.
 */
const UPDATED = assetOf("export const PAGES = null;\n");

/** Only a checkout loads the compiler, and not before it is needed. */
async function bundle(name: BundleName): Promise<Asset> {
  return RUNS_FROM === "sources" ? (await import("./build.ts")).bundlePage(name) : builtAsset(name);
}

export function mountBundles(server: HttpServer): void {
  const serve = (
    name: BundleName, contentType: string, headers: HeaderMap, patterns: string[],
  ): void => {
    let asset: Asset | null = null;
    const handle = async (http: HttpRequest) => {
      asset ??= await bundle(name);
      const version = /^v=([^&]+)/.exec(http.query)?.[1];
      const isOther = version !== undefined && asset.etag !== `"${version}"`;
      return assetReply(isOther ? UPDATED : asset, contentType, http, headers);
    };
    for (const pattern of patterns) {
      server.route({ method: "GET", pattern, bodyBytesMax: 0, handle });
    }
  };
  serve("widget.js", JAVASCRIPT, WIDGET_HEADERS, ["/widget.js", "/embed.js"]);
  serve("widget-chat.js", JAVASCRIPT, WIDGET_HEADERS, ["/widget-chat.js"]);
  serve("widget-call.js", JAVASCRIPT, WIDGET_HEADERS, ["/widget-call.js"]);
  serve("dashboard.js", JAVASCRIPT, PAGE_HEADERS, ["/dashboard/dashboard.js"]);
  for (const name of ["dashboard.css", "dashboard-more.css"] as const) {
    serve(name, STYLES, PAGE_HEADERS, [`/dashboard/${name}`]);
  }
  for (const name of ["dashboard-shared.js", "dashboard-more.js"] as const) {
    serve(name, JAVASCRIPT, PAGE_HEADERS, [`/dashboard/${name}`]);
  }
}
