// The OpenAPI 3.1 document, made from the Route records that also validate, so that the two cannot
// drift. What any route of a kind may answer is stated here once; openapi-schema.ts prints schemas.
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { InvalidSchema, REFUSALS } from "./answers.ts";
import { createPrinter, type Printed, type Printer } from "./openapi-schema.ts";
import type { Answer, ErrorShape, Route } from "./route.ts";
import { TAGS } from "./tags.ts";
import { shownFor } from "#core/schema.ts";

export interface DocumentInfo {
  version: string;
  /** Root of the API, absolute or as a path. */
  baseUrl: string;
  /** Markdown. */
  description: string;
  /** Path items for what is not below the API root. */
  paths?: (printer: Printer) => Record<string, object>;
}

const JSON_TYPE = "application/json";
const STREAM_TYPE = "text/event-stream";
const RETRY_AFTER = {
  "Retry-After": {
    description: "Seconds to wait before trying again.",
    schema: { type: "integer", examples: [1] },
  },
};

/** Refusals that any route of a kind can give before its handler runs. */
const GENERAL: Record<number, string> = {
  400: "The request is malformed, for example not a JSON object.",
  401: "No valid API key was sent, and nobody is signed in.",
  403: "The key lacks the scope, the role lacks the right, or the page's origin is not allowed.",
  404: "The resource does not exist or belongs to another account.",
  413: "The request body is too large.",
  422: "All invalid fields.",
  429: "Too many requests; `Retry-After` says how long to wait.",
  500: "The server failed; nothing was charged.",
  503: "The server is stopping or cannot store data; try again later.",
};

const ANY_ID = Type.Integer({ minimum: 1 });
const ANY_UUID = Type.String({ format: "uuid" });

const needsKey = (route: Route): boolean => route.auth === "key" || route.asksForKey === true;
const hasFields = (schema: TObject | undefined): boolean =>
  Object.keys(schema?.properties ?? {}).length > 0;

function generalStatuses(route: Route): number[] {
  const hasPlace = route.path.includes("{");
  const isLimited = needsKey(route);
  const isOwnPages = route.auth === "public" && route.ownPages === true;
  const found: [number, boolean][] = [
    [400, hasPlace || route.body !== undefined],
    [401, isLimited],
    [403, isLimited || isOwnPages || route.path.includes("{uuid}")],
    [404, hasPlace],
    [413, route.body !== undefined],
    [422, hasFields(route.query) || hasFields(route.body)],
    [429, isLimited || isOwnPages],
    [500, true],
    [503, true],
  ];
  return found.filter(([, may]) => may).map(([status]) => status);
}

export function buildOpenApi(routes: Route[], info: DocumentInfo): object {
  const printer = createPrinter();
  const responses: Record<string, object> = {};
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes.filter(({ isUndocumented }) => !isUndocumented)) {
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      (paths[path] ??= {})[route.method.toLowerCase()] =
        operationOf(printer, responses, route, path);
    }
  }
  const all = { ...paths, ...info.paths?.(printer) };
  return {
    openapi: "3.1.0",
    info: {
      title: "Parley",
      version: info.version,
      summary: "AI assistants that talk with people in text and on calls.",
      description: info.description,
      contact: { name: "Whoever runs this server" },
      license: { name: "MIT", url: "https://opensource.org/license/mit" },
    },
    servers: [{ url: info.baseUrl, description: "This server." }],
    tags: tagsOf(all),
    paths: all,
    components: {
      securitySchemes: {
        apiKey: {
          type: "http", scheme: "bearer",
          description: "An API key: `Authorization: Bearer <key>`.",
        },
      },
      schemas: Object.fromEntries(
        Object.entries(printer.components).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
    },
  };
}

/** The tags in use, in the order of the table. */
function tagsOf(paths: Record<string, object>): object[] {
  const used = new Set(Object.values(paths)
    .flatMap((item) => Object.values(item) as { tags?: string[] }[])
    .flatMap(({ tags = [] }) => tags));
  return Object.entries(TAGS)
    .filter(([name]) => used.has(name))
    .map(([name, description]) => ({ name, description }));
}

function operationOf(
  printer: Printer, responses: Record<string, object>, route: Route, path: string,
): object {
  const isAlias = path !== route.path;
  const parameters = parametersOf(printer, route, path);
  return {
    operationId: operationId(route.method, path),
    tags: [route.tag],
    summary: route.summary,
    description: isAlias
      ? `Another spelling of \`${route.method} ${route.path}\`, for older clients.`
      : route.description ?? `${route.summary}.`,
    ...(isAlias ? { deprecated: true } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body ? { requestBody: requestBodyOf(printer, route, route.body) } : {}),
    responses: responsesOf(printer, responses, route),
    security: needsKey(route) ? [{ apiKey: [] }] : [],
  };
}

