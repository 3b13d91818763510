// MCP's JSON-RPC, stateless between requests: the stateless revision 2026-07-28, and what clients
// of earlier revisions need (an `initialize` answered without a session, batches for those of
// 2025-03-26); all others send one message per POST. Only the messages are here; HTTP is in
// routes.ts, what they do in tools.ts.
//
// Why by hand: the official package (@modelcontextprotocol/server 2.4.0) also serves both eras
// without sessions, but it brings zod and 17 MB, and importing it took 210 to 450 ms and 15 MB
// where this file takes 15 to 30 ms and 3 MB, on the same loaded machine, at every start. It uses
// fetch's Request and Response where the edge uses HttpRequest; it accepts batches of 100 without a
// setting, where here each message counts against the key's rate limit and 20 are the most (MC12,
// MC72); its errors have its own texts, and it checks arguments against its schemas where the API's
// routes check them here. It would replace these 300 lines, and need an adaptor on each of those
// sides. Its client, a dev dependency, tests this file in both eras (MC1).
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { isRecord } from "#core/values.ts";
import type { HttpRequest } from "#http/exchange.ts";
import { parseJson } from "#http/validation.ts";
import type { Tool, ToolCaller } from "./tools-of-routes.ts";

export const MODERN_VERSION = "2026-07-28";
/** Newest first: `initialize` agrees on the first when asked for an unknown one. */
export const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26"] as const;
/** The only revision that has batches; its clients name no version in a header. */
const BATCH_VERSION = LEGACY_VERSIONS[2];
const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS];

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY = "io.modelcontextprotocol/serverInfo";

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;
const HEADER_MISMATCH = -32020;
const UNSUPPORTED_VERSION = -32022;

/** Tools change with the program and the key's scopes only. */
const CACHED = { ttlMs: 300_000, cacheScope: "private" };
const CAPABILITIES = { tools: {} };
const INSTRUCTIONS = "Assistants that talk with people in text and on calls. Begin with "
  + "list_assistants; send_message tries an assistant without cost, make_call calls a person.";
const NAME_CHARS_SHOWN = 128;

type Wire = Record<string, unknown>;
type Era = "modern" | "legacy";

interface Message {
  /** Absent: a notification. */
  id?: string | number;
  method: string;
  params: Wire;
}

/** A refusal of the protocol, as opposed to one of a tool. */
class RpcError extends Error {
  readonly code: number;
  readonly status: number;
  readonly data: unknown;

  constructor(code: number, message: string, status = 400, data?: unknown) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.status = status;
    this.data = data;
  }
}

/** Null: the message was taken and has no answer. */
interface RpcReply {
  status: number;
  json: object | null;
}

interface McpServerOptions {
  tools: readonly Tool[];
  version: string;
  /** Turns anything thrown into a refusal; logs unexpected errors. */
  toFault(error: unknown, http: HttpRequest): Fault;
}

const rpcError = (
  { code, message, data }: Pick<RpcError, "code" | "message" | "data">, id?: string | number,
): object => ({
  jsonrpc: "2.0",
  ...(id === undefined ? {} : { id }),
  error: { code, message, ...(data === undefined ? {} : { data }) },
});

export const ORIGIN_ERROR = rpcError({
  code: INVALID_REQUEST, message: "This origin may not use this server.", data: undefined,
});

/** One message, or the messages of a batch. */
function parsed({ body, headers }: HttpRequest): Wire | unknown[] {
  let value: unknown;
  try {
    value = body.length === 0 ? {} : parseJson(body);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const code = error.cause instanceof SyntaxError ? PARSE_ERROR : INVALID_REQUEST;
    throw new RpcError(code, error.message);
  }
  if (!Array.isArray(value)) return asMessage(value);
  const version = headers["mcp-protocol-version"] ?? BATCH_VERSION;
  if (version !== BATCH_VERSION) {
    throw new RpcError(INVALID_REQUEST,
      `Batches exist only in MCP ${BATCH_VERSION}: send one message per request.`);
  }
  if (value.length === 0) throw new RpcError(INVALID_REQUEST, "The batch is empty.");
  if (value.length > LIMITS.mcpBatchMax) {
    throw new RpcError(INVALID_REQUEST,
      `A batch may have at most ${LIMITS.mcpBatchMax} messages: send the others in another request.`);
  }
  return value;
}

