// Assistants in the database: commands for the writer, reads for the main thread. The knowledgebase
// is a column and not part of the JSON, because the database counts and clears it.
import type {
  Assistant, AssistantChange, AssistantColumns, AssistantStore, CreateOutcome, NewAssistant,
  OriginLists, UpdateOutcome,
} from "#features/assistants/assistants.ts";
import type { BuiltInTool } from "#features/assistants/built-in-tools.ts";
import type {
  AssistantSettings, AssistantStatus, AssistantType, Mode,
} from "#features/assistants/settings.ts";
import type { Instant } from "#core/system.ts";
import { perSession, together, type Exists, type Reader, type Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

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

/** Finds references that were deleted, or taken by another assistant, since they were validated. */
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

/** Moves `updated_at` forward even when the clock has not advanced. */
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

/** With another daily limit visitors are answered again, until that is reached. */
function createCapTroubleEnd(sql: Sql) {
  const forget = sql.prepare(`
    UPDATE accounts SET trouble_at = NULL, trouble_reason = NULL, trouble_conversation = NULL
    WHERE id = @accountId AND trouble_reason = 'daily_cap_reached'`);
  return async (before: string, { accountId, settings }: AssistantChange): Promise<void> => {
    const { daily_spend_cap: cap } = JSON.parse(before) as AssistantSettings;
    if (cap !== settings.daily_spend_cap) await forget.run({ accountId });
  };
}

export function assistantCommands(sql: Sql) {
  const endCapTrouble = createCapTroubleEnd(sql);
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
  const current = sql.prepare<object, { updated_at: number; settings: string }>(`
    SELECT updated_at, settings FROM assistants
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
      const row = await insert.one({
        ...plain, ...settingColumns(args.settings), uuid, accountId, now,
      });
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
      const changed = await change.one({
        ...plain, ...settingColumns(args.settings), accountId, assistantId, now,
      });
      await setLabels(accountId, assistantId, labelIds);
      await endCapTrouble(row.settings, args);
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
 * Step for other features' commands, inside their own transaction: detaches what they are about to
 * delete from every assistant of the account, deleted ones included.
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
 * A cache of assistants, each valid for as long as its `updated_at` stays the same: every chat
 * message looks one up, and parsing its settings costs more than everything else.
 */
function createMemo(read: (version: Version) => Promise<Assistant | null>) {
  const kept = new Map<number, Assistant>();
  return async (version: Version | undefined): Promise<Assistant | null> => {
    if (!version) return null;
    const known = kept.get(version.id);
    if (known?.updatedAt === version.updated_at) return known;
    const fresh = await read(version);
    kept.delete(version.id);
    if (!fresh) return null;
    kept.set(fresh.id, fresh);
    const [oldest] = kept.keys();
    if (kept.size > ASSISTANTS_KEPT_MAX && oldest !== undefined) kept.delete(oldest);
    return fresh;
  };
}

const ORIGIN_PAGE_ROWS = 200;

function createOriginReader(reader: Reader): () => Promise<OriginLists> {
  const own = '%"allowed_origins":[%';
  const naming = reader.prepare<object, { id: number; settings: string }>(`
    SELECT id, settings FROM assistants
    WHERE id > +@after AND deleted_at IS NULL AND settings LIKE @own
    ORDER BY id LIMIT (@rows + 0)`);
  const other = reader.prepare<object, Exists>(
    "SELECT 1 FROM assistants WHERE deleted_at IS NULL AND settings NOT LIKE @own LIMIT 1");
  return async () => {
    const origins = new Set<string>();
    let someUseDefault = await other.get({ own }) !== undefined;
    for (let after: number | undefined = 0; after !== undefined;) {
      const page: { id: number; settings: string }[] =
        await naming.all({ own, after, rows: ORIGIN_PAGE_ROWS });
      for (const { settings } of page) {
        // The text that matched may be a value of the same name elsewhere in the settings.
        const { allowed_origins: list } = JSON.parse(settings) as Partial<AssistantSettings>;
        for (const origin of list ?? []) origins.add(origin);
        if (!list) someUseDefault = true;
      }
      after = page.length < ORIGIN_PAGE_ROWS ? undefined : page.at(-1)?.id;
    }
    return { origins, someUseDefault };
  };
}

const wholeReads = perSession((sql) => ({
  full: sql.prepare<object, AssistantRow>(`
    SELECT ${COLUMNS} FROM assistants
    WHERE id = @assistantId AND account_id = @accountId AND deleted_at IS NULL`),
  labels: sql.prepare<object, { id: number }>(`
    SELECT l.id FROM assistant_labels al JOIN labels l ON l.id = al.label_id
    WHERE al.assistant_id = @assistantId AND l.account_id = @accountId ORDER BY l.id`),
  page: sql.prepare<object, AssistantRow>(`
    SELECT ${COLUMNS} FROM assistants
    WHERE account_id = @accountId AND deleted_at IS NULL
      AND (CAST(@type AS TEXT) IS NULL OR type = @type)
    ORDER BY id LIMIT @limit OFFSET @offset`),
  count: sql.prepare<object, { count: number }>(`
    SELECT count(*) AS count FROM assistants
    WHERE account_id = @accountId AND deleted_at IS NULL
      AND (CAST(@type AS TEXT) IS NULL OR type = @type)`),
}));

async function wholeOf(sql: Sql, row: AssistantRow): Promise<Assistant> {
  const labels = await wholeReads(sql).labels.all({
    assistantId: row.id, accountId: row.account_id,
  });
  return assistantFromRow(row, labels.map(({ id }) => id));
}

const wholesOf = (sql: Sql, rows: AssistantRow[]): Promise<Assistant[]> =>
  Promise.all(rows.map((row) => wholeOf(sql, row)));

export function createAssistantStore(
  reader: Reader, writer: WriterOf<typeof assistantCommands>,
): AssistantStore {
  const find = reader.prepare<object, Version>(`
    SELECT id, account_id, updated_at FROM assistants
    WHERE id = @assistantId AND account_id = @accountId AND deleted_at IS NULL`);
  const findById = reader.prepare<object, Version>(`
    SELECT id, account_id, updated_at FROM assistants
    WHERE id = @assistantId AND deleted_at IS NULL`);
  const findByUuid = reader.prepare<object, Version>(`
    SELECT id, account_id, updated_at FROM assistants
    WHERE uuid = @uuid AND deleted_at IS NULL`);
  const folder = reader.prepare<object, Exists>("SELECT 1 FROM folders WHERE id = @id AND account_id = @accountId");
  const label = reader.prepare<object, Exists>("SELECT 1 FROM labels WHERE id = @id AND account_id = @accountId");
  const inbound = reader.prepare<object, { id: number }>(`
    SELECT id FROM assistants WHERE account_id = @accountId AND phone_number_id = @phoneNumberId
      AND type = 'inbound' AND deleted_at IS NULL`);

  const keyed = reader.prepare<object, Pick<AssistantRow, "id" | "account_id" | "uuid" | "settings">>(`
    SELECT id, account_id, uuid, settings FROM assistants
    WHERE settings LIKE '%"calcom_api_key"%'`);

  const one = createMemo(async ({ id, account_id }) => {
    const row = await wholeReads(reader).full.get({ assistantId: id, accountId: account_id });
    return row ? wholeOf(reader, row) : null;
  });
  return {
    ...writes(writer, "assistants", "create", "update", "remove", "setTools"),
    find: async (accountId, assistantId) => one(await find.get({ accountId, assistantId })),
    findById: async (assistantId) => one(await findById.get({ assistantId })),
    findByUuid: async (uuid) => one(await findByUuid.get({ uuid })),
    list: (accountId, type) => reader.snapshot(async (sql) => wholesOf(sql, await wholeReads(sql)
      .page.all({ accountId, type, limit: Number.MAX_SAFE_INTEGER, offset: 0 })), accountId),
    page: (accountId, { type, page: number, perPage }) => reader.snapshot(async (sql) => {
      const { page, count } = wholeReads(sql);
      const [rows, counted] = await together(
        page.all({ accountId, type, limit: perPage, offset: (number - 1) * perPage }),
        count.get({ accountId, type }),
      );
      return { items: await wholesOf(sql, rows), total: counted?.count ?? 0 };
    }, accountId),
    ownsFolder: async (accountId, id) => await folder.get({ accountId, id }) !== undefined,
    ownsLabel: async (accountId, id) => await label.get({ accountId, id }) !== undefined,
    inboundAssistantOn: async (accountId, phoneNumberId) =>
      (await inbound.get({ accountId, phoneNumberId }))?.id ?? null,
    ownOriginLists: createOriginReader(reader),
    withCalcomKeys: async () => (await keyed.all({})).map((row) => ({
      assistantId: row.id, accountId: row.account_id, uuid: row.uuid,
      tools: (JSON.parse(row.settings) as AssistantSettings).tools,
    })),
  };
}
