// Sessions at MCP servers: one is initialized per account, server and headers, and reused for their
// requests until the server no longer knows it. Also decides when a server's list is due to be read
// again. Wraps the threads' `send`; created by app/tools.ts.
import { hash } from "node:crypto";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EndpointRequest, McpSession, McpState, SendToEndpoint } from "./invocation.ts";

/** A list is not read again sooner, unless its server says that it is another now. */
const LIST_EVERY_MS = 15 * 60_000;
/** More JSON-RPC ids than one request uses; listing takes one per page. */
const IDS_PER_REQUEST = 100;
const GOODBYE_MS = 1000;

/** The state of one account's connection to one server. */
interface Dealings {
  accountId: number;
  url: string;
  headers: Record<string, string>;
  /** Null: a session has to be initialized. */
  session: McpSession | null;
  nextId: number;
  /** When the list was last read, or else when this record was created. */
  listedMs: number;
  isListing: boolean;
}

interface McpSessions {
  send: SendToEndpoint;
  /** Ends the sessions at their servers, within a second. Idempotent. */
  close(): Promise<void>;
}

interface McpSessionsOptions {
  send: SendToEndpoint;
  /** Reads the list of the call's server again. */
  follow(call: EndpointRequest): Promise<void>;
  system: Pick<System, "monotonicMs">;
  log: Logger;
}

export function createMcpSessions({ send, follow, system, log }: McpSessionsOptions): McpSessions {
  /** Least recently used first. */
  const known = new Map<string, Dealings>();

  const forget = async ({ accountId, url, headers, session }: Dealings): Promise<void> => {
    if (session === null || session.id === null) return;
    await send({
      accountId, url, method: "DELETE", totalMs: GOODBYE_MS,
      headers: {
        ...headers, "mcp-session-id": session.id, "mcp-protocol-version": session.version,
      },
      bytesMax: LIMITS.toolResponseBytesMax, resultCharsMax: LIMITS.functionResultCharsMax,
    }).catch((error: unknown) => log.warn({ err: error }, "could not end an MCP session"));
  };

  const dealingsOf = ({ accountId, url, headers: given }: EndpointRequest): Dealings => {
    // The idempotency key differs per call; the other headers identify the client.
    const { "idempotency-key": _, ...headers } = given;
    const key = hash("sha256", JSON.stringify([accountId, url, headers]), "hex");
    const dealings = known.get(key) ?? {
      accountId, url, headers, session: null, nextId: 1, listedMs: system.monotonicMs(),
      isListing: false,
    };
    known.delete(key);
    known.set(key, dealings);
    const [oldest] = known;
    if (oldest && known.size > LIMITS.mcpSessionsMax) {
      known.delete(oldest[0]);
      void forget(oldest[1]);
    }
    return dealings;
  };

  const followSoon = (dealings: Dealings, call: EndpointRequest): void => {
    dealings.isListing = true;
    dealings.listedMs = system.monotonicMs();
    void follow(call)
      .catch((error: unknown) => log.warn({ err: error }, "could not store an MCP server's changed tools"))
      .finally(() => (dealings.isListing = false));
  };

  /** A server that lost its session was restarted, perhaps with other tools. */
  const isListDue = (dealings: Dealings, { isNew, hasNewTools }: McpState, hadSession: boolean) =>
    !dealings.isListing && (hasNewTools || (isNew && hadSession)
      || system.monotonicMs() - dealings.listedMs >= LIST_EVERY_MS);

  return {
    send: async (request) => {
      const { mcp } = request;
      if (mcp?.toolId === undefined) return send(request);
      const dealings = dealingsOf(request);
      const { session, nextId: firstId } = dealings;
      dealings.nextId += IDS_PER_REQUEST;
      const reply = await send({
        ...request,
        mcp: { ...mcp, ...session && { session }, firstId, isKept: true },
      });
      if (reply.kind !== "result" || !reply.mcp) {
        // The session is not ended, as another call may use it; the next call initializes a new
        // one.
        if (dealings.session === session) dealings.session = null;
        return reply;
      }
      const { mcp: state, ...answer } = reply;
      const isSecond = state.isNew && dealings.session !== session && dealings.session !== null;
      // Two calls initialized sessions concurrently: one is enough.
      if (isSecond) void forget({ ...dealings, session: state.session });
      else dealings.session = state.session;
      if (mcp.tool !== null && isListDue(dealings, state, session !== null)) {
        followSoon(dealings, request);
      }
      return answer;
    },
    close: async () => {
      const last = [...known.values()];
      known.clear();
      await Promise.all(last.map(forget));
    },
  };
}
