// Plain requests to the MCP endpoint, as the spec words them, for tests.
import assert from "node:assert/strict";
import { MODERN_VERSION } from "#gateways/mcp/server.ts";

export type Wire = Record<string, unknown>;
/** Bodies are read untyped; each test asserts what it relies on. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Free = any;

export const META = {
  "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
  "io.modelcontextprotocol/clientCapabilities": {},
};

export interface Posted {
  path?: string;
  /** Null sends none. */
  key?: string | null;
  on?: { url: string; key: string };
  headers?: Record<string, string>;
}

export function createMcpCaller(server: { url: string; key: string }) {
  /** A text or bytes are sent as they are. */
  const post = async (body: unknown, { path = "/mcp", on = server, ...given }: Posted = {}) => {
    const key = given.key === undefined ? on.key : given.key;
    const isRaw = typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(on.url + path, {
      method: "POST",
      headers: {
        "Content-Type": "application/json", Accept: "application/json, text/event-stream",
        ...(key === null ? {} : { Authorization: `Bearer ${key}` }), ...given.headers,
      },
      body: isRaw ? body as string | Uint8Array<ArrayBuffer> : JSON.stringify(body),
    });
    const text = await response.text();
    const { status, headers } = response;
    return { status, headers, body: (text === "" ? null : JSON.parse(text)) as Free };
  };
  /** One request as the stateless revision has it, with the headers that mirror it. */
  const modern = (method: string, params: Wire = {}, options: Posted = {}) => {
    const { name } = params;
    const headers = {
      "MCP-Protocol-Version": MODERN_VERSION, "Mcp-Method": method,
      ...(typeof name === "string" ? { "Mcp-Name": name } : {}), ...options.headers,
    };
    const message = { jsonrpc: "2.0", id: 7, method, params: { ...params, _meta: META } };
    return post(message, { ...options, headers });
  };
  /** The result of a tool, be it a success or the tool's error. */
  const use = async (name: string, args: Wire = {}, options: Posted = {}): Promise<Free> => {
    const { status, body } = await modern("tools/call", { name, arguments: args }, options);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.error, undefined, JSON.stringify(body));
    return body.result;
  };
  const refusal = async (name: string, args: Wire = {}, options: Posted = {}): Promise<string> => {
    const result = await use(name, args, options);
    assert.equal(result.isError, true, JSON.stringify(result));
    assert.equal(result.structuredContent, undefined);
    return result.content[0].text as string;
  };
  return { post, modern, use, refusal };
}
