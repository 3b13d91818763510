// Assistants in SQLite: commands for the writer, reads for the main thread. The knowledgebase is a
// column and not in the JSON, because the database counts and clears it.
import type {
  Assistant, AssistantChange, AssistantColumns, AssistantStore, CreateOutcome, NewAssistant,
  OriginLists, UpdateOutcome,
} from "#features/assistants/assistants.ts";
import type { BuiltInTool } from "#features/assistants/built-in-tools.ts";
import type {
  AssistantSettings, AssistantStatus, AssistantType, Mode,
} from "#features/assistants/settings.ts";
import type { Instant } from "#core/system.ts";
import type { Db } from "./engines/sqlite/database.ts";
import type { Exists, Sql } from "./sql.ts";
import type { Writer } from "./writer.ts";

interface AssistantRow {
  id: number;
  uuid: string;
  account_id: number;
  name: string;
  type: AssistantType;
  status: AssistantStatus;
  mode: Mode;
  folder_id: number | null;
  phone_number_id: number | null;
  knowledgebase_id: number | null;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
  settings: string;
}

const COLUMNS = `id, uuid, account_id, name, type, status, mode, folder_id, phone_number_id,
  knowledgebase_id, created_at, updated_at, deleted_at, settings`;

function assistantFromRow(row: AssistantRow, labelIds: number[]): Assistant {
  const stored = JSON.parse(row.settings) as Omit<AssistantSettings, "knowledgebase_id">;
  return {
    id: row.id,
    uuid: row.uuid,
    accountId: row.account_id,
    name: row.name,
    type: row.type,
    status: row.status,
    mode: row.mode,
    folderId: row.folder_id,
    phoneNumberId: row.phone_number_id,
    labelIds,
    settings: { ...stored, knowledgebase_id: row.knowledgebase_id },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  };
}

function settingColumns(settings: AssistantSettings) {
  const { knowledgebase_id: knowledgebaseId, ...stored } = settings;
  return { knowledgebaseId, settings: JSON.stringify(stored) };
}

/** Finds references that were deleted, or taken by another assistant, since they were judged. */
function createReferenceCheck(sql: Sql) {
  const folder = sql.prepare<object, Exists>(
    "SELECT 1 FROM folders WHERE id = @id AND account_id = @accountId");
  const label = sql.prepare<object, Exists>(
    "SELECT 1 FROM labels WHERE id = @id AND account_id = @accountId");
  const number = sql.prepare<object, Exists>(
    "SELECT 1 FROM phone_numbers WHERE id = @id AND account_id = @accountId");
  const holder = sql.prepare<object, Exists>(`
    SELECT 1 FROM assistants WHERE account_id = @accountId AND phone_number_id = @id
      AND type = 'inbound' AND deleted_at IS NULL AND id <> @assistantId`);
  return async (accountId: number, assistantId: number, columns: AssistantColumns) => {
    const { folderId, phoneNumberId, labelIds, type } = columns;
    const gone = (field: "folder_id" | "phone_number_id" | "label_ids") =>
      ({ kind: "reference_gone", field }) as const;
    if (folderId !== null && !await folder.get({ id: folderId, accountId })) {
      return gone("folder_id");
    }
    for (const id of labelIds) {
      if (!await label.get({ id, accountId })) return gone("label_ids");
    }
    if (phoneNumberId === null) return null;
    if (!await number.get({ id: phoneNumberId, accountId })) return gone("phone_number_id");
    const isTaken = type === "inbound"
      && await holder.get({ id: phoneNumberId, accountId, assistantId }) !== undefined;
    return isTaken ? ({ kind: "number_taken" } as const) : null;
  };
}

/** Puts `updated_at` forward even where the clock stands still. */
export const TOUCHED = "CASE WHEN updated_at >= @now THEN updated_at + 1 ELSE @now END";

function createLabelLinks(sql: Sql) {
  const unlink = sql.prepare(`
    DELETE FROM assistant_labels WHERE assistant_id IN (
      SELECT id FROM assistants WHERE id = @assistantId AND account_id = @accountId)`);
  const link = sql.prepare(`
    INSERT INTO assistant_labels (assistant_id, label_id)
    SELECT @assistantId, id FROM labels WHERE id = @labelId AND account_id = @accountId`);
  return async (accountId: number, assistantId: number, labelIds: number[]): Promise<void> => {
    await unlink.run({ assistantId, accountId });
    for (const labelId of labelIds) await link.run({ assistantId, labelId, accountId });
  };
}

