// Folders and labels in the database. The two tables have one shape, so their statements are
// written once, with the table's name interpolated from the constants below; nothing else ever is.
import type {
  Color, Group, GroupChanges, GroupOutcome, GroupStore,
} from "#features/assistants/groups.ts";
import { TOUCHED } from "./assistants.ts";
import { perSession, together, type Reader, type Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

interface GroupRow {
  id: number;
  account_id: number;
  name: string;
  color: Color | null;
  assistants_count: number;
}

interface Kind {
  table: "folders" | "labels";
  /** A subquery that counts the assistants of group `g`. */
  count: string;
}

const FOLDERS: Kind = {
  table: "folders",
  count: `SELECT count(*) FROM assistants a
    WHERE a.folder_id = g.id AND a.account_id = g.account_id AND a.deleted_at IS NULL`,
};
const LABELS: Kind = {
  table: "labels",
  count: `SELECT count(*) FROM assistant_labels al JOIN assistants a ON a.id = al.assistant_id
    WHERE al.label_id = g.id AND a.account_id = g.account_id AND a.deleted_at IS NULL`,
};

const groupColumns = ({ count }: Kind): string =>
  `g.id, g.account_id, g.name, g.color, (${count}) AS assistants_count`;

function groupFromRow(row: GroupRow): Group {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    color: row.color,
    assistantsCount: row.assistants_count,
  };
}

function createWrites(sql: Sql, kind: Kind) {
  const { table } = kind;
  const find = sql.prepare<object, GroupRow>(`
    SELECT ${groupColumns(kind)} FROM ${table} g
    WHERE g.id = @groupId AND g.account_id = @accountId`);
  const named = sql.prepare<object, { id: number }>(
    `SELECT id FROM ${table} WHERE account_id = @accountId AND name = @name`);
  const insert = sql.prepare<object, { id: number }>(`
    INSERT INTO ${table} (id, account_id, name, color) VALUES (@id, @accountId, @name, @color)
    RETURNING id`);
  // Ids are drawn from `last_ids`, because SQLite would give a deleted newest row's id to the next.
  const draw = sql.prepare<object, { id: number }>(
    "UPDATE last_ids SET id = id + 1 WHERE name = @table RETURNING id");
  const change = sql.prepare(`
    UPDATE ${table} SET name = @name, color = @color
    WHERE id = @groupId AND account_id = @accountId`);
  const remove = sql.prepare(
    `DELETE FROM ${table} WHERE id = @groupId AND account_id = @accountId`);

  const saved = async (accountId: number, groupId: number): Promise<GroupOutcome> => {
    const row = await find.get({ accountId, groupId });
    return row ? { kind: "saved", group: groupFromRow(row) } : { kind: "not_found" };
  };
  return {
    create: async (
      args: { accountId: number; name: string; color: Color | null },
    ): Promise<GroupOutcome> => {
      if (await named.get(args)) return { kind: "name_taken" };
      const row = await insert.one({ ...args, id: (await draw.get({ table }))?.id ?? null });
      return saved(args.accountId, row.id);
    },
    update: async (
      args: { accountId: number; groupId: number; changes: GroupChanges },
    ): Promise<GroupOutcome> => {
      const { accountId, groupId, changes } = args;
      const row = await find.get({ accountId, groupId });
      if (!row) return { kind: "not_found" };
      const { name = row.name, color = row.color } = changes;
      const other = await named.get({ accountId, name });
      if (other && other.id !== groupId) return { kind: "name_taken" };
      await change.run({ accountId, groupId, name, color });
      return saved(accountId, groupId);
    },
    remove: async (accountId: number, groupId: number): Promise<boolean> =>
      (await remove.run({ accountId, groupId })).changes > 0,
  };
}

type RemoveArgs = Parameters<GroupStore["remove"]>[0];

export function groupCommands(sql: Sql) {
  const folders = createWrites(sql, FOLDERS);
  const labels = createWrites(sql, LABELS);
  const leaveFolder = sql.prepare(`
    UPDATE assistants SET folder_id = NULL, updated_at = ${TOUCHED}
    WHERE account_id = @accountId AND folder_id = @groupId`);
  const touchLabelled = sql.prepare(`
    UPDATE assistants SET updated_at = ${TOUCHED} WHERE account_id = @accountId
      AND id IN (SELECT assistant_id FROM assistant_labels WHERE label_id = @groupId)`);
  const unlabel = sql.prepare(`
    DELETE FROM assistant_labels WHERE label_id IN (
      SELECT id FROM labels WHERE id = @groupId AND account_id = @accountId)`);
  const unlabelSome = sql.prepare(`
    DELETE FROM conversation_labels WHERE label_id = @groupId AND conversation_id IN (
      SELECT c.conversation_id FROM labels l JOIN conversation_labels c ON c.label_id = l.id
      WHERE l.id = @groupId AND l.account_id = @accountId LIMIT (@rows + 0))`);
  const GONE = { isGone: true };
  return {
    "folders.create": folders.create,
    "folders.update": folders.update,
    "folders.remove": async (args: RemoveArgs) => {
      await leaveFolder.run(args);
      return await folders.remove(args.accountId, args.groupId) ? GONE : null;
    },
    "labels.create": labels.create,
    "labels.update": labels.update,
    "labels.remove": async (args: RemoveArgs) => {
      await touchLabelled.run(args);
      await unlabel.run(args);
      if ((await unlabelSome.run(args)).changes === args.rows) return { isGone: false };
      return await labels.remove(args.accountId, args.groupId) ? GONE : null;
    },
  };
}

function createStore(
  reader: Reader, writer: WriterOf<typeof groupCommands>, kind: Kind,
): GroupStore {
  const { table } = kind;
  const reads = perSession((sql) => ({
    page: sql.prepare<object, GroupRow>(`
      SELECT ${groupColumns(kind)} FROM ${table} g
      WHERE g.account_id = @accountId ORDER BY g.id LIMIT @limit OFFSET @offset`),
    total: sql.prepare<object, { count: number }>(
      `SELECT count(*) AS count FROM ${table} WHERE account_id = @accountId`),
  }));
  return {
    create: (args) => writer.write(`${table}.create`, args),
    update: (args) => writer.write(`${table}.update`, args),
    remove: (args) => writer.write(`${table}.remove`, args),
    page: (accountId, { page: number, perPage }) => reader.snapshot(async (sql) => {
      const { page, total } = reads(sql);
      const [rows, counted] = await together(
        page.all({ accountId, limit: perPage, offset: (number - 1) * perPage }),
        total.get({ accountId }),
      );
      return { items: rows.map(groupFromRow), total: counted?.count ?? 0 };
    }, accountId),
  };
}

export function createGroupStores(
  reader: Reader,
  writer: WriterOf<typeof groupCommands>,
): { folders: GroupStore; labels: GroupStore } {
  return {
    folders: createStore(reader, writer, FOLDERS), labels: createStore(reader, writer, LABELS),
  };
}
