// Tools of MCP servers: what an account's tool stores of one, and a server's list of tools. The
// protocol is in workers/tools/mcp.ts, its sessions in mcp-sessions.ts; calls go through
// invocation.ts.
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wholeStart } from "#core/values.ts";
import { couldNotBeReached, mayNotBeCalled } from "#outbound/unreachable.ts";
import type { EndpointRequest, SendToEndpoint } from "./invocation.ts";
import { LOCKED_PROBLEM, toolNotFound, type Tool, type ToolFields, type Tools } from "./tools.ts";

const MCP_LIST_S = 15;
export const DESCRIPTION_CHARS_MAX = 255;
/** Longest schema as JSON text, because every request to the model includes it. */
const SCHEMA_CHARS_MAX = 16 * 1024;

/** A tool from a server's list. */
export interface McpTool {
  name: string;
  description: string;
  /** JSON Schema, handed to models as it is. */
  inputSchema: Record<string, unknown>;
}

export interface McpServers {
  /** Throws Fault 422 when the server does not answer, or is not an MCP server. */
  list(accountId: number, server: Pick<ToolFields, "endpoint" | "headers">): Promise<McpTool[]>;
  /** Updates the tool to its server's description; Fault 404, or 422 if the server lacks it now. */
  refresh(accountId: number, toolId: number): Promise<Tool>;
  /**
   * Adopts the current input schemas of the call's server, for this tool and the account's others
   * with the same URL and headers. Descriptions change only by `refresh`: they are instructions to
   * a model, which a server must not change by itself.
   */
  follow(call: EndpointRequest): Promise<void>;
}

export const isShortSchema = (schema: object): boolean =>
  JSON.stringify(schema).length <= SCHEMA_CHARS_MAX;

const HINTS: [statuses: number[], hint: string][] = [
  [[401, 403], "it requires a key: send it in a header such as Authorization"],
  [[404, 405], "it must support Streamable HTTP at this address; the older SSE transport is not supported"],
];

function problemOf(reply: Exclude<Awaited<ReturnType<SendToEndpoint>>, { kind: "result" }>): string {
  if (reply.kind === "refused") return `${mayNotBeCalled("The address", reply.reason)}.`;
  if (reply.kind === "status") {
    const answered = `The MCP server answered with status ${reply.status}`;
    const hint = HINTS.find(([statuses]) => statuses.includes(reply.status))?.[1];
    return hint === undefined ? `${answered}.` : `${answered}: ${hint}.`;
  }
  return reply.reason === "no_mcp"
    ? "What answers at this address is not an MCP server."
    : `${couldNotBeReached("The MCP server", reply.why)}.`;
}

const listing = (
  accountId: number, url: string, headers: Record<string, string>,
): EndpointRequest => ({
  accountId, url, headers, method: "POST", totalMs: MCP_LIST_S * 1000,
  bytesMax: LIMITS.toolResponseBytesMax, resultCharsMax: LIMITS.toolResponseBytesMax,
});

const isOfSameServer = (one: Tool, other: Tool): boolean =>
  one.endpoint === other.endpoint && JSON.stringify(one.headers) === JSON.stringify(other.headers);

export function createMcpServers(
  { send, tools }: { send: SendToEndpoint; tools: Pick<Tools, "find" | "list" | "update"> },
): McpServers {
  const list: McpServers["list"] = async (accountId, { endpoint, headers }) => {
    const reply = await send({
      ...listing(accountId, endpoint, Object.fromEntries(
        headers.map(({ name, value }) => [name.toLowerCase(), value]))),
      mcp: { tool: null, arguments: {} },
    });
    if (reply.kind === "result") return reply.result.tools as McpTool[];
    const problem = problemOf(reply);
    throw new Fault(422, problem, { errors: { endpoint: [problem] } });
  };
  const follow: McpServers["follow"] = async ({ accountId, url, headers, mcp }) => {
    const { toolId } = mcp ?? {};
    if (toolId === undefined) return;
    const reply = await send({
      ...listing(accountId, url, headers), mcp: { tool: null, arguments: {}, toolId },
    });
    if (reply.kind !== "result") return;
    const now = new Map((reply.result.tools as McpTool[]).map((tool) => [tool.name, tool]));
    const all = await tools.list(accountId);
    const called = all.find(({ id }) => id === toolId);
    for (const tool of all.filter((one) => called && isOfSameServer(one, called))) {
      const { inputSchema } = now.get(tool.mcp?.tool ?? "") ?? {};
      if (!tool.mcp || !inputSchema || !isShortSchema(inputSchema)) continue;
      if (JSON.stringify(inputSchema) === JSON.stringify(tool.mcp.inputSchema)) continue;
      await tools.update(accountId, tool.id, { mcp: { tool: tool.mcp.tool, inputSchema } });
    }
  };
  return {
    list,
    follow,
    refresh: async (accountId, toolId) => {
      const tool = await tools.find(accountId, toolId);
      if (!tool) throw toolNotFound();
      if (tool.isLocked) throw new Fault(422, LOCKED_PROBLEM);
      const { mcp } = tool;
      if (!mcp) throw new Fault(422, "The tool is not from an MCP server.");
      const now = (await list(accountId, tool)).find(({ name }) => name === mcp.tool);
      if (!now) throw new Fault(422, `The MCP server no longer has the tool ${mcp.tool}.`);
      if (!isShortSchema(now.inputSchema)) throw new Fault(422, "The schema of the tool is too long.");
      return tools.update(accountId, toolId, {
        description: wholeStart(now.description, DESCRIPTION_CHARS_MAX) || tool.description,
        mcp: { tool: mcp.tool, inputSchema: now.inputSchema },
      });
    },
  };
}
