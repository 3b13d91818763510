// The parts of the OpenAPI document that are not routes of the API: an introduction, the sockets,
// and what is served at the root of the host. Used by mount.ts.
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { about, named } from "#core/schema.ts";
import type { DocumentInfo } from "#http/openapi.ts";
import type { Printer } from "#http/openapi-schema.ts";
import { REFUSALS } from "#http/answers.ts";
import type { Tag } from "#http/tags.ts";

const INTRODUCTION = `
Everything below \`/user\` needs an API key: \`Authorization: Bearer <key>\`. A conversation's uuid is
all one needs to read it and write to it, function arguments and results included: treat it as a secret.

**Money** is in USD. **Numbers** may be sent as text, booleans as 0 and 1. **A field that is left out**
of a PUT or PATCH stays as it is.

**Sending twice**: with an \`Idempotency-Key\` a request that costs money runs once, however often it is
sent.

**Streams** are server-sent events. Each has an \`id\`; whoever comes back with \`Last-Event-ID\` or
\`?after=\` gets what was missed and nothing twice.

**WebSockets** carry the same frames as JSON texts with \`id\` and \`type\`; close codes 4000 to 4499
mean "come back", 4500 to 4999 "do not". Where a browser cannot send a key, \`?ticket=\` takes a ticket
of \`POST /user/stream-tickets\`:

| Socket | What it carries | What it takes |
|---|---|---|
| \`/api/conversations/{uuid}/socket\` | the conversation's stream | \`{"type": "send", "message": "…"}\`, \`stop\`, \`resume\`, \`ping\` |
| \`/api/conversations/{uuid}/call?ticket=\` | a web call: 16-bit PCM both ways, a ticket of \`POST /conversations/{uuid}/call-ticket\` | PCM, \`start\`, \`mark\`, \`cleared\`, \`dtmf\`, \`words\`, \`offer\`, \`path\`, \`end\`, \`ping\` |
| \`/api/user/socket\` | everything in the account | \`resume\`, \`ping\` |
| \`/api/user/calls/{id}/socket\` | one call: a snapshot, then changes | \`say\`, \`mute\`, \`end\`, \`resume\`, \`ping\` |
| \`/api/user/calls/{id}/listen\` | both sides of a call, mixed, as 16-bit PCM after one frame that names the rate | nothing |
| \`/api/user/calls/{id}/speak\` | the call without you, for who has taken it over, in the same form | PCM of the microphone |
`.trim();

const Status = Type.Object({
  status: Type.String(about("`ok`, or `unavailable` with the reason.", "ok")),
  reason: Type.Optional(Type.String(about(
    "Why the server is not ready, in words.", "The server is stopping."))),
}, named("Health", "How the server is."));
const Metrics = Type.String(named(
  "Metrics", "Figures in Prometheus' text format: counters and histograms.",
  "process_cpu_seconds_total 12.4"));
const Rpc = Type.Object({
  jsonrpc: Type.Literal("2.0", about("The version of JSON-RPC.")),
  id: Type.Optional(Type.Union([Type.String(), Type.Integer(), Type.Null()], about(
    "Which request the answer belongs to; a notification has none.", 1))),
  method: Type.String(about(
    "`initialize`, `ping`, `tools/list` or `tools/call`.", "tools/list")),
  params: Type.Optional(Type.Record(Type.String(), Type.Unknown(), about(
    "What the method takes; `tools/call` takes `name` and `arguments`.", {}))),
}, named("McpRequest", "One JSON-RPC request or notification of the Model Context Protocol."));
const RpcAnswer = Type.Object({
  jsonrpc: Rpc.properties.jsonrpc,
  id: Type.Optional(Type.Union([Type.String(), Type.Integer(), Type.Null()], about(
    "The `id` of the request; absent where it had none that can be read.", 1))),
  result: Type.Optional(Type.Record(Type.String(), Type.Unknown(), about(
    "What came of it.", { tools: [] }))),
  error: Type.Optional(Type.Object({
    code: Type.Integer(about("JSON-RPC's code of the failure.", -32601)),
    message: Type.String(about("What was wrong.", "Method not found")),
    data: Type.Optional(Type.Unknown(about("More about it, where there is more.", {}))),
  }, about("What was wrong with the request."))),
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
  answers: { 200: ["Yes.", HEALTH], 400: FRAMING, 503: ["Not now; `reason` says why.", HEALTH] },
});

const MCP: Operation = {
  tag: "MCP",
  id: "postMcp",
  summary: "Speak MCP",
  description: "The Model Context Protocol over HTTP, without sessions or streams: this API's tools "
    + "for clients such as Claude, Cursor and other agents. A key without `write` sees the tools "
    + "that read. Also at `/api/mcp`.",
  body: oneOrMore(Rpc),
  needsKey: true,
  answers: {
    200: ["The answer to the request, or to each of a batch.", {
      "application/json": oneOrMore(RpcAnswer),
    }],
    202: ["A notification was taken."],
    400: ["No JSON-RPC request.", { "application/json": RpcAnswer }],
    401: ["No API key in force was sent.", REFUSED],
    403: ["The page that asks is not one of this server's.", { "application/json": RpcAnswer }],
    404: ["No such method.", { "application/json": RpcAnswer }],
    413: ["The request body is too large.", REFUSED],
    429: ["Too many requests; `Retry-After` says when to come back.", REFUSED],
    503: ["The server is stopping.", REFUSED],
  },
};

const ROOT: Record<string, Operation> = {
  "/livez": {
    ...health("getLivez", "Is the process alive?", "Answers as long as the server runs at all."),
    answers: { 200: ["Yes.", HEALTH], 400: FRAMING },
  },
  "/readyz": health(
    "getReadyz", "Is the server ready for requests?",
    "Not while it stops, and not while it cannot store anything. Also as `/healthz`."),
  "/metrics": {
    tag: "Server",
    id: "getMetrics",
    summary: "Figures for Prometheus",
    description: "For loopback, or with `PARLEY_METRICS_TOKEN` as the bearer token.",
    answers: {
      200: ["The figures.", { "text/plain": Metrics }],
      401: ["Neither from loopback nor with the token.", REFUSED],
      403: ["Neither from loopback nor with the token.", REFUSED],
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
