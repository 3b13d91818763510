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
    ...about("Where the MCP server is.", "https://example.com/mcp"),
  },
  headers: Type.Optional(Type.Array(Header, {
    maxItems: HEADERS_MAX, ...about("Headers of every request to it, as for its key."),
  })),
});
const McpToolSchema = Type.Object({
  name: Type.String(about("What the server calls it.", "get_weather")),
  description: Type.String(about("What it is for, as the server says it.", "The weather of a city.")),
  input_schema: Type.Record(Type.String(), Type.Unknown(), about(
    "What it takes, as JSON Schema.", { type: "object", properties: { city: { type: "string" } } })),
}, named("McpTool", "A tool of an MCP server, as its list has it."));

const COMMON = { tag: "Tools", errorShape: "message", notFound: "Tool not found" } as const;

export function mcpRoutes(servers: McpServers): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/tools/mcp",
      summary: "List the tools of an MCP server",
      description: "Asks the server (`tools/list` over Streamable HTTP). Nothing is called and "
        + "nothing is kept: a tool becomes one of yours with `POST /user/tools` and its `mcp`.",
      body: ListBody,
      responses: {
        200: {
          description: "What it has",
          schema: dataOf(listOf(McpToolSchema, "Its tools.")),
        },
        422: { description: "It does not answer, or is no MCP server" },
      },
      handle: async ({ body: { endpoint, headers = [] } }) => {
        const tools = await servers.list({ endpoint, headers });
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
      summary: "Describe a tool anew, as its MCP server does now",
      responses: {
        200: { description: "As it is now", schema: savedOf(ToolSchema) },
        422: { description: "It is of no MCP server, or its server has it no more" },
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
