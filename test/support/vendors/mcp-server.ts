// An MCP server made with the official SDK, on a port of its own: a weather tool with a schema, one
// that fails, and the requests it received.
import { createServer, type IncomingHttpHeaders } from "node:http";
import {
  fromJsonSchema, McpServer, WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { listenLocally } from "#support/local-server.ts";

export interface TestMcpServer {
  url: string;
  /** Calls of `get-weather`, by their city. */
  cities: string[];
  /** Methods with the headers they came with, in order. */
  asked: { method: string; headers: IncomingHttpHeaders }[];
  /** How the weather tool describes itself. */
  describe(description: string): void;
  close(): Promise<void>;
}

/** `isPlain`: answers are JSON, not streams of events. */
export async function startMcpServer({ isPlain = false } = {}): Promise<TestMcpServer> {
  const cities: string[] = [];
  const asked: TestMcpServer["asked"] = [];
  let description = "The weather of a city.";
  const newServer = (): McpServer => {
    const server = new McpServer({ name: "weather", version: "1.0.0" });
    server.registerTool("get-weather", {
      description,
      inputSchema: fromJsonSchema<{ city: string; days?: number[] }>({
        type: "object", required: ["city"],
        properties: {
          city: { type: "string", description: "Which city" },
          days: { type: "array", items: { type: "number" } },
        },
      }),
    }, ({ city }) => {
      cities.push(city);
      return { content: [{ type: "text", text: `Sunny in ${city}.` }] };
    });
    server.registerTool("fail", { description: "Always fails." }, () =>
      ({ isError: true, content: [{ type: "text", text: "No luck today." }] }));
    return server;
  };
  const http = createServer((incoming, response) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of incoming as AsyncIterable<Buffer>) parts.push(part);
      const body = Buffer.concat(parts).toString();
      const { method = "GET", headers } = incoming;
      if (body !== "") {
        asked.push({ method: (JSON.parse(body) as { method: string }).method, headers });
      }
      const request = new Request(`http://mcp.test${incoming.url ?? "/"}`, {
        method, headers: headers as Record<string, string>, ...(body === "" ? {} : { body }),
      });
      // Stateless: a server for each request, as the SDK has it.
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: undefined, enableJsonResponse: isPlain,
      });
      const server = newServer();
      await server.connect(transport);
      const answer = await transport.handleRequest(request);
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(Buffer.from(await answer.arrayBuffer()));
      await server.close();
    })();
  });
  const { url, close } = await listenLocally(http);
  return {
    url: `${url}/mcp`,
    cities, asked,
    describe: (text) => (description = text),
    close,
  };
}
