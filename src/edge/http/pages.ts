// What is served at the host root beside the API: health, metrics, the OpenAPI document and its
// viewer.
import { hash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { assetOf, assetReply, builtAsset, type Asset } from "./asset.ts";
import { Fault } from "#core/faults.ts";
import { isLoopback } from "#core/networks.ts";
import { RUNS_FROM } from "#core/program.ts";
import { json, type HeaderMap, type HttpRoute, type Reply, type HttpRequest } from "./exchange.ts";
import type { HttpServer } from "./server.ts";

interface PageOptions {
  server: HttpServer;
  metrics(): Promise<{ contentType: string; text: string }>;
  /** Bearer token of `/metrics`; null: only this machine may read it. */
  metricsToken: string | null;
  openApi(): object;
}

const DOCS_HEADERS: HeaderMap = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>All requests · Parley</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const DOCS_SCRIPT = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#docs", deepLinking: true });\n`;

const DOCS_ASSETS = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
};
export const DOCS_ASSET_NAMES = Object.keys(DOCS_ASSETS);

/** Read from its npm package; the build copies it beside the pages. */
export const docsAsset = (name: string): Asset =>
  assetOf(readFileSync(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`)));

/** A request forwarded by a proxy does not count as local, wherever the proxy runs. */
function assertMayMeasure({ address, headers }: HttpRequest, token: string | null): void {
  if (token === null) {
    const isForwarded = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
    if (isLoopback(address) && !isForwarded) return;
    throw new Fault(403, "Metrics are read on the server's own machine, or with PARLEY_METRICS_TOKEN.");
  }
  const digest = (text: string): Buffer => hash("sha256", text, "buffer");
  if (timingSafeEqual(digest(headers.authorization ?? ""), digest(`Bearer ${token}`))) return;
  throw new Fault(401, "Unauthenticated.");
}

type Get = (pattern: string, handle: HttpRoute["handle"]) => void;

const getOf = (server: HttpServer): Get => (pattern, handle) =>
  server.route({ method: "GET", pattern, bodyBytesMax: 0, handle });

/** `notReady`: null when ready; else the reason, in words fit for a stranger. */
export function mountHealth(server: HttpServer, notReady: () => string | null): void {
  const get = getOf(server);
  get("/livez", () => json(200, { status: "ok" }));
  const ready = (): Reply => {
    const reason = notReady();
    return reason === null ? json(200, { status: "ok" }) : json(503, { status: "unavailable", reason });
  };
  get("/readyz", ready);
  get("/healthz", ready);
}

export function mountPages(options: PageOptions): void {
  const get = getOf(options.server);
  const page = (contentType: string, content: string | Buffer): Reply => ({
    status: 200, contentType, content, headers: DOCS_HEADERS,
  });

  get("/metrics", async (http) => {
    assertMayMeasure(http, options.metricsToken);
    const { contentType, text } = await options.metrics();
    return { status: 200, contentType, content: text };
  });
  let document: Asset | null = null;
  get("/openapi.json", (http) => {
    document ??= assetOf(JSON.stringify(options.openApi()));
    return assetReply(document, "application/json", http, { "Access-Control-Allow-Origin": "*" });
  });
  get("/docs/reference", () => page("text/html; charset=utf-8", DOCS_PAGE));
  get("/docs/start.js", () => page("text/javascript; charset=utf-8", DOCS_SCRIPT));
  for (const [name, contentType] of Object.entries(DOCS_ASSETS)) {
    let asset: Asset | null = null;
    get(`/docs/${name}`, (http) => {
      asset ??= RUNS_FROM === "sources" ? docsAsset(name) : builtAsset(name);
      return assetReply(asset, contentType, http, DOCS_HEADERS);
    });
  }
}
