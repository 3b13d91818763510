// The parts of the OpenAPI document that are not routes of the API: an introduction, the sockets,
// and what is served at the root of the host. Used by mount.ts.
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { about, named } from "#core/schema.ts";
import type { DocumentInfo } from "#http/openapi.ts";
import type { Printer } from "#http/openapi-schema.ts";
import { REFUSALS } from "#http/answers.ts";
import type { Tag } from "#http/tags.ts";

const INTRODUCTION = `
Everything below \`/user\` needs an API key: \`Authorization: Bearer <key>\`. Anyone who
has a conversation's uuid can read it, function arguments and results included, and write to it: treat it as a secret.

**Money** is in USD. **Numbers** may be sent as strings, booleans as 0 and 1. **Fields you leave out**
of a PUT or PATCH keep their values.

**Retries**: with an \`Idempotency-Key\`, a request that costs money or creates something runs only
once, however often you send it, and gets its first answer again; each route that takes the key lists it. A 409
with \`Retry-After\` then means that the first request has not ended, or was interrupted.

**Streams** are server-sent events. Each has an \`id\`. Reconnect with \`Last-Event-ID\` or \`?after=\`
to receive what you missed, and nothing twice.

**WebSockets** carry the same frames as JSON text messages with \`id\` and \`type\`. Close codes 4000 to 4499
mean "reconnect", 4500 to 4999 "do not reconnect". Browsers cannot send a key here: pass a ticket from
\`POST /user/stream-tickets\` as \`?ticket=\`.

| Socket | Server sends | Client sends |
|---|---|---|
| \`/api/conversations/{uuid}/socket\` | the conversation's stream | \`{"type": "send", "message": "…"}\`, \`stop\`, \`resume\`, \`ping\` |
| \`/api/conversations/{uuid}/call?ticket=\` | a web call: 16-bit PCM both ways, with a ticket from \`POST /conversations/{uuid}/call-ticket\` | PCM, \`start\`, \`mark\`, \`cleared\`, \`dtmf\`, \`words\`, \`offer\`, \`path\`, \`end\`, \`ping\` |
| \`/api/user/socket\` | everything in the account | \`resume\`, \`ping\` |
| \`/api/user/calls/{id}/socket\` | one call: a snapshot, then changes | \`say\`, \`mute\`, \`end\`, \`resume\`, \`ping\` |
| \`/api/user/calls/{id}/listen\` | both sides of a call, mixed, as 16-bit PCM, after one frame with the sample rate | nothing |
| \`/api/user/calls/{id}/speak\` | the call without your own voice, if you have taken it over, in the same format | PCM from the microphone |
`.trim();

const Status = Type.Object({
  status: Type.String(about("`ok`, or `unavailable` with the reason.", "ok")),
  reason: Type.Optional(Type.String(about(
    "Why the server is not ready.", "The server is stopping."))),
}, named("Health", "The server's health."));
const Metrics = Type.String(named(
  "Metrics", "Metrics in Prometheus' text format: counters and histograms.",
  "process_cpu_seconds_total 12.4"));
const Rpc = Type.Object({
  jsonrpc: Type.Literal("2.0", about("The version of JSON-RPC.")),
  id: Type.Optional(Type.Union([Type.String(), Type.Integer(), Type.Null()], about(
    "The request's id, repeated in its answer; a notification has none.", 1))),
  method: Type.String(about(
    "`initialize`, `ping`, `tools/list` or `tools/call`.", "tools/list")),
  params: Type.Optional(Type.Record(Type.String(), Type.Unknown(), about(
    "The method's parameters; `tools/call` takes `name` and `arguments`.", {}))),
}, named("McpRequest", "One JSON-RPC request or notification of the Model Context Protocol."));
const RpcAnswer = Type.Object({
  jsonrpc: Rpc.properties.jsonrpc,
  id: Type.Optional(Type.Union([Type.String(), Type.Integer(), Type.Null()], about(
    "The request's `id`; absent if it had no readable one.", 1))),
  result: Type.Optional(Type.Record(Type.String(), Type.Unknown(), about(
    "The result.", { tools: [] }))),
  error: Type.Optional(Type.Object({
    code: Type.Integer(about("The JSON-RPC error code.", -32601)),
    message: Type.String(about("The error message.", "Method not found")),
    data: Type.Optional(Type.Unknown(about("More details, if any.", {}))),
  }, about("The error."))),
}, named("McpAnswer", "One JSON-RPC answer of the Model Context Protocol."));
/** Batches are for version 2025-03-26. */
const oneOrMore = (message: TObject): TSchema => Type.Union([message, Type.Array(message)]);