export function assistantCommands(sql: Sql) {
  const refuse = createReferenceCheck(sql);
  const setLabels = createLabelLinks(sql);
  const count = sql.prepare<object, { count: number }>(`
    SELECT count(*) AS count FROM assistants
    WHERE account_id = @accountId AND deleted_at IS NULL`);
  const insert = sql.prepare<object, { id: number }>(`
    INSERT INTO assistants (uuid, account_id, name, type, status, mode, folder_id,
      phone_number_id, knowledgebase_id, created_at, updated_at, settings)
    VALUES (@uuid, @accountId, @name, @type, @status, @mode, @folderId,
      @phoneNumberId, @knowledgebaseId, @now, @now, @settings) RETURNING id`);
  const current = sql.prepare<object, { updated_at: number }>(`
    SELECT updated_at FROM assistants
    WHERE id = @assistantId AND account_id = @accountId AND deleted_at IS NULL`);
  const change = sql.prepare<object, { updated_at: number }>(`
    UPDATE assistants SET name = @name, type = @type, status = @status, mode = @mode,
      folder_id = @folderId, phone_number_id = @phoneNumberId,
      knowledgebase_id = @knowledgebaseId, settings = @settings, updated_at = ${TOUCHED}
    WHERE id = @assistantId AND account_id = @accountId RETURNING updated_at`);
  const settingsOf = sql.prepare<object, { settings: string }>(
    "SELECT settings FROM assistants WHERE id = @assistantId AND account_id = @accountId");
  const setSettings = sql.prepare(`
    UPDATE assistants SET settings = @settings, updated_at = ${TOUCHED} WHERE id = @assistantId`);
  const remove = sql.prepare(`
    UPDATE assistants SET deleted_at = @now, phone_number_id = NULL, updated_at = ${TOUCHED}
    WHERE id = @assistantId AND account_id = @accountId AND deleted_at IS NULL`);

  return {
    "assistants.create": async (args: NewAssistant): Promise<CreateOutcome> => {
      const { uuid, accountId, columns, now } = args;
      const owned = (await count.get({ accountId }))?.count ?? 0;
      if (owned >= args.assistantsMax) return { kind: "too_many" };
      const refused = await refuse(accountId, 0, columns);
      if (refused) return refused;
      const { labelIds, ...plain } = columns;
      const row = await insert.get({
        ...plain, ...settingColumns(args.settings), uuid, accountId, now,
      });
      if (!row) throw new Error("an insert returned no row");
      await setLabels(accountId, row.id, labelIds);
      return { kind: "created", assistantId: row.id };
    },
    "assistants.update": async (args: AssistantChange): Promise<UpdateOutcome> => {
      const { accountId, assistantId, columns, now } = args;
      const row = await current.get({ accountId, assistantId });
      if (!row) return { kind: "not_found" };
      if (row.updated_at !== args.expectedUpdatedAt) return { kind: "changed" };
      const refused = await refuse(accountId, assistantId, columns);
      if (refused) return refused;
      const { labelIds, ...plain } = columns;
      const changed = await change.get({
        ...plain, ...settingColumns(args.settings), accountId, assistantId, now,
      });
      if (!changed) throw new Error("an update returned no row");
      await setLabels(accountId, assistantId, labelIds);
      return { kind: "updated", updatedAt: changed.updated_at };
    },
    "assistants.setTools": async (args: {
      accountId: number; assistantId: number; tools: BuiltInTool[]; now: Instant;
    }): Promise<void> => {
      const { assistantId, tools, now } = args;
      const row = await settingsOf.get(args);
      if (!row) return;
      const stored = JSON.parse(row.settings) as AssistantSettings;
      await setSettings.run({ assistantId, settings: JSON.stringify({ ...stored, tools }), now });
    },
    "assistants.remove": async (args: { accountId: number; assistantId: number; now: Instant }) =>
      (await remove.run(args)).changes > 0,
  };
}

