// Mid-call tools and the journal of their calls in the database.
import type { JournalOutcome, ToolJournal } from "#features/tools/invocation.ts";
import type { StoredTool, ToolCall, ToolParameter, ToolStore } from "#features/tools/tools.ts";
import type { Instant } from "#core/system.ts";
import { createDetacher } from "./assistants/assistants.ts";
import { orNull, type Exists, type Reader, type Sql } from "./sql.ts";
import type { WriterOf } from "./writer.ts";

interface ToolRow {
  id: number;
  uuid: string;
  account_id: number;
  name: string;
  description: string;
  endpoint: string;
  method: StoredTool["method"];
  timeout_s: number;
  headers: string;
  schema: string;
  body_format: StoredTool["bodyFormat"];
  static_fields: string;
  mcp: string | null;
  created_at: number;
  updated_at: number;
}

function toolFromRow(row: ToolRow): StoredTool {
  return {
    id: row.id,
    uuid: row.uuid,
    accountId: row.account_id,
    name: row.name,
    description: row.description,
    endpoint: row.endpoint,
    method: row.method,
    timeoutS: row.timeout_s,
    sealedHeaders: row.headers,
    schema: JSON.parse(row.schema) as ToolParameter[],
    bodyFormat: row.body_format,
    sealedFields: row.static_fields,
    mcp: row.mcp === null ? null : JSON.parse(row.mcp) as StoredTool["mcp"],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

interface CallRow {
  id: number;
  state: "sent" | "done" | "unsent";
  result: string | null;
  created_at: number;
  finished_at: number | null;
}

function callFromRow(row: CallRow): ToolCall {
  const result = row.result === null
    ? null : JSON.parse(row.result) as Record<string, unknown>;
  // A failed call has its error under `error` (features/tools/invocation.ts), as an endpoint's own
  // answer may.
  const isFailure = row.state === "unsent" || (result !== null && typeof result.error === "string");
  const state = row.state === "sent" || result === null ? "unknown" : isFailure ? "failed" : "answered";
  return { id: row.id, state, result, createdAt: row.created_at, finishedAt: row.finished_at };
}

const columnsOf = (tool: Omit<StoredTool, "id">) => ({
  ...tool, schema: JSON.stringify(tool.schema),
  mcp: tool.mcp === null ? null : JSON.stringify(tool.mcp),
});

export function toolCommands(sql: Sql) {
  const detach = createDetacher(sql);
  const count = sql.prepare<object, { count: number }>(
    "SELECT count(*) AS count FROM tools WHERE account_id = @accountId");
  const insert = sql.prepare<object, ToolRow>(`
    INSERT INTO tools (uuid, account_id, name, description, endpoint, method, timeout_s, headers,
      schema, body_format, static_fields, mcp, created_at, updated_at)
    VALUES (@uuid, @accountId, @name, @description, @endpoint, @method, @timeoutS, @sealedHeaders,
      @schema, @bodyFormat, @sealedFields, @mcp, @createdAt, @updatedAt) RETURNING *`);
  const change = sql.prepare(`
    UPDATE tools SET name = @name, description = @description, endpoint = @endpoint,
      method = @method, timeout_s = @timeoutS, headers = @sealedHeaders, schema = @schema,
      body_format = @bodyFormat, static_fields = @sealedFields, mcp = @mcp, updated_at = @updatedAt
    WHERE id = @id AND account_id = @accountId AND updated_at = @expectedUpdatedAt`);
  const find = sql.prepare<object, Exists>(
    "SELECT 1 FROM tools WHERE id = @id AND account_id = @accountId");
  const remove = sql.prepare("DELETE FROM tools WHERE id = @toolId AND account_id = @accountId");
  return {
    "tools.create": async (
      { tool, toolsMax }: { tool: Omit<StoredTool, "id">; toolsMax: number },
    ) => {
      const { accountId } = tool;
      if (((await count.get({ accountId }))?.count ?? 0) >= toolsMax) return null;
      const row = await insert.one(columnsOf(tool));
      return toolFromRow(row);
    },
    "tools.update": async (
      { expectedUpdatedAt, ...tool }: Parameters<ToolStore["update"]>[0],
    ): Promise<"updated" | "changed" | "not_found"> => {
      const { id, accountId } = tool;
      const { changes } = await change.run({ ...columnsOf(tool), id, expectedUpdatedAt });
      if (changes > 0) return "updated";
      return await find.get({ id, accountId }) === undefined ? "not_found" : "changed";
    },
    "tools.remove": async (
      args: { accountId: number; toolId: number; now: Instant },
    ): Promise<boolean> => {
      if ((await remove.run(args)).changes === 0) return false;
      await detach.tool(args.accountId, args.toolId, args.now);
      return true;
    },
    ...journalCommands(sql),
  };
}

function journalCommands(sql: Sql) {
  const find = sql.prepare<object, { id: number; state: string; result: string | null }>(
    `
    SELECT id, state, result FROM tool_calls
    WHERE scope = @scope AND call_key = @callKey AND account_id = @accountId`);
  const insert = sql.prepare(`
    INSERT INTO tool_calls (scope, call_key, account_id, tool_id, state, created_at)
    VALUES (@scope, @callKey, @accountId, @toolId, 'sent', @now)`);
  const again = sql.prepare(
    "UPDATE tool_calls SET state = 'sent', result = NULL, finished_at = NULL WHERE id = @id");
  const finish = sql.prepare(`
    UPDATE tool_calls SET state = @state, result = @result, finished_at = @now
    WHERE id = @id AND account_id = @accountId`);
  const trim = sql.prepare(`
    DELETE FROM tool_calls
    WHERE +account_id = @accountId AND ${sql.dialect.among("id", "@ids")}`);
  return {
    "tools.beginCall": async (
      args: Parameters<ToolJournal["begin"]>[0],
    ): Promise<JournalOutcome> => {
      const earlier = await find.get(args);
      if (!earlier) return { kind: "started", id: await insert.insert(args) };
      if (earlier.state === "sent") return { kind: "unknown" };
      if (earlier.state === "done" && earlier.result !== null) {
        return { kind: "repeated", result: JSON.parse(earlier.result) as Record<string, unknown> };
      }
      await again.run({ id: earlier.id });
      return { kind: "started", id: earlier.id };
    },
    "tools.finishCall": async (args: Parameters<ToolJournal["finish"]>[0]): Promise<void> => {
      const { accountId, id, sent, now } = args;
      const state = sent ? "done" : "unsent";
      await finish.run({ accountId, id, state, result: JSON.stringify(args.result), now });
    },
    /** Journal rows past the retention; returns how many went. */
    "tools.trimCalls": async (args: { accountId: number; ids: number[] }): Promise<number> =>
      (await trim.run(args)).changes,
  };
}

export function createToolStore(reader: Reader, writer: WriterOf<typeof toolCommands>): ToolStore {
  const find = reader.prepare<object, ToolRow>(
    "SELECT * FROM tools WHERE id = @toolId AND account_id = @accountId");
  const list = reader.prepare<object, ToolRow>(
    "SELECT * FROM tools WHERE account_id = @accountId ORDER BY id");
  const calls = reader.prepare<object, CallRow>(`
    SELECT id, state, result, created_at, finished_at FROM tool_calls
    WHERE tool_id = @toolId AND +account_id = @accountId ORDER BY id DESC LIMIT @count`);
  return {
    create: (tool, toolsMax) => writer.write("tools.create", { tool, toolsMax }),
    update: (tool) => writer.write("tools.update", tool),
    remove: (args) => writer.write("tools.remove", args),
    find: async (accountId, toolId) => orNull(await find.get({ accountId, toolId }), toolFromRow),
    list: async (accountId) => (await list.all({ accountId })).map(toolFromRow),
    calls: async (accountId, toolId, count) =>
      (await calls.all({ accountId, toolId, count })).map(callFromRow),
  };
}

export function createToolJournal(writer: WriterOf<typeof toolCommands>): ToolJournal {
  return {
    begin: (args) => writer.write("tools.beginCall", args),
    finish: (args) => writer.write("tools.finishCall", args),
  };
}
