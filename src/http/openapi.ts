// The OpenAPI 3.1 document, made from the Route records that validate: it cannot drift from them.
import type { TObject, TSchema } from "@sinclair/typebox";
import { API_ROOT } from "./api.ts";
import type { ErrorShape, Route } from "./route.ts";

const text = { type: "string" };
const ERROR_SCHEMAS: Record<ErrorShape, object> = {
  message: { type: "object", properties: { message: text }, required: ["message"] },
  error: { type: "object", properties: { error: text }, required: ["error"] },
  conversation: {
    type: "object",
    properties: { status: { const: false }, error: text },
    required: ["status", "error"],
  },
  success: {
    type: "object",
    properties: { success: { const: false }, error: text, error_code: text },
    required: ["success", "error"],
  },
};

const jsonContent = (schema: object, contentType = "application/json"): object => ({
  [contentType]: { schema },
});

function parametersOf(route: Route, path: string): object[] {
  const fromPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: name === "uuid" ? { type: "string", format: "uuid" } : { type: "integer" },
  }));
  const query = route.query as TObject | undefined;
  const required = new Set(query?.required ?? []);
  const fromQuery = Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.has(name),
    schema: schema as TSchema,
  }));
  return [...fromPath, ...fromQuery];
}

function bodyContentOf({ upload }: Route, body: TObject): object {
  if (!upload) return jsonContent(body);
  const properties = { ...body.properties, file: { type: "string", format: "binary" } };
  const form = { type: "object", properties, required: body.required ?? [] };
  return { ...jsonContent(body), ...jsonContent(form, "multipart/form-data") };
}

const needsKey = (route: Route): boolean => route.auth === "key" || route.asksForKey === true;

function responsesOf(route: Route): Record<string, object> {
  const described = Object.entries(route.responses).map(([status, response]) => [
    status,
    {
      description: response.description,
      content: jsonContent(response.schema, response.contentType),
    },
  ]);
  const own = route.refusals?.schema;
  const general = { content: jsonContent(own ?? ERROR_SCHEMAS[route.errorShape]) };
  const fallbacks: Record<string, object> = {
    "429": { description: "Too many requests", ...general },
    "5XX": { description: "The server failed", ...general },
  };
  if (needsKey(route)) {
    fallbacks["401"] = {
      description: "No key in force", content: jsonContent(own ?? ERROR_SCHEMAS.message),
    };
  }
  return { ...fallbacks, ...(Object.fromEntries(described) as Record<string, object>) };
}

function operationId(method: string, path: string): string {
  const words = path.replaceAll(/[{}]/g, "").split(/[/_-]/).filter((word) => word !== "");
  const camel = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return method.toLowerCase() + camel;
}

export function buildOpenApi(routes: Route[], info: { version: string; baseUrl: string }): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      const operations = (paths[path] ??= {});
      operations[route.method.toLowerCase()] = {
        operationId: operationId(route.method, path),
        tags: [route.tag],
        summary: route.summary,
        ...(path === route.path ? {} : { description: `Another spelling of ${route.path}.` }),
        parameters: parametersOf(route, path),
        ...(route.body ? { requestBody: { content: bodyContentOf(route, route.body) } } : {}),
        responses: responsesOf(route),
        security: needsKey(route) ? [{ apiKey: [] }] : [],
      };
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Parley",
      version: info.version,
      description: "AI assistants that talk with people in text and on calls.",
    },
    servers: [{ url: info.baseUrl || API_ROOT }],
    paths,
    components: { securitySchemes: { apiKey: { type: "http", scheme: "bearer" } } },
  };
}