/**
 * For commands of other features, inside their own transaction: takes what they are about to
 * delete away from every assistant of the account, deleted ones included.
 */
export function createDetacher(sql: Sql) {
  const knowledgebase = sql.prepare(`
    UPDATE assistants SET knowledgebase_id = NULL, updated_at = ${TOUCHED}
    WHERE account_id = @accountId AND knowledgebase_id = @id`);
  const phoneNumber = sql.prepare(`
    UPDATE assistants SET phone_number_id = NULL, updated_at = ${TOUCHED}
    WHERE account_id = @accountId AND phone_number_id = @id`);
  const all = sql.prepare<object, { id: number; settings: string }>(
    "SELECT id, settings FROM assistants WHERE account_id = @accountId");
  const transferring = sql.prepare<object, { id: number; settings: string }>(`
    SELECT id, settings FROM assistants
    WHERE account_id = @accountId AND settings LIKE '%"warm_call_transfer"%'`);
  const rewrite = sql.prepare(`
    UPDATE assistants SET settings = @settings, updated_at = ${TOUCHED}
    WHERE id = @assistantId AND account_id = @accountId`);
  return {
    knowledgebase: async (accountId: number, id: number, now: Instant): Promise<void> => {
      await knowledgebase.run({ accountId, id, now });
    },
    phoneNumber: async (accountId: number, id: number, now: Instant): Promise<void> => {
      await phoneNumber.run({ accountId, id, now });
      for (const row of await transferring.all({ accountId })) {
        const stored = JSON.parse(row.settings) as AssistantSettings;
        const names = (tool: BuiltInTool): boolean =>
          tool.type === "warm_call_transfer" && tool.outbound_phone_id === id;
        if (!stored.tools.some(names)) continue;
        const tools = stored.tools.map((tool) =>
          (names(tool) ? { ...tool, outbound_phone_id: null } : tool));
        await rewrite.run({
          settings: JSON.stringify({ ...stored, tools }), assistantId: row.id, accountId, now,
        });
      }
    },
    /** Reads every assistant of the account; deleting a tool is rare. */
    tool: async (accountId: number, id: number, now: Instant): Promise<void> => {
      for (const row of await all.all({ accountId })) {
        const stored = JSON.parse(row.settings) as AssistantSettings;
        if (!stored.tool_ids.includes(id)) continue;
        const settings = JSON.stringify({
          ...stored, tool_ids: stored.tool_ids.filter((toolId) => toolId !== id),
        });
        await rewrite.run({ settings, assistantId: row.id, accountId, now });
      }
    },
  };
}

const ASSISTANTS_KEPT_MAX = 2000;

type Version = Pick<AssistantRow, "id" | "account_id" | "updated_at">;

/**
 * Assistants as they were read, good for as long as `updated_at` stays what it was: every chat
 * message looks one up, and parsing its settings costs more than everything else.
 */
function createMemo(read: (version: Version) => Assistant | null) {
  const kept = new Map<number, Assistant>();
  return (version: Version | undefined): Assistant | null => {
    if (!version) return null;
    const known = kept.get(version.id);
    if (known?.updatedAt === version.updated_at) return known;
    const fresh = read(version);
    kept.delete(version.id);
    if (!fresh) return null;
    kept.set(fresh.id, fresh);
    const [oldest] = kept.keys();
    if (kept.size > ASSISTANTS_KEPT_MAX && oldest !== undefined) kept.delete(oldest);
    return fresh;
  };
}

function createOriginReader(db: Db): () => OriginLists {
  const own = '%"allowed_origins":[%';
  const naming = db.prepare<[object], { settings: string }>(
    "SELECT settings FROM assistants WHERE deleted_at IS NULL AND settings LIKE @own");
  const other = db.prepare(
    "SELECT 1 FROM assistants WHERE deleted_at IS NULL AND settings NOT LIKE @own LIMIT 1");
  return () => {
    const origins = new Set<string>();
    let someUseDefault = other.get({ own }) !== undefined;
    for (const { settings } of naming.iterate({ own })) {
      // What looked like the setting may be a value of the same name elsewhere.
      const { allowed_origins: list } = JSON.parse(settings) as Partial<AssistantSettings>;
      for (const origin of list ?? []) origins.add(origin);
      if (!list) someUseDefault = true;
    }
    return { origins, someUseDefault };
  };
}

