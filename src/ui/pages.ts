// Pages that people open in a browser, served as they are in this folder: no build, no inline
// script, no third-party requests. build.ts bundles the rest. Mounted by mount.ts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { programFile } from "#core/program.ts";
import type { HeaderMap, Reply } from "#http/exchange.ts";
import type { HttpServer } from "#http/server.ts";

export const PAGE_HEADERS: HeaderMap = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Permissions-Policy": "microphone=(self)",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-cache",
};

const TALK = programFile("src/ui/talk");
const DASHBOARD = programFile("src/ui/dashboard");
const TYPES: Record<string, string> = {
  js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", html: "text/html; charset=utf-8",
};
const TALK_ASSETS = ["talk.css", "talk.js", "call.js", "hearing.js", "peer.js", "worklet.js", "resample.js"];

/** The chat widget also loads the files that calls need, on pages of any origin. */
const SHARED_HEADERS: HeaderMap = {
  ...PAGE_HEADERS,
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin",
};
const SHARED_ASSETS = ["worklet.js", "resample.js"];

function file(folder: string, name: string, headers = PAGE_HEADERS): () => Reply {
  const content = readFileSync(join(folder, name));
  const contentType = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  return () => ({ status: 200, contentType, content, headers });
}

export function mountUi(server: HttpServer): void {
  const get = (pattern: string, handle: () => Reply): void =>
    server.route({ method: "GET", pattern, bodyBytesMax: 0, handle });
  get("/", file(DASHBOARD, "index.html"));
  get("/dashboard/theme.js", file(DASHBOARD, "theme.js"));
  // A service worker controls only pages at or below its own path.
  get("/push-worker.js", file(DASHBOARD, "push-worker.js"));
  // `/talk/{assistant uuid}`: a call with the assistant, from any browser with a microphone.
  for (const name of TALK_ASSETS) {
    const headers = SHARED_ASSETS.includes(name) ? SHARED_HEADERS : PAGE_HEADERS;
    get(`/talk/${name}`, file(TALK, name, headers));
  }
  get("/talk/:uuid", file(TALK, "talk.html"));
}
