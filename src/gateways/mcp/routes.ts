// The MCP endpoint over HTTP: POST /mcp and /api/mcp with an API key, each answered with one JSON
// value. There are no streams and no sessions, so GET and DELETE are refused, as the spec demands.
import { Fault, restarting } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { API_ROOT, identify, type ApiOptions } from "#http/api.ts";
import { rateLimitFault, renderFault, toFault } from "#http/errors.ts";
import { json, type HttpRequest, type Reply } from "#http/exchange.ts";
import type { Caller } from "#http/route.ts";
import { createMcpServer, ORIGIN_ERROR, type McpServer } from "./server.ts";
import { createTools, type ToolOptions } from "./tools.ts";

interface McpOptions extends ToolOptions {
  api: ApiOptions;
  version: string;
  /** The server's own address as its operator gave it; null: unknown. */
  publicUrl: string | null;
}

const PATHS = ["/mcp", `${API_ROOT}/mcp`];
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Allows pages of the server's own URL and of this machine. The Host header is no evidence here: a
 * rebound name appears in it as well as in the Origin.
 */
function isOwnOrigin(origin: string, publicUrl: string | null): boolean {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  return LOOPBACK.has(url.hostname)
    || (publicUrl !== null && url.origin === new URL(publicUrl).origin);
}

/** As every route of the API: the key's owner, within the key's rate. */
async function authorized(api: ApiOptions, http: HttpRequest): Promise<Caller> {
  if (api.draining()) throw restarting();
  const caller = await identify(api, http, false);
  await takeRate(api, caller);
  return caller;
}

async function takeRate(api: ApiOptions, caller: Caller): Promise<void> {
  const decision = await api.takeRate?.(caller);
  if (decision && !decision.allowed) throw rateLimitFault(decision.retryAfterMs, "message");
}

function refusal(fault: Fault): Reply {
  return renderFault(
    fault, "message", fault.status === 401 ? { "WWW-Authenticate": "Bearer" } : {});
}

async function answer(
  { api, publicUrl }: McpOptions, server: McpServer, http: HttpRequest,
): Promise<Reply> {
  try {
    const { origin } = http.headers;
    if (origin !== undefined && !isOwnOrigin(origin, publicUrl)) return json(403, ORIGIN_ERROR);
    const caller = await authorized(api, http);
    const reply = await server.handle(
      { caller, http, baseUrl: api.baseUrlOf(http) }, () => takeRate(api, caller));
    return reply.json === null
      ? { status: reply.status, contentType: "application/json", content: "" }
      : json(reply.status, reply.json);
  } catch (error) {
    return refusal(toFault(error, api.log, http));
  }
}

export function mountMcp(options: McpOptions): void {
  const { api, version } = options;
  const server = createMcpServer({
    tools: createTools(options), version, toFault: (error, http) => toFault(error, api.log, http),
  });
  api.expect("POST", "/mcp");
  for (const pattern of PATHS) {
    api.server.route({
      method: "POST",
      pattern,
      bodyBytesMax: LIMITS.bodyBytesMax,
      handle: async (http) => {
        const startedMs = api.system.monotonicMs();
        const reply = await answer(options, server, http);
        const seconds = (api.system.monotonicMs() - startedMs) / 1000;
        api.observe("POST", "/mcp", reply.status, seconds);
        return reply;
      },
    });
    for (const method of ["GET", "PUT", "PATCH", "DELETE"] as const) {
      api.server.route({
        method,
        pattern,
        bodyBytesMax: LIMITS.bodyBytesMax,
        handle: () => renderFault(
          new Fault(405, `The ${method} method is not supported for this route.`), "message",
          { Allow: "POST" }),
      });
    }
  }
}
