// The inbox in the database: queues, search, canned replies. Notes are written by desk-commands.ts.
import type {
  CannedOutcome, CannedReply, InboxQuery, InboxRow, InboxStore, Note, Queue,
} from "#features/conversations/desk/inbox.ts";
import type { Instant } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import {
  LAST, lastFromRow, SUMMARIES, summaryFromRow, type LastRow, type SummaryRow,
} from "./rows.ts";
import type { deskCommands } from "./desk-commands.ts";
import { createFound } from "#storage/search/found.ts";
import { createBeside, type Beside } from "./inbox-rows.ts";
import type { messageSearchCommands } from "#storage/search/message-search.ts";
import type { readingCommands } from "./reading.ts";
import type { SearchIndex } from "#storage/search/search.ts";
import { aside, type Exists, type Reader, type Sql } from "#storage/sql.ts";
import type { Writer } from "#storage/writer.ts";

type InboxCommands = ReturnType<typeof deskCommands> & ReturnType<typeof inboxCommands>
  & ReturnType<typeof messageSearchCommands> & ReturnType<typeof readingCommands>;
type InboxWriter = Writer<InboxCommands>;

interface Row extends SummaryRow, LastRow {
  since: number;
  is_unread: number;
  visitor_read_at: number | null;
}

const SINCE = `coalesce(CASE WHEN c.desk = 'assistant' THEN NULL ELSE c.desk_at END,
  c.last_message_at)`;
/** As the index of those at the desk says it: few of an account's conversations. */
const AT_DESK = "c.desk <> 'assistant'";
/** A search also finds conversations that have ended. */
const OF_QUEUE: Record<Queue, string> = {
  waiting: `${AT_DESK} AND c.desk = 'waiting'`,
  mine: `${AT_DESK} AND c.desk = 'person' AND c.desk_holder = @holderId`,
  all: "(c.state = 'open' OR CAST(@search AS TEXT) IS NOT NULL)",
};

const rowOf = (row: Row, beside: Beside): InboxRow => ({
  ...summaryFromRow(row),
  ...beside,
  since: row.since,
  isUnread: row.is_unread === 1,
  visitorReadAt: row.visitor_read_at,
  last: lastFromRow(row),
});

/** `@own`: how the JSON of an author begins that is the reader. */
const IS_UNREAD = `m.created_at > coalesce(r.read_at, -1)
  AND coalesce(m.author, '') NOT LIKE @own`;
const ownOf = (holderId: string): string => `{"id":"${holderId}",%`;

const FILTERED = `(CAST(@labelId AS BIGINT) IS NULL OR EXISTS (SELECT 1 FROM conversation_labels l
    WHERE l.conversation_id = c.id AND l.label_id = @labelId))
  AND (CAST(@assistantId AS BIGINT) IS NULL OR c.assistant_id = @assistantId)
  AND (CAST(@callbacks AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM callbacks k
    WHERE k.conversation_id = c.id AND k.done_at IS NULL))
  AND (CAST(@unread AS BIGINT) = 0 OR (${IS_UNREAD}))`;

function createPage(
  reader: Reader, writer: InboxWriter, search: SearchIndex,
): InboxStore["page"] {
  const found = createFound(reader, writer, search);
  const prepare = (queue: Queue) => aside<object, Row>(reader, `
    ${SUMMARIES(`${LAST}, ${SINCE} AS since, c.visitor_read_at,
      CASE WHEN ${IS_UNREAD} THEN 1 ELSE 0 END AS is_unread`)}
    LEFT JOIN conversation_reads r ON r.conversation_id = c.id AND r.person = @holderId
    LEFT JOIN messages m ON m.id = (SELECT max(id) FROM messages WHERE conversation_id = c.id)
    WHERE c.account_id = +@accountId AND ${OF_QUEUE[queue]}
      AND ${found.condition} AND ${FILTERED}
      AND (CAST(@since AS BIGINT) IS NULL OR ${SINCE} > @since
        OR (${SINCE} = @since AND c.id > @id))
    ORDER BY since, c.id LIMIT (@rows + 0)`);
  const pages = { waiting: prepare("waiting"), mine: prepare("mine"), all: prepare("all") };
  const beside = createBeside(reader);
  return async ({ queue, search: text, after, filter, ...query }: InboxQuery) => {
    const rows = await pages[queue].all({
      ...query, ...await found.parameters(query.accountId, text),
      since: after?.since ?? null, id: after?.id ?? 0,
      labelId: filter.labelId ?? null, assistantId: filter.assistantId ?? null,
      callbacks: filter.hasCallback === true ? 1 : 0, unread: filter.isUnread === true ? 1 : 0,
      own: ownOf(query.holderId),
    });
    const besideOf = await beside(rows.map(({ id }) => id));
    return rows.map((row) => rowOf(row, besideOf(row.id)));
  };
}