function asMessage(value: unknown): Wire {
  if (isRecord(value)) return value;
  throw new RpcError(INVALID_REQUEST, "A message must be a JSON object.");
}

/** The id if it is valid, so that the error can answer to it. */
const idOf = ({ id }: Wire): string | number | undefined =>
  typeof id === "string" || Number.isSafeInteger(id) ? id as string | number : undefined;

function messageOf(message: Wire): Message {
  const { jsonrpc, method, params = {} } = message;
  const id = idOf(message);
  if (jsonrpc !== "2.0") throw new RpcError(INVALID_REQUEST, "The jsonrpc must be \"2.0\".");
  if (typeof method !== "string") throw new RpcError(INVALID_REQUEST, "The method must be a string.");
  if (Object.hasOwn(message, "id") && id === undefined) {
    throw new RpcError(INVALID_REQUEST, "The id must be a string or an integer.");
  }
  if (!isRecord(params)) throw new RpcError(INVALID_PARAMS, "The params must be an object.");
  return id === undefined ? { method, params } : { id, method, params };
}

const unsupported = (requested: string): RpcError =>
  new RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", 400, {
    supported: SUPPORTED_VERSIONS, requested: requested.slice(0, NAME_CHARS_SHOWN),
  });

const isLegacy = (version: string): boolean =>
  (LEGACY_VERSIONS as readonly string[]).includes(version);

/** Decided by the request alone: nothing is remembered from earlier ones. */
function eraOf(message: Message, headers: HttpRequest["headers"]): Era {
  const header = headers["mcp-protocol-version"];
  const meta = isRecord(message.params._meta) ? message.params._meta : {};
  const version = meta[VERSION_KEY];
  if (version === undefined) {
    // Clients that predate the header are those of 2025-03-26.
    if (header === undefined || isLegacy(header)) return "legacy";
    if (header !== MODERN_VERSION) throw unsupported(header);
  }
  if (typeof version !== "string") {
    throw new RpcError(INVALID_PARAMS, `The _meta must have ${VERSION_KEY}.`);
  }
  assertHeader("MCP-Protocol-Version", header, version);
  if (isLegacy(version)) return "legacy";
  if (version !== MODERN_VERSION) throw unsupported(version);
  if (!isRecord(meta[CAPABILITIES_KEY])) {
    throw new RpcError(INVALID_PARAMS, `The _meta must have ${CAPABILITIES_KEY}.`);
  }
  assertHeader("Mcp-Method", headers["mcp-method"], message.method);
  if (message.method === "tools/call") {
    assertHeader("Mcp-Name", decoded(headers["mcp-name"]), message.params.name);
  }
  return "modern";
}

/** A proxy that routes by a header must not see something else than a reader of the body. */
function assertHeader(name: string, header: string | undefined, inBody: unknown): void {
  if (header !== undefined && header === inBody) return;
  const problem = header === undefined ? "is missing" : "does not match the body";
  throw new RpcError(HEADER_MISMATCH, `Header mismatch: ${name} ${problem}`);
}

/** Names outside ASCII travel as Base64 in this envelope. */
function decoded(header: string | undefined): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(header ?? "")?.[1];
  return encoded === undefined ? header : Buffer.from(encoded, "base64").toString("utf8");
}

const maySee = ({ scope }: Tool, { caller }: ToolCaller): boolean => caller.scopes.includes(scope);

const shown = ({ name, title, description, input, output, annotations }: Tool): object =>
  ({ name, title, description, inputSchema: input, outputSchema: output, annotations });

const refused = (text: string): Wire => ({ content: [{ type: "text", text }], isError: true });

const wordsOf = ({ message, errors }: Fault): string =>
  errors ? Object.values(errors).flat().join(" ") : message;

const discovered = (): Wire => ({
  supportedVersions: SUPPORTED_VERSIONS, capabilities: CAPABILITIES, instructions: INSTRUCTIONS,
  ...CACHED,
});

/** Answers the first request of older clients; nothing is remembered. */
const initialized = ({ protocolVersion: asked }: Wire, serverInfo: object): Wire => ({
  protocolVersion: typeof asked === "string" && isLegacy(asked) ? asked : LEGACY_VERSIONS[0],
  capabilities: CAPABILITIES,
  serverInfo,
  instructions: INSTRUCTIONS,
});