function operationId(method: string, path: string): string {
  const words = path.replaceAll(/[{}]/g, "").split(/[/_-]/).filter((word) => word !== "");
  const camel = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return method.toLowerCase() + camel;
}

function parametersOf(printer: Printer, route: Route, path: string): object[] {
  const parameter = (place: string, name: string, given: TSchema, required: boolean): object => {
    const { description, examples, ...schema } = printer.print(given);
    const example = printer.exampleOf({ ...schema, ...(examples ? { examples } : {}) });
    return { name, in: place, required, description, schema, example };
  };
  const group = (place: string, fields: Record<string, TSchema>, required: string[]): object[] =>
    Object.entries(fields).map(([name, schema]) =>
      parameter(place, name, schema, required.includes(name)));
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => {
    return parameter("path", name, route.params?.[name] ?? (name === "uuid" ? ANY_UUID : ANY_ID), true);
  });
  return [
    ...named,
    ...group("query", route.query?.properties ?? {}, route.query?.required ?? []),
    ...group("header", route.headers ?? {}, []),
  ];
}

function requestBodyOf(printer: Printer, route: Route, body: TObject): object {
  const isUpdate = route.method === "PUT" || route.method === "PATCH";
  const schema = printer.print(body, isUpdate);
  const content = contentOf(printer, JSON_TYPE, schema);
  const required = isNeeded(shownFor(body) ?? body);
  if (!route.upload) return { required, content };
  const properties = {
    ...(schema.properties as object),
    file: {
      type: "string", format: "binary", description: "The file itself.",
      examples: ["(bytes of the file)"],
    },
  };
  const { isOptional = false } = route.upload;
  const always = [...body.required ?? [], ...(isOptional ? [] : ["file"])];
  const form = contentOf(
    printer, "multipart/form-data", { type: "object", properties, required: always });
  // Generated clients send the first content type listed.
  return isOptional ? { required, content: { ...content, ...form } }
    : { required: true, content: form };
}

/** An empty body does not fit: there are fields it needs, whichever alternative it follows. */
const isNeeded = ({ required = [], anyOf }: TSchema): boolean =>
  anyOf ? (anyOf as TSchema[]).every(isNeeded) : (required as string[]).length > 0;

const contentOf = (printer: Printer, contentType: string, schema: Printed): object => {
  const example = contentType === JSON_TYPE ? printer.exampleOf(schema) : undefined;
  return { [contentType]: { schema, ...(example === undefined ? {} : { example }) } };
};

function responsesOf(
  printer: Printer, responses: Record<string, object>, route: Route,
): Record<string, object> {
  const own = Object.entries(route.responses)
    .map(([status, answer]) => [Number(status), answerOf(printer, route, Number(status), answer)]);
  const general = generalStatuses(route)
    .filter((status) => route.responses[status] === undefined)
    .map((status) => [status, generalOf(printer, responses, route, status)]);
  return Object.fromEntries([...own, ...general] as [number, object][]) as Record<string, object>;
}

function answerOf(printer: Printer, route: Route, status: number, answer: Answer): object {
  const { description, schema, contentType = JSON_TYPE, otherContentType, stream } = answer;
  const others = [otherContentType ?? []].flat();
  const shown = schema
    ? printer.print(schema)
    : status >= 400 ? refusalOf(printer, route, status) : null;
  const content = {
    ...(shown ? contentOf(printer, contentType, shown) : {}),
    ...(shown ? Object.assign({}, ...others.map((type) => contentOf(printer, type, shown))) : {}),
    ...(stream ? contentOf(printer, STREAM_TYPE, printer.print(stream)) : {}),
  };
  const headers = status === 429 || status === 503 ? { headers: RETRY_AFTER } : {};
  return { description, ...headers, ...(Object.keys(content).length > 0 ? { content } : {}) };
}

/** Validation errors have one shape everywhere; other refusals have the route's. */
function refusalOf(printer: Printer, { refusals, errorShape }: Route, status: number): Printed {
  if (refusals) return printer.print(refusals.schema);
  const refusal = printer.print(REFUSALS[errorShape]);
  return status === 422 && errorShape !== "message"
    ? { anyOf: [printer.print(InvalidSchema), refusal] }
    : refusal;
}

const SHAPE_NAMES: Record<ErrorShape, string> = {
  message: "", error: "Error", conversation: "Status", success: "Success",
};

function generalOf(
  printer: Printer, responses: Record<string, object>, route: Route, status: number,
): object {
  const name = `Refusal${route.refusals ? "OpenAi" : SHAPE_NAMES[route.errorShape]}${status}`;
  responses[name] ??= answerOf(
    printer, route, status, { description: GENERAL[status] ?? "Refused." });
  return { $ref: `#/components/responses/${name}` };
}
