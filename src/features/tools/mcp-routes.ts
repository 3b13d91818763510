// The wire of MCP servers' tools: listing a server's tools, and refreshing a tool's description.
import { Type } from "@sinclair/typebox";
import { LOST_TOO_OFTEN } from "#core/changing.ts";
import { about, HttpUrl, named } from "#core/schema.ts";
import { dataOf, IdOf, listOf, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, seesSecrets, type Route } from "#http/route.ts";
import type { McpServers } from "./mcp.ts";
import { Header, ToolSchema, wireTool } from "./wire.ts";

const HEADERS_MAX = 20;
const ListBody = Type.Object({
  endpoint: {
    ...HttpUrl("The endpoint must be a valid URL."),
    ...about("The MCP server's URL.", "https://example.com/mcp"),
  },
  headers: Type.Optional(Type.Array(Header, {
    maxItems: HEADERS_MAX, ...about("Headers sent with every request to it, for example an API "
      + "key."),
  })),
});
const McpToolSchema = Type.Object({
  name: Type.String(about("Its name on the server.", "get_weather")),
  description: Type.String(about("The server's description of it.", "The weather of a city.")),
  input_schema: Type.Record(Type.String(), Type.Unknown(), about(
    "Its input, as JSON Schema.", { type: "object", properties: { city: { type: "string" } } })),
}, named("McpTool", "A tool of an MCP server, as the server lists it."));

const COMMON = { tag: "Tools", errorShape: "message", notFound: "Tool not found" } as const;

export function mcpRoutes(servers: McpServers): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/tools/mcp",
      summary: "List the tools of an MCP server",
      description: "Asks the server for its tools (`tools/list` over Streamable HTTP). No tool is "
        + "called and nothing is stored. To add a tool, send `POST /user/tools` with its `mcp`.",
      body: ListBody,
      responses: {
        200: {
          description: "Its tools",
          schema: dataOf(listOf(McpToolSchema, "Its tools.")),
        },
        422: { description: "It does not answer or is not an MCP server" },
      },
      handle: async ({ caller, body: { endpoint, headers = [] } }) => {
        const tools = await servers.list(caller.accountId, { endpoint, headers });
        return json(200, {
          data: tools.map(({ name, description, inputSchema }) =>
            ({ name, description, input_schema: inputSchema })),
        });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/tools/{id}/refresh",
      params: { id: IdOf("tool", "GET /user/tools") },
      summary: "Refresh a tool's description from its MCP server",
      responses: {
        200: { description: "The current state", schema: savedOf(ToolSchema) },
        422: { description: "The tool is not from an MCP server, or its server no longer has it" },
        ...LOST_TOO_OFTEN,
      },
      handle: async ({ caller, id }) => {
        const tool = await servers.refresh(caller.accountId, id);
        return json(200, {
          message: "Tool updated successfully", data: wireTool(tool, seesSecrets(caller)),
        });
      },
    }),
  ];
}
