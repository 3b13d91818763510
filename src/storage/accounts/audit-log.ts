// The audit log in the database: written by commands inside their own transaction, read by the
// store.
import type {
  Actor, AuditEntry, AuditFilter, AuditNote, AuditStore,
} from "#features/accounts/audit.ts";
import type { Instant } from "#core/system.ts";
import { aside, type Reader, type Sql } from "#storage/sql.ts";
import { perAccount } from "#storage/sweeps.ts";
import type { WriterOf } from "#storage/writer.ts";

interface Row {
  number: number;
  actor_kind: Actor["kind"];
  actor_id: string;
  actor_name: string;
  action: string;
  object_type: string | null;
  object_id: string | null;
  details: string;
  address: string | null;
  created_at: number;
}

const ENTRY = `number, actor_kind, actor_id, actor_name, action, object_type, object_id, details,
  address, created_at`;

const entryFromRow = (row: Row): AuditEntry => ({
  number: row.number,
  actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
  action: row.action,
  object: row.object_type === null ? null : { type: row.object_type, id: row.object_id },
  details: JSON.parse(row.details) as Record<string, unknown>,
  address: row.address,
  createdAt: row.created_at,
});

interface Noted {
  accountId: number;
  note: AuditNote;
  now: Instant;
}

/** A webhook is shown by its host only: the rest of its URL may contain a key. */
export const nameShown = (type: string, name: string): string =>
  (type === "webhook" && URL.canParse(name) ? new URL(name).host : name);

const nameIn = (table: string, column = "name"): string =>
  `SELECT ${column} AS name FROM ${table} WHERE id = @id AND account_id = @accountId`;

/** The queries for objects' names, by action where an action has its own object, else by type. */
const NAMES: Record<string, string> = {
  api_key: nameIn("api_keys"),
  assistant: nameIn("assistants"),
  calendar: nameIn("assistants"),
  campaign: nameIn("campaigns"),
  canned_reply: nameIn("canned_replies", "shortcut"),
  document: nameIn("documents"),
  folder: nameIn("folders"),
  knowledgebase: nameIn("knowledgebases"),
  label: nameIn("labels"),
  member: nameIn("users"),
  password: nameIn("users"),
  phone_number: nameIn("phone_numbers", "phone_number"),
  sip_trunk: nameIn("phone_numbers", "phone_number"),
  tool: nameIn("tools"),
  webhook: nameIn("webhook_endpoints", "url"),
  "webhook.replay": `
    SELECT e.url AS name FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    WHERE d.id = @id AND d.account_id = @accountId`,
};

/**
 * Looks up the object's name, because its id means nothing to people once it is gone. Null: it has
 * no name, or the details have one already.
 */
function createNameOf(sql: Sql): (args: Noted) => Promise<string | null> {
  const names = new Map(Object.entries(NAMES).map(([what, text]) =>
    [what, sql.prepare<object, { name: string }>(text)]));
  return async ({ accountId, note: { action, object, details } }) => {
    const values: object[] = [details, details.before ?? {}, details.after ?? {}];
    const { type, id: text } = object ?? { type: "", id: null };
    const id = Number(text ?? NaN);
    const hasName = values.some((one) => Object.hasOwn(one, "name"));
    if (hasName || !Number.isSafeInteger(id)) return null;
    const name = names.get(action) ?? names.get(type);
    const found = await name?.get({ accountId, id });
    return found ? nameShown(type, found.name) : null;
  };
}