export function createInboxStore(
  reader: Reader, writer: InboxWriter, search: SearchIndex,
): InboxStore {
  const counts = aside<object, Record<Queue, number>>(reader, `
    SELECT
      (SELECT count(*) FROM conversations c WHERE c.account_id = @accountId
        AND ${OF_QUEUE.waiting}) AS waiting,
      (SELECT count(*) FROM conversations c WHERE c.account_id = @accountId
        AND ${OF_QUEUE.mine}) AS mine,
      (SELECT count(*) FROM conversations c WHERE c.account_id = @accountId
        AND c.state = 'open') AS "all"`);
  const notes = reader.prepare<object, NoteRow>(`
    SELECT id, author, text, created_at FROM conversation_notes
    WHERE conversation_id = @conversationId ORDER BY id`);
  const canned = reader.prepare<object, CannedRow>(
    `SELECT ${CANNED} FROM canned_replies WHERE account_id = @accountId ORDER BY shortcut`);
  const beside = createBeside(reader);
  return {
    page: createPage(reader, writer, search),
    indexMessages: (rows) => writer.write("messages.index", { rows }),
    forgetIndex: () => writer.write("messages.forgetIndex", { all: true }),
    counts: async (accountId, holderId) =>
      await counts.get({ accountId, holderId }) ?? { waiting: 0, mine: 0, all: 0 },
    notes: async (conversationId) => (await notes.all({ conversationId })).map(noteFromRow),
    label: (args) => writer.write("desk.label", args),
    labels: async (id) => (await beside([id]))(id).labels,
    addNote: (args) => writer.write("desk.note", args),
    cannedReplies: async (accountId) => (await canned.all({ accountId })).map(cannedFromRow),
    saveCannedReply: (args) => writer.write("cannedReplies.save", args),
    removeCannedReply: (args) => writer.write("cannedReplies.remove", args),
  };
}

interface NoteRow { id: number; author: string | null; text: string; created_at: number }

const noteFromRow = ({ id, author, text, created_at: createdAt }: NoteRow): Note => ({
  id, text, createdAt, author: author === null ? null : (JSON.parse(author) as Author),
});

interface CannedRow {
  id: number;
  shortcut: string;
  text: string;
  created_at: number;
  updated_at: number;
}

const CANNED = "id, shortcut, text, created_at, updated_at";

const cannedFromRow = (row: CannedRow): CannedReply => ({
  id: row.id, shortcut: row.shortcut, text: row.text, createdAt: row.created_at,
  updatedAt: row.updated_at,
});

export function inboxCommands(sql: Sql) {
  const known = sql.prepare<object, Exists>(
    "SELECT 1 FROM canned_replies WHERE id = @id AND account_id = @accountId");
  const taken = sql.prepare<object, Exists>(`
    SELECT 1 FROM canned_replies
    WHERE account_id = @accountId AND shortcut = @shortcut AND id <> (@id + 0)`);
  const count = sql.prepare<object, { replies: number }>(
    "SELECT count(*) AS replies FROM canned_replies WHERE account_id = @accountId");
  const insert = sql.prepare<object, CannedRow>(`
    INSERT INTO canned_replies (account_id, shortcut, text, created_at, updated_at)
    VALUES (@accountId, @shortcut, @text, @now, @now) RETURNING ${CANNED}`);
  const update = sql.prepare<object, CannedRow>(`
    UPDATE canned_replies SET shortcut = @shortcut, text = @text, updated_at = @now
    WHERE id = @id AND account_id = @accountId RETURNING ${CANNED}`);
  const remove = sql.prepare("DELETE FROM canned_replies WHERE id = @id AND account_id = @accountId");
  return {
    "cannedReplies.save": async (args: {
      accountId: number; id: number | null; shortcut: string; text: string; max: number;
      now: Instant;
    }): Promise<CannedOutcome> => {
      if (args.id !== null && !await known.get(args)) return { kind: "not_found" };
      if (await taken.get({ ...args, id: args.id ?? 0 })) return { kind: "name_taken" };
      if (args.id === null) {
        const { replies } = await count.one(args);
        if (replies >= args.max) return { kind: "too_many" };
        return { kind: "saved", reply: cannedFromRow(await insert.one(args)) };
      }
      return { kind: "saved", reply: cannedFromRow(await update.one(args)) };
    },
    "cannedReplies.remove": async (args: { accountId: number; id: number }): Promise<boolean> =>
      (await remove.run(args)).changes > 0,
  };
}
