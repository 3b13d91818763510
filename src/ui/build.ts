// Serves the chat widget: src/ui/widget bundled in memory when it is first asked for, so there is
// no build step and nothing to keep in step with the sources. Mounted by app.ts.
import { hash } from "node:crypto";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { HeaderMap, HttpRequest, Reply } from "../http/exchange.ts";
import type { HttpServer } from "../http/server.ts";

export interface Bundle {
  plain: Buffer;
  gzip: Buffer;
  etag: string;
}

const WIDGET = join(import.meta.dirname, "widget", "main.ts");
/** Browsers with everything the widget uses: dialogs, adopted stylesheets, look-behind. */
const TARGETS = ["chrome119", "edge119", "firefox125", "safari17"];
/** Loaded by pages of any origin, also by those that ask for CORP. */
const HEADERS: HeaderMap = {
  "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "X-Content-Type-Options": "nosniff",
  Vary: "Accept-Encoding",
};

export async function bundleWidget(): Promise<Bundle> {
  const { build, stop } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [WIDGET], bundle: true, minify: true, write: false, format: "iife",
    target: TARGETS, charset: "utf8", legalComments: "none", logLevel: "silent",
  });
  // The compiler is a process of its own, not needed again.
  await stop();
  const plain = Buffer.from(outputFiles[0]?.contents ?? []);
  return {
    plain,
    gzip: gzipSync(plain, { level: 9 }),
    etag: `"${hash("sha256", plain, "base64url").slice(0, 22)}"`,
  };
}

export function mountWidget(server: HttpServer): void {
  let bundle: Promise<Bundle> | null = null;
  const handle = async (http: HttpRequest): Promise<Reply> => {
    bundle ??= bundleWidget().catch((error: unknown) => {
      bundle = null;
      throw error;
    });
    const { plain, gzip, etag } = await bundle;
    const contentType = "text/javascript; charset=utf-8";
    const headers = { ...HEADERS, ETag: etag };
    if (http.headers["if-none-match"]?.includes(etag)) {
      return { status: 304, contentType, content: "", headers };
    }
    return /\bgzip\b/.test(http.headers["accept-encoding"] ?? "")
      ? { status: 200, contentType, content: gzip, headers: { ...headers, "Content-Encoding": "gzip" } }
      : { status: 200, contentType, content: plain, headers };
  };
  for (const pattern of ["/widget.js", "/embed.js"]) {
    server.route({ method: "GET", pattern, bodyBytesMax: 0, handle });
  }
}
