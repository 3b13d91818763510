// Mid-call tools: HTTP endpoints of an account that its assistants may call while they answer.
// Records, store port, rules. Calling them is in invocation.ts.
import { changing } from "#core/changing.ts";
import { Fault } from "#core/faults.ts";
import { MASK, type SecretBox } from "#core/secrets.ts";
import type { Instant, System } from "#core/system.ts";

export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
type Method = (typeof METHODS)[number];

export const ITEM_TYPES = ["string", "number", "boolean"] as const;
export type ItemType = (typeof ITEM_TYPES)[number];
export const PARAMETER_TYPES = [...ITEM_TYPES, "array"] as const;
export const BODY_FORMATS = ["json", "form"] as const;
type BodyFormat = (typeof BODY_FORMATS)[number];

interface ToolHeader {
  name: string;
  /** Usually a secret: sealed at rest, shown only to its owner. */
  value: string;
}

/** What the model fills in. */
export interface ToolParameter {
  name: string;
  type: (typeof PARAMETER_TYPES)[number];
  description: string;
  /** Absent: true. */
  required?: boolean;
  /** The allowed values, for an array those of each item; absent: any value. */
  enum?: (string | number)[];
  /** The type of an array's items; absent: strings. */
  items?: { type: ItemType };
}

/** Sent with every call, whatever the model fills in. */
interface StaticField {
  key: string;
  /** May be a token, so it is sealed like a header's value. */
  value: string;
}

/** The tool is one of the MCP server at the endpoint; `tool` is its name there. */
interface McpBinding {
  tool: string;
  /** The parameters as the server describes them. */
  inputSchema: Record<string, unknown>;
}

export interface ToolFields {
  name: string;
  description: string;
  endpoint: string;
  method: Method;
  timeoutS: number;
  headers: ToolHeader[];
  schema: ToolParameter[];
  /** How parameters travel where they are not in the URL. */
  bodyFormat: BodyFormat;
  staticFields: StaticField[];
  /** Null: a plain endpoint. */
  mcp: McpBinding | null;
}

export interface Tool extends ToolFields {
  id: number;
  accountId: number;
  createdAt: Instant;
  updatedAt: Instant;
  /** Its secrets were sealed under another key: headers and static fields are empty. */
  isLocked: boolean;
}

/** Tells the owner why a locked tool cannot be called. */
export const LOCKED_PROBLEM = "The headers and static fields of this tool were encrypted with another "
  + "PARLEY_SECRET. Enter them again, or start the server with that secret.";

/** As it is stored: each list of secrets is one sealed text, bound to the row by its uuid. */
export interface StoredTool extends Omit<Tool, "headers" | "staticFields" | "isLocked"> {
  uuid: string;
  sealedHeaders: string;
  /** Empty where there are none. */
  sealedFields: string;
}

export const CALL_STATES = ["answered", "failed", "unknown"] as const;
/** How many of a tool's last calls are shown. */
export const TOOL_CALLS_SHOWN = 20;

/** A call that an assistant made. */
export interface ToolCall {
  id: number;
  state: (typeof CALL_STATES)[number];
  /** What the model received; null: nothing yet, or it was lost. */
  result: Record<string, unknown> | null;
  createdAt: Instant;
  finishedAt: Instant | null;
}

export interface ToolStore {
  /** Null when the account has `toolsMax` already. */
  create(tool: Omit<StoredTool, "id">, toolsMax: number): Promise<StoredTool | null>;
  /** `changed`: the row is no longer the one that was read. */
  update(
    tool: StoredTool & { expectedUpdatedAt: Instant },
  ): Promise<"updated" | "changed" | "not_found">;
  /** Also removes it from every assistant. False when the account has no such tool. */
  remove(args: { accountId: number; toolId: number; now: Instant }): Promise<boolean>;
  find(accountId: number, toolId: number): Promise<StoredTool | null>;
  /** Oldest first. */
  list(accountId: number): Promise<StoredTool[]>;
  /** Newest first, for as long as the journal keeps them. */
  calls(accountId: number, toolId: number, count: number): Promise<ToolCall[]>;
}

export interface Tools {
  /** Fault 422 when the plan allows no more. */
  create(accountId: number, fields: ToolFields): Promise<Tool>;
  /**
   * Absent members and masked secrets stay unchanged. Throws Fault 404 when the account has no such
   * tool.
   */
  update(accountId: number, toolId: number, changes: Partial<ToolFields>): Promise<Tool>;
  /** Fault 404 when the account has no such tool. */
  remove(accountId: number, toolId: number): Promise<void>;
  find(accountId: number, toolId: number): Promise<Tool | null>;
  /** The tool as a model sees it; does not open any secret. */
  describe(accountId: number, toolId: number): Promise<ToolDescription | null>;
  list(accountId: number): Promise<Tool[]>;
  /** The last of its calls, newest first. Fault 404 when the account has no such tool. */
  calls(accountId: number, toolId: number): Promise<ToolCall[]>;
}

