// An account's first steps, and the saved views of its lists: reads and commands. Rules:
// features/accounts/overview/first-steps.ts and saved-views.ts.
import type { FirstStepStore, Proof } from "#features/accounts/overview/first-steps.ts";
import type {
  SavedView, SavedViewStore, SaveViewOutcome, ViewedList,
} from "#features/accounts/overview/saved-views.ts";
import type { Instant } from "#core/system.ts";
import { aside, type Reader, type Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

interface ProofRow {
  at: number;
  name: string | null;
  id: string | number;
  uuid?: string;
}

const proofFrom = (row: ProofRow | undefined): Proof | null =>
  row ? { at: row.at, name: row.name ?? "", id: String(row.id), uuid: row.uuid ?? null } : null;

/** The first conversation in which a reply was completed. */
const ANSWERED = (more: string): string => `
  SELECT c.created_at AS at, a.name, c.uuid AS id
  FROM conversations c JOIN assistants a ON a.id = c.assistant_id
  WHERE c.account_id = @accountId ${more} AND c.message_count > 1
    AND EXISTS (SELECT 1 FROM turns t WHERE t.conversation_id = c.id AND t.state = 'done')
  ORDER BY c.id LIMIT 1`;

export function createFirstStepStore(
  reader: Reader, writer: WriterOf<typeof firstDayCommands>,
): FirstStepStore {
  const own = reader.prepare<object, {
    dismissed_at: number | null; found_at: number | null; found: string | null;
  }>("SELECT dismissed_at, found_at, found FROM first_steps WHERE account_id = @accountId");
  const assistant = reader.prepare<object, ProofRow>(`
    SELECT created_at AS at, name, id, uuid FROM assistants
    WHERE account_id = @accountId AND deleted_at IS NULL ORDER BY id LIMIT 1`);
  // While an account has none yet, each of these scans all that the account has.
  const reply = aside<object, ProofRow>(reader, ANSWERED(""));
  const website = aside<object, ProofRow>(reader, ANSWERED("AND c.type = 'widget'"));
  const call = aside<object, ProofRow>(reader, `
    SELECT k.answered_at AS at, a.name, k.id
    FROM calls k JOIN assistants a ON a.id = k.assistant_id
    WHERE k.account_id = @accountId AND k.answered_at IS NOT NULL ORDER BY k.id LIMIT 1`);
  return {
    read: async (accountId) => {
      const given = { accountId };
      const [kept, made, answered, called, visited] = await Promise.all([
        own.get(given), assistant.get(given), reply.get(given), call.get(given),
        website.get(given),
      ]);
      const found = kept?.found_at ?? null;
      return {
        isDismissed: (kept?.dismissed_at ?? null) !== null,
        proofs: {
          assistant: proofFrom(made),
          reply: proofFrom(answered),
          document: found === null ? null : { at: found, name: kept?.found ?? "", id: "", uuid: null },
          call: proofFrom(called),
          website: proofFrom(visited),
        },
      };
    },
    ...writes(writer, "firstSteps", "dismiss", "found"),
  };
}

interface ViewRow {
  id: number;
  list: ViewedList;
  name: string;
  query: string;
  created_at: number;
}

const VIEW = "id, list, name, query, created_at";
const viewFromRow = ({ created_at: createdAt, ...view }: ViewRow): SavedView =>
  ({ ...view, createdAt });

export function createSavedViewStore(
  reader: Reader, writer: WriterOf<typeof firstDayCommands>,
): SavedViewStore {
  const list = reader.prepare<object, ViewRow>(
    `SELECT ${VIEW} FROM saved_views WHERE account_id = @accountId ORDER BY name, id`);
  return {
    list: async (accountId) => (await list.all({ accountId })).map(viewFromRow),
    ...writes(writer, "savedViews", "save", "remove"),
  };
}

export function firstDayCommands(sql: Sql) {
  const dismiss = sql.prepare(`
    INSERT INTO first_steps (account_id, dismissed_at) VALUES (@accountId, @dismissedAt)
    ON CONFLICT (account_id) DO UPDATE SET dismissed_at = excluded.dismissed_at`);
  const found = sql.prepare(`
    INSERT INTO first_steps (account_id, found_at, found) VALUES (@accountId, @now, @document)
    ON CONFLICT (account_id) DO UPDATE SET found_at = excluded.found_at, found = excluded.found
    WHERE first_steps.found_at IS NULL`);
  const count = sql.prepare<object, { views: number }>(
    `SELECT count(*) AS views FROM saved_views
     WHERE account_id = @accountId AND NOT (list = @list AND name = @name)`);
  const save = sql.prepare<object, ViewRow>(`
    INSERT INTO saved_views (account_id, list, name, query, created_at)
    VALUES (@accountId, @list, @name, @query, @now)
    ON CONFLICT (account_id, list, name) DO UPDATE SET query = excluded.query
    RETURNING ${VIEW}`);
  const remove = sql.prepare("DELETE FROM saved_views WHERE id = @id AND account_id = @accountId");
  return {
    "firstSteps.dismiss": async (
      args: { accountId: number; dismissedAt: Instant | null },
    ): Promise<void> => {
      await dismiss.run(args);
    },
    "firstSteps.found": async (
      args: { accountId: number; document: string; now: Instant },
    ): Promise<void> => {
      await found.run(args);
    },
    "savedViews.save": async (
      args: Parameters<SavedViewStore["save"]>[0],
    ): Promise<SaveViewOutcome> => {
      if ((await count.one(args)).views >= args.max) return { kind: "too_many" };
      return { kind: "saved", view: viewFromRow(await save.one(args)) };
    },
    "savedViews.remove": async (args: { accountId: number; id: number }): Promise<boolean> =>
      (await remove.run(args)).changes > 0,
  };
}