export function createMcpServer({ tools, version, toFault }: McpServerOptions) {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const serverInfo = { name: "parley", title: "Parley", version };

  const call = async ({ name, arguments: args = {} }: Wire, from: ToolCaller): Promise<Wire> => {
    if (typeof name !== "string") throw new RpcError(INVALID_PARAMS, "The name must be a string.");
    if (!isRecord(args)) throw new RpcError(INVALID_PARAMS, "The arguments must be an object.");
    const tool = byName.get(name);
    if (!tool) {
      throw new RpcError(INVALID_PARAMS, `Unknown tool: ${name.slice(0, NAME_CHARS_SHOWN)}`, 200);
    }
    if (!maySee(tool, from)) {
      return refused("Your API key does not have permission for this resource");
    }
    try {
      const answer = await tool.run(from, args);
      // Repeated as text, for clients that do not know structured content.
      return {
        content: [{ type: "text", text: JSON.stringify(answer) }],
        structuredContent: answer,
        isError: false,
      };
    } catch (error) {
      const fault = toFault(error, from.http);
      if (fault.status >= 500) throw new RpcError(INTERNAL_ERROR, fault.message, 200);
      return refused(wordsOf(fault));
    }
  };

  const list = ({ cursor }: Wire, from: ToolCaller): Wire => {
    // There is one page, so that no cursor was ever given out.
    if (cursor !== undefined) throw new RpcError(INVALID_PARAMS, "The cursor is invalid.", 200);
    return { tools: tools.filter((tool) => maySee(tool, from)).map(shown) };
  };

  const answer = (
    era: Era, { method, params }: Message, from: ToolCaller,
  ): Wire | Promise<Wire> => {
    const isModern = era === "modern";
    if (method === "tools/call") return call(params, from);
    if (method === "tools/list") return { ...list(params, from), ...(isModern ? CACHED : {}) };
    if (method === "server/discover" && isModern) return discovered();
    if (method === "initialize" && !isModern) return initialized(params, serverInfo);
    if (method === "ping" && !isModern) return {};
    // To older clients a 404 means that their session has ended.
    throw new RpcError(METHOD_NOT_FOUND, "Method not found", isModern ? 404 : 200);
  };

  const one = async (given: unknown, from: ToolCaller, isBatched: boolean): Promise<RpcReply> => {
    let id: string | number | undefined;
    try {
      const wire = asMessage(given);
      id = idOf(wire);
      const message = messageOf(wire);
      if (message.id === undefined) return { status: 202, json: null };
      if (isBatched && message.method === "initialize") {
        throw new RpcError(INVALID_REQUEST, "An initialize must not be part of a batch.");
      }
      const era = eraOf(message, from.http.headers);
      const result = await answer(era, message, from);
      const framed = era === "modern"
        ? { resultType: "complete", ...result, _meta: { [SERVER_KEY]: serverInfo } }
        : result;
      return { status: 200, json: { jsonrpc: "2.0", id, result: framed } };
    } catch (error) {
      return refusalOf(error, id);
    }
  };

  return { handle: createHandle(one) };
}

/** `takeRate` counts one more request of the key, or throws. */
function createHandle(
  one: (given: unknown, from: ToolCaller, isBatched: boolean) => Promise<RpcReply>,
) {
  return async (from: ToolCaller, takeRate: () => Promise<void>): Promise<RpcReply> => {
    let given;
    try {
      given = parsed(from.http);
    } catch (error) {
      return refusalOf(error);
    }
    if (!Array.isArray(given)) return one(given, from, false);
    // The first was counted with the request; none runs where not all may.
    for (let count = 1; count < given.length; count += 1) await takeRate();
    const answers: object[] = [];
    // One after another, in the order they were sent.
    for (const message of given) {
      const { json } = await one(message, from, true);
      if (json) answers.push(json);
    }
    return answers.length > 0 ? { status: 200, json: answers } : { status: 202, json: null };
  };
}

function refusalOf(error: unknown, id?: string | number): RpcReply {
  if (!(error instanceof RpcError)) throw error;
  return { status: error.status, json: rpcError(error, id) };
}

export type McpServer = ReturnType<typeof createMcpServer>;