export type ToolDescription = Pick<Tool, "id" | "name" | "description" | "schema">
  & Partial<Pick<Tool, "mcp">>;

/** A tool made of the fields for a trial; it is not stored. */
export const unsavedTool = (accountId: number, fields: ToolFields): Tool =>
  ({ ...fields, id: 0, accountId, createdAt: 0, updatedAt: 0, isLocked: false });

interface ToolsOptions {
  store: ToolStore;
  box: SecretBox;
  system: System;
  /** How many tools the account's plan allows. */
  toolsMax(accountId: number): Promise<number>;
}

export const toolNotFound = (): Fault => new Fault(404, "Tool not found");

export function createTools({ store, box, system, toolsMax }: ToolsOptions): Tools {
  const secrets = createToolSecrets(box);
  return {
    create: async (accountId, { headers, staticFields, ...fields }) => {
      const now = system.now();
      const most = await toolsMax(accountId);
      const place = { accountId, uuid: system.uuid() };
      const stored = await store.create({
        ...fields, ...place, createdAt: now, updatedAt: now,
        sealedHeaders: secrets.seal(place, "headers", headers),
        sealedFields: secrets.seal(place, "static_fields", staticFields),
      }, most);
      if (stored) return secrets.opened(stored);
      throw new Fault(422, `You have reached your plan limit of ${most} mid call tools. `
        + "Please upgrade your plan to create more tools.");
    },
    update: (accountId, toolId, changes) => changing("tool", async () => {
      const stored = await store.find(accountId, toolId);
      if (!stored) throw toolNotFound();
      const { updatedAt: expectedUpdatedAt } = stored;
      const updatedAt = Math.max(system.now(), expectedUpdatedAt + 1);
      const tool = { ...changedTool(secrets, stored, changes), updatedAt };
      const outcome = await store.update({ ...tool, expectedUpdatedAt });
      if (outcome === "not_found") throw toolNotFound();
      return outcome === "updated" ? secrets.opened(tool) : null;
    }),
    remove: async (accountId, toolId) => {
      if (!await store.remove({ accountId, toolId, now: system.now() })) throw toolNotFound();
    },
    find: async (accountId, toolId) => {
      const stored = await store.find(accountId, toolId);
      return stored && secrets.opened(stored);
    },
    describe: (accountId, toolId) => store.find(accountId, toolId),
    list: async (accountId) => (await store.list(accountId)).map(secrets.opened),
    calls: async (accountId, toolId) => {
      if (!await store.find(accountId, toolId)) throw toolNotFound();
      return store.calls(accountId, toolId, TOOL_CALLS_SHOWN);
    },
  };
}

function changedTool(
  secrets: ReturnType<typeof createToolSecrets>, stored: StoredTool,
  { headers, staticFields, ...changes }: Partial<ToolFields>,
): StoredTool {
  const before = secrets.opened(stored);
  const tool: StoredTool = { ...stored, ...changes };
  // Lists that are not sent keep their sealed text, even if it cannot be opened now.
  if (headers) {
    const kept = headers.map((header) => unmasked(header, "name", before.headers));
    tool.sealedHeaders = secrets.seal(stored, "headers", kept);
  }
  if (staticFields) {
    const kept = staticFields.map((field) => unmasked(field, "key", before.staticFields));
    tool.sealedFields = secrets.seal(stored, "static_fields", kept);
  }
  return tool;
}

/** Replaces a masked secret by the stored one of the same name. */
function unmasked<K extends string, T extends Record<K, string> & { value: string }>(
  given: T, name: K, before: T[],
): T {
  if (given.value !== MASK) return given;
  return before.find((other) => other[name] === given[name]) ?? given;
}

type Place = Pick<StoredTool, "accountId" | "uuid">;

/** What a tool's secrets are bound to. */
export const toolPlace = ({ accountId, uuid }: Place, column: string): string =>
  `tools:${accountId}:${uuid}:${column}`;

function createToolSecrets(box: SecretBox) {
  const seal = (place: Place, column: "headers" | "static_fields", list: object[]): string =>
    column === "static_fields" && list.length === 0
      ? ""
      : box.seal(JSON.stringify(list), toolPlace(place, column));
  const open = <T>(place: Place, column: string, sealed: string): T[] | null => {
    if (sealed === "") return [];
    const text = box.tryOpen(sealed, toolPlace(place, column));
    return text === null ? null : JSON.parse(text) as T[];
  };
  const opened = ({ sealedHeaders, sealedFields, ...tool }: StoredTool): Tool => {
    const headers = open<ToolHeader>(tool, "headers", sealedHeaders);
    const staticFields = open<StaticField>(tool, "static_fields", sealedFields);
    const { uuid: _, ...shown } = tool;
    return {
      ...shown,
      headers: headers ?? [], staticFields: staticFields ?? [],
      isLocked: headers === null || staticFields === null,
    };
  };
  return { seal, opened };
}
