// Mid-call tools: HTTP endpoints of an account that its assistants may call while they answer.
// Records, store port, rules. What happens when one is called is in invocation.ts.
import { Fault } from "../core/faults.ts";
import type { SecretBox } from "../core/secrets.ts";
import type { Instant, System } from "../core/system.ts";

export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];

export const PARAMETER_TYPES = ["string", "number", "boolean"] as const;

export interface ToolHeader {
  name: string;
  /** A secret more often than not: sealed at rest, shown to its owner, told to nobody else. */
  value: string;
}

/** What the model fills in. */
export interface ToolParameter {
  name: string;
  type: (typeof PARAMETER_TYPES)[number];
  description: string;
}

export interface ToolFields {
  name: string;
  description: string;
  endpoint: string;
  method: Method;
  timeoutS: number;
  headers: ToolHeader[];
  schema: ToolParameter[];
}

export interface Tool extends ToolFields {
  id: number;
  accountId: number;
  createdAt: Instant;
  updatedAt: Instant;
}

/** As it is stored: the headers are one sealed text, bound to the row by its uuid. */
export interface StoredTool extends Omit<Tool, "headers"> {
  uuid: string;
  sealedHeaders: string;
}

export interface ToolStore {
  /** Null when the account has `toolsMax` already. */
  create(tool: Omit<StoredTool, "id">, toolsMax: number): Promise<StoredTool | null>;
  /** False when the account has no such tool. */
  update(tool: StoredTool): Promise<boolean>;
  /** Also takes it from every assistant. False when the account has no such tool. */
  remove(args: { accountId: number; toolId: number; now: Instant }): Promise<boolean>;
  find(accountId: number, toolId: number): StoredTool | null;
  /** Oldest first. */
  list(accountId: number): StoredTool[];
}

export interface Tools {
  /** Fault 422 when the plan allows no more. */
  create(accountId: number, fields: ToolFields): Promise<Tool>;
  /** Absent members stay as they are. Fault 404 when the account has no such tool. */
  update(accountId: number, toolId: number, changes: Partial<ToolFields>): Promise<Tool>;
  /** Fault 404 when the account has no such tool. */
  remove(accountId: number, toolId: number): Promise<void>;
  find(accountId: number, toolId: number): Tool | null;
  /** What a model is told of the tool; opens no secret. */
  describe(accountId: number, toolId: number): ToolDescription | null;
  list(accountId: number): Tool[];
}

export type ToolDescription = Pick<Tool, "id" | "name" | "description" | "schema">;

export interface ToolsOptions {
  store: ToolStore;
  box: SecretBox;
  system: System;
  /** How many tools the account's plan allows. */
  toolsMax(accountId: number): number;
}

export const toolNotFound = (): Fault => new Fault(404, "Tool not found");

export function createTools({ store, box, system, toolsMax }: ToolsOptions): Tools {
  const place = (accountId: number, uuid: string): string => `tools:${accountId}:${uuid}:headers`;
  const opened = ({ uuid, sealedHeaders, ...tool }: StoredTool): Tool => ({
    ...tool,
    headers: JSON.parse(box.open(sealedHeaders, place(tool.accountId, uuid))) as ToolHeader[],
  });
  const sealed = (tool: Omit<Tool, "id">, uuid: string): Omit<StoredTool, "id"> => {
    const { headers, ...plain } = tool;
    const text = JSON.stringify(headers);
    return { ...plain, uuid, sealedHeaders: box.seal(text, place(tool.accountId, uuid)) };
  };
  return {
    create: async (accountId, fields) => {
      const now = system.now();
      const most = toolsMax(accountId);
      const tool = sealed({ ...fields, accountId, createdAt: now, updatedAt: now }, system.uuid());
      const stored = await store.create(tool, most);
      if (stored) return opened(stored);
      throw new Fault(422, `You have reached your plan limit of ${most} mid call tools. `
        + "Please upgrade your plan to create more tools.");
    },
    update: async (accountId, toolId, changes) => {
      const stored = store.find(accountId, toolId);
      if (!stored) throw toolNotFound();
      const tool = { ...opened(stored), ...changes, updatedAt: system.now() };
      const isThere = await store.update({ ...sealed(tool, stored.uuid), id: toolId });
      if (!isThere) throw toolNotFound();
      return tool;
    },
    remove: async (accountId, toolId) => {
      if (!await store.remove({ accountId, toolId, now: system.now() })) throw toolNotFound();
    },
    find: (accountId, toolId) => {
      const stored = store.find(accountId, toolId);
      return stored && opened(stored);
    },
    describe: (accountId, toolId) => store.find(accountId, toolId),
    list: (accountId) => store.list(accountId).map(opened),
  };
}