type Content = Record<string, TSchema>;

interface Operation {
  tag: Tag;
  id: string;
  summary: string;
  description: string;
  answers: Record<string, [description: string, content?: Content]>;
  body?: TSchema;
  needsKey?: true;
}

const REFUSED: Content = { "application/json": REFUSALS.message };
const HEALTH: Content = { "application/json": Status };

function printed(printer: Printer, operation: Operation): object {
  const contentOf = (content: Content): object =>
    Object.fromEntries(Object.entries(content).map(([type, schema]) => {
      const shown = printer.print(schema);
      return [type, { schema: shown, example: printer.exampleOf(shown) }];
    }));
  const { tag, id, summary, description, answers, body, needsKey } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(body
      ? { requestBody: { required: true, content: contentOf({ "application/json": body }) } }
      : {}),
    responses: Object.fromEntries(Object.entries(answers).map(([status, [description, content]]) =>
      [status, { description, ...(content ? { content: contentOf(content) } : {}) }])),
    security: needsKey ? [{ apiKey: [] }] : [],
  };
}

const FRAMING: [string, Content] = ["The request's framing is ambiguous.", REFUSED];
const health = (id: string, summary: string, description: string): Operation => ({
  tag: "Server", id, summary, description,
  answers: { 200: ["Yes.", HEALTH], 400: FRAMING, 503: ["Not ready; `reason` says why.", HEALTH] },
});

const MCP: Operation = {
  tag: "MCP",
  id: "postMcp",
  summary: "Send an MCP message",
  description: "The Model Context Protocol over HTTP, without sessions or streams: offers this API "
    + "as tools to clients such as Claude and Cursor. A key without `write` sees only tools that "
    + "read. Also at `/api/mcp`.",
  body: oneOrMore(Rpc),
  needsKey: true,
  answers: {
    200: ["The answer to the request, or to each of a batch.", {
      "application/json": oneOrMore(RpcAnswer),
    }],
    202: ["The notification was accepted."],
    400: ["Not a JSON-RPC request.", { "application/json": RpcAnswer }],
    401: ["No valid API key was sent.", REFUSED],
    403: ["The request comes from a page of another site.", { "application/json": RpcAnswer }],
    404: ["No such method.", { "application/json": RpcAnswer }],
    413: ["The request body is too large.", REFUSED],
    429: ["Too many requests; `Retry-After` says how long to wait.", REFUSED],
    503: ["The server is stopping.", REFUSED],
  },
};

const ROOT: Record<string, Operation> = {
  "/livez": {
    ...health("getLivez", "Check that the process is alive",
      "Returns 200 as long as the process runs."),
    answers: { 200: ["Yes.", HEALTH], 400: FRAMING },
  },
  "/readyz": health(
    "getReadyz", "Check that the server is ready for requests",
    "Returns 503 while the server is stopping or cannot store data. Also available as `/healthz`."),
  "/metrics": {
    tag: "Server",
    id: "getMetrics",
    summary: "Get metrics for Prometheus",
    description: "Available from loopback, or with `PARLEY_METRICS_TOKEN` as the bearer token.",
    answers: {
      200: ["The metrics.", { "text/plain": Metrics }],
      401: ["The request is neither from loopback nor has the token.", REFUSED],
      403: ["The request is neither from loopback nor has the token.", REFUSED],
    },
  },
};

const AT_ROOT = [{ url: "/", description: "The root of the host." }];

export const ABOUT: Pick<DocumentInfo, "description" | "paths"> = {
  description: INTRODUCTION,
  paths: (printer) => ({
    "/mcp": { servers: AT_ROOT, post: printed(printer, MCP) },
    ...Object.fromEntries(Object.entries(ROOT).map(([path, operation]) =>
      [path, { servers: AT_ROOT, get: printed(printer, operation) }])),
  }),
};
