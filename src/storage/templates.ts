// Sets of objects made from templates: reads and commands. Rules: features/templates/templates.ts.
import type { NewSet, TemplateSet, TemplateStore } from "#features/templates/templates.ts";
import type { TemplateName } from "#features/templates/gallery.ts";
import { orNull, type Reader, type Sql } from "./sql.ts";
import { writes, type WriterOf } from "./writer.ts";

interface SetRow {
  id: number;
  template: TemplateName;
  assistant_id: number;
  knowledgebase_id: number | null;
  tool_id: number | null;
  call_id: number | null;
  created_at: number;
}

const SET = "id, template, assistant_id, knowledgebase_id, tool_id, call_id, created_at";

const setFromRow = (row: SetRow): TemplateSet => ({
  id: row.id,
  template: row.template,
  assistantId: row.assistant_id,
  knowledgebaseId: row.knowledgebase_id,
  toolId: row.tool_id,
  callId: row.call_id,
  createdAt: row.created_at,
});

export function createTemplateStore(
  reader: Reader, writer: WriterOf<typeof templateCommands>,
): TemplateStore {
  const list = reader.prepare<object, SetRow>(
    `SELECT ${SET} FROM template_sets WHERE account_id = @accountId ORDER BY id DESC`);
  const find = reader.prepare<object, SetRow>(
    `SELECT ${SET} FROM template_sets WHERE account_id = @accountId AND id = @id`);
  return {
    ...writes(writer, "templates", "add", "remove"),
    list: async (accountId) => (await list.all({ accountId })).map(setFromRow),
    find: async (accountId, id) => orNull(await find.get({ accountId, id }), setFromRow),
  };
}

export function templateCommands(sql: Sql) {
  const add = sql.prepare<object, SetRow>(`
    INSERT INTO template_sets (account_id, template, assistant_id, knowledgebase_id, tool_id,
      call_id, created_at)
    VALUES (@accountId, @template, @assistantId, @knowledgebaseId, @toolId, @callId, @now)
    RETURNING ${SET}`);
  const remove = sql.prepare("DELETE FROM template_sets WHERE id = @id AND account_id = @accountId");
  return {
    "templates.add": async (args: NewSet): Promise<TemplateSet> => setFromRow(await add.one(args)),
    "templates.remove": async (args: { accountId: number; id: number }): Promise<void> => {
      await remove.run(args);
    },
  };
}