/** Adds an entry under the account's next number, with the name of what it was done to. */
export function createNoteAudit(sql: Sql): (args: Noted) => Promise<void> {
  const nameOf = createNameOf(sql);
  const next = sql.prepare<object, { number: number }>(`
    UPDATE accounts SET audit_number = audit_number + 1 WHERE id = @accountId
    RETURNING audit_number AS number`);
  const insert = sql.prepare(`
    INSERT INTO audit_log (account_id, number, actor_kind, actor_id, actor_name, action,
      object_type, object_id, details, address, created_at)
    VALUES (@accountId, @number, @kind, @id, @name, @action, @objectType, @objectId, @details,
      @address, @now)`);
  return async (args) => {
    const { accountId, note: { actor, action, object, details, address }, now } = args;
    const { number } = await next.one({ accountId });
    const name = await nameOf(args);
    await insert.run({
      accountId, number, ...actor, action, address, now,
      details: JSON.stringify({ ...details, ...name && { name } }),
      objectType: object?.type ?? null, objectId: object?.id ?? null,
    });
  };
}

export function auditCommands(sql: Sql) {
  // Compared with the time too: one made while the clock was behind has a number among new ones.
  const trim = sql.prepare(`
    DELETE FROM audit_log
    WHERE account_id = @accountId AND number <= @number AND created_at < @before`);
  return {
    "audit.add": createNoteAudit(sql),
    /** Removes the account's old entries up to this one; returns how many. */
    "audit.trim": async (
      args: { accountId: number; number: number; before: Instant },
    ): Promise<number> => (await trim.run(args)).changes,
  };
}

const FILTER = `account_id = +@accountId
  AND (CAST(@actorId AS TEXT) IS NULL OR actor_id = @actorId)
  AND (CAST(@action AS TEXT) IS NULL OR action LIKE @action ESCAPE '\\')
  AND (CAST(@objectId AS TEXT) IS NULL OR object_id = @objectId)
  AND (CAST(@from AS BIGINT) IS NULL OR created_at >= @from)
  AND (CAST(@to AS BIGINT) IS NULL OR created_at < @to)
  AND number < +@before`;

/** After every entry. */
const LAST = Number.MAX_SAFE_INTEGER;

/** A LIKE pattern: all actions of a group when it ends in a dot, else that one; in lower case. */
const patternOf = (action: string): string =>
  action.toLowerCase().replaceAll(/[%_\\]/g, "\\$&") + (action.endsWith(".") ? "%" : "");

const parametersOf = ({ actorId, action, objectId, from, to }: AuditFilter) => ({
  actorId: actorId ?? null, action: action === undefined ? null : patternOf(action),
  objectId: objectId ?? null, from: from ?? null, to: to ?? null,
});

export function createAuditStore(
  reader: Reader, writer: WriterOf<typeof auditCommands>,
): AuditStore {
  const page = aside<object, Row>(reader, `
    SELECT ${ENTRY} FROM audit_log WHERE ${FILTER} ORDER BY number DESC LIMIT (@rows + 0)`);
  const after = reader.prepare<object, Row>(`
    SELECT ${ENTRY} FROM audit_log WHERE account_id = +@accountId AND number > @after
    ORDER BY number LIMIT (@rows + 0)`);
  const newest = reader.prepare<object, { number: number }>(
    "SELECT audit_number AS number FROM accounts WHERE id = @accountId");
  const old = reader.prepare<object, { accountId: number; number: number }>(`
    SELECT account_id AS "accountId", number FROM audit_log WHERE created_at < @before
    ORDER BY created_at LIMIT (@rows + 0)`);
  return {
    page: async (accountId, filter, before, rows) => (await page.all(
      { accountId, ...parametersOf(filter), before: before ?? LAST, rows })).map(entryFromRow),
    after: async (accountId, number, rows) =>
      (await after.all({ accountId, after: number, rows })).map(entryFromRow),
    newest: async (accountId) => (await newest.get({ accountId }))?.number ?? 0,
    add: (args) => writer.write("audit.add", args),
    trim: async (before, rows) => {
      const trimmed = await perAccount(await old.all({ before, rows }), (accountId, own) =>
        writer.write("audit.trim", {
          accountId, before, number: Math.max(...own.map(({ number }) => number)),
        }));
      return trimmed.reduce((sum, count) => sum + count, 0);
    },
  };
}