export function createAssistantStore(db: Db, writer: Writer): AssistantStore {
  const find = db.prepare<[object], Version>(`
    SELECT id, account_id, updated_at FROM assistants
    WHERE id = @assistantId AND account_id = @accountId AND deleted_at IS NULL`);
  const findById = db.prepare<[object], Version>(`
    SELECT id, account_id, updated_at FROM assistants
    WHERE id = @assistantId AND deleted_at IS NULL`);
  const findByUuid = db.prepare<[object], Version>(`
    SELECT id, account_id, updated_at FROM assistants
    WHERE uuid = @uuid AND deleted_at IS NULL`);
  const full = db.prepare<[object], AssistantRow>(`
    SELECT ${COLUMNS} FROM assistants
    WHERE id = @assistantId AND account_id = @accountId AND deleted_at IS NULL`);
  const labels = db.prepare<[object], { id: number }>(`
    SELECT l.id FROM assistant_labels al JOIN labels l ON l.id = al.label_id
    WHERE al.assistant_id = @assistantId AND l.account_id = @accountId ORDER BY l.id`);
  const page = db.prepare<[object], AssistantRow>(`
    SELECT ${COLUMNS} FROM assistants
    WHERE account_id = @accountId AND deleted_at IS NULL
      AND (CAST(@type AS TEXT) IS NULL OR type = @type)
    ORDER BY id LIMIT @limit OFFSET @offset`);
  const count = db.prepare<[object], { count: number }>(`
    SELECT count(*) AS count FROM assistants
    WHERE account_id = @accountId AND deleted_at IS NULL
      AND (CAST(@type AS TEXT) IS NULL OR type = @type)`);
  const folder = db.prepare("SELECT 1 FROM folders WHERE id = @id AND account_id = @accountId");
  const label = db.prepare("SELECT 1 FROM labels WHERE id = @id AND account_id = @accountId");
  const inbound = db.prepare<[object], { id: number }>(`
    SELECT id FROM assistants WHERE account_id = @accountId AND phone_number_id = @phoneNumberId
      AND type = 'inbound' AND deleted_at IS NULL`);

  const keyed = db.prepare<[], Pick<AssistantRow, "id" | "account_id" | "uuid" | "settings">>(`
    SELECT id, account_id, uuid, settings FROM assistants
    WHERE settings LIKE '%"calcom_api_key"%'`);

  const whole = (row: AssistantRow): Assistant => {
    const owned = labels.all({ assistantId: row.id, accountId: row.account_id });
    return assistantFromRow(row, owned.map(({ id }) => id));
  };
  const one = createMemo(({ id, account_id }) => {
    const row = full.get({ assistantId: id, accountId: account_id });
    return row ? whole(row) : null;
  });
  return {
    create: (args) => writer.write("assistants.create", args),
    update: (args) => writer.write("assistants.update", args),
    remove: (args) => writer.write("assistants.remove", args),
    find: (accountId, assistantId) => one(find.get({ accountId, assistantId })),
    findById: (assistantId) => one(findById.get({ assistantId })),
    findByUuid: (uuid) => one(findByUuid.get({ uuid })),
    list: (accountId, type) =>
      page.all({ accountId, type, limit: Number.MAX_SAFE_INTEGER, offset: 0 }).map(whole),
    page: (accountId, { type, page: number, perPage }) => ({
      items: page.all({ accountId, type, limit: perPage, offset: (number - 1) * perPage })
        .map(whole),
      total: count.get({ accountId, type })?.count ?? 0,
    }),
    ownsFolder: (accountId, id) => folder.get({ accountId, id }) !== undefined,
    ownsLabel: (accountId, id) => label.get({ accountId, id }) !== undefined,
    inboundAssistantOn: (accountId, phoneNumberId) =>
      inbound.get({ accountId, phoneNumberId })?.id ?? null,
    ownOriginLists: createOriginReader(db),
    withCalcomKeys: () => keyed.all().map((row) => ({
      assistantId: row.id, accountId: row.account_id, uuid: row.uuid,
      tools: (JSON.parse(row.settings) as AssistantSettings).tools,
    })),
    setTools: (args) => writer.write("assistants.setTools", args),
  };
}
