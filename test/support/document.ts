// The OpenAPI document for tests: read once per process, from a server that nothing else uses.
import { startTestServer } from "./server.ts";

export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  default?: unknown;
  examples?: unknown[];
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
}

type Content = Record<string, { schema: Schema; example?: unknown }>;

export interface Operation {
  operationId: string;
  description: string;
  deprecated?: boolean;
  parameters?: {
    in: string; name: string; description?: string; example?: unknown; schema: Schema;
  }[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { $ref?: string; content?: Content }>;
  security: object[];
}

export interface Document {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, { content?: Content }>;
  };
}

export async function documentOf(): Promise<Document> {
  const server = await startTestServer();
  const document = JSON.parse(JSON.stringify(server.app.openApi())) as Document;
  await server.close();
  return document;
}

export const operationsOf = ({ paths }: Document) =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== "servers")
      .map(([method, operation]) => ({ name: `${method} ${path}`, path, method, operation })));
