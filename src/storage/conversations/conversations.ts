// Text conversations in the database: reads on the main thread. The commands are in turns.ts,
// turn-ends.ts, commands.ts (create, end by inactivity) and desk-commands.ts.
import type {
  ConversationFilter, ConversationStore, DeskStore,
} from "#features/conversations/records.ts";
import { may, ROLES } from "#features/accounts/people/roles.ts";
import type { FailureClass } from "#events/events.ts";
import type { conversationCommands } from "./commands.ts";
import {
  CONVERSATION, conversationFromRow, LAST, lastFromRow, MESSAGE, messageFromRow, OF_CONVERSATION,
  OF_MESSAGE, SUMMARIES, summaryFromRow, type ConversationRow, type LastRow, type MessageRow,
  type SummaryRow,
} from "./rows.ts";
import type { deskCommands } from "./desk-commands.ts";
import { createFound } from "#storage/search/found.ts";
import type { messageSearchCommands } from "#storage/search/message-search.ts";
import { isFree, NOBODY } from "#storage/nodes/nodes.ts";
import type { SearchIndex } from "#storage/search/search.ts";
import { aside, orNull, type Exists, type Reader } from "#storage/sql.ts";
import { perAccount } from "#storage/sweeps.ts";
import type { OpenTurn, turnCommands } from "./turns.ts";
import { writes, type Writer, type WriterOf } from "#storage/writer.ts";

interface FailureRow {
  id: number;
  failure: FailureClass | null;
  error: string | null;
  finished_at: number | null;
}

function createOutlook(reader: Reader): ConversationStore["outlook"] {
  const outlook = reader.prepare<object, ConversationRow & {
    message_count: number; free_micros: number; is_repeat: number;
  }>(`
    SELECT ${OF_CONVERSATION}, c.message_count,
      a.balance_micros - a.reserved_micros AS free_micros, t.id IS NOT NULL AS is_repeat
    FROM conversations c JOIN accounts a ON a.id = c.account_id
    LEFT JOIN turns t ON t.conversation_id = c.id AND t.idempotency_key = +@idempotencyKey
    WHERE c.uuid = +@uuid`);
  return async (uuid, idempotencyKey) => {
    const row = await outlook.get({ uuid, idempotencyKey });
    return row
      ? {
          conversation: conversationFromRow(row),
          messageCount: row.message_count,
          freeMicros: row.free_micros,
          isRepeat: row.is_repeat === 1,
        }
      : null;
  };
}

const ANSWERING = ROLES.filter((role) => may(role, "answer")).map((role) => `'${role}'`).join();
/** The number in the holder's id, if it is one of this kind. */
const holderIn = (kind: "user" | "key"): string => `CASE WHEN c.desk_holder LIKE '${kind}:%'
  THEN CAST(substr(c.desk_holder, ${kind.length + 2}) AS BIGINT) END`;

export function createDeskStore(
  reader: Reader, writer: WriterOf<typeof deskCommands>,
): DeskStore {
  const abandoned = reader.prepare<object, {
    account_id: number; uuid: string; assistant_id: number; id: string; name: string | null;
  }>(`
    SELECT c.account_id, c.uuid, c.assistant_id, c.desk_holder AS id, c.desk_holder_name AS name
    FROM conversations c
    WHERE c.desk <> 'assistant' AND c.desk = 'person' AND c.desk_holder IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = ${holderIn("user")}
        AND u.account_id = c.account_id AND u.removed_at IS NULL AND u.role IN (${ANSWERING}))
      AND NOT EXISTS (SELECT 1 FROM api_keys k WHERE k.id = ${holderIn("key")}
        AND k.account_id = c.account_id AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > @now))
    LIMIT (@rows + 0)`);
  return {
    moveDesk: (args) => writer.write("desk.move", args),
    abandoned: async (args) => (await abandoned.all(args)).map(
      ({ account_id: accountId, assistant_id: assistantId, uuid, id, name }) =>
        ({ accountId, uuid, assistantId, holder: { id, name: name ?? "" } })),
    ...writes(writer, "desk", "say", "end"),
  };
}

interface EndRow {
  state: "open" | "stored" | "done" | "stopped" | "failed" | "interrupted";
  reply_message_id: number | null;
}

/** Turns that run on other nodes, and how they ended. */
function createTurnReads(
  reader: Reader,
): Pick<ConversationStore, "isAnsweredElsewhere" | "turnEnd"> {
  const answered = reader.prepare<object, Exists>(`
    SELECT 1 FROM turns
    WHERE conversation_id = @conversationId AND state = 'open' AND NOT ${isFree("turns.node_id")}`);
  const find = reader.prepare<object, EndRow>(
    "SELECT state, reply_message_id FROM turns WHERE id = @turnId");
  const findReply = reader.prepare<object, MessageRow>(
    `SELECT ${MESSAGE} FROM messages WHERE id = @id`);
  const turnEnd: ConversationStore["turnEnd"] = async (turnId) => {
    const turn = await find.get({ turnId });
    if (!turn || turn.state === "open") return null;
    const { state, reply_message_id: id } = turn;
    const row = id === null ? undefined : await findReply.get({ id });
    if (row) {
      const { content: text, role: _role, createdAt: _createdAt, ...reply } = messageFromRow(row);
      return { kind: "completed", text, ...reply };
    }
    const reason = state === "failed" || state === "interrupted" ? state : "stopped";
    // The row's text is for the owner; the client gets what any client may read.
    const error = reason === "stopped" ? "The reply was stopped." : "The reply could not be completed.";
    return { kind: "failed", reason, error, cause: null };
  };
  return {
    isAnsweredElsewhere: async (conversationId) =>
      await answered.get({ conversationId }) !== undefined,
    turnEnd,
  };
}

function createLists(
  reader: Reader, writer: WriterOf<typeof messageSearchCommands>, search: SearchIndex,
): Pick<ConversationStore, "summary" | "list"> {
  const found = createFound(reader, writer, search);
  const summaries = SUMMARIES();
  const { where, order } = reader.dialect.newestFirst("c");
  const summary = reader.prepare<object, SummaryRow>(`
    ${summaries} WHERE c.uuid = @uuid AND c.account_id = +@accountId`);
  const list = aside<object, SummaryRow & LastRow>(reader, `
    ${SUMMARIES(LAST)}
    LEFT JOIN messages m ON m.id = (SELECT max(id) FROM messages WHERE conversation_id = c.id)
    WHERE ${where}
      AND (CAST(@type AS TEXT) IS NULL OR c.type = @type)
      AND (CAST(@assistantId AS BIGINT) IS NULL OR c.assistant_id = @assistantId)
      AND (CAST(@externalIdentifier AS TEXT) IS NULL OR c.external_identifier = @externalIdentifier)
      AND (CAST(@from AS BIGINT) IS NULL OR c.created_at >= @from)
      AND (CAST(@to AS BIGINT) IS NULL OR c.created_at < @to)
      AND ${found.condition}
    ORDER BY ${order} LIMIT (@rows + 0)`);
  return {
    summary: async (accountId, uuid) =>
      orNull(await summary.get({ accountId, uuid }), summaryFromRow),
    list: async (accountId, filter: ConversationFilter, before, rows) => (await list.all({
      accountId,
      before: before || Number.MAX_SAFE_INTEGER,
      rows,
      type: filter.type ?? null,
      assistantId: filter.assistantId ?? null,
      externalIdentifier: filter.externalIdentifier ?? null,
      from: filter.from ?? null,
      to: filter.to ?? null,
      ...await found.parameters(accountId, filter.search ?? null),
    })).map((row) => ({ ...summaryFromRow(row), last: lastFromRow(row) })),
  };
}

type ConversationCommands = ReturnType<typeof conversationCommands>
  & ReturnType<typeof messageSearchCommands> & ReturnType<typeof turnCommands>;
type ConversationWriter = Writer<ConversationCommands>;

/** One statement, so that the messages and the sequence number are of the same moment. */
function createHistory(reader: Reader): ConversationStore["history"] {
  const read = reader.prepare<
    object, { sequence: number; turn_id: number | null; id: number | null } & MessageRow
  >(`
    WITH replies AS MATERIALIZED (
      SELECT id AS turn_id, reply_message_id FROM turns
      WHERE conversation_id = @conversationId AND reply_message_id IS NOT NULL)
    SELECT c.event_sequence AS sequence, r.turn_id, m.id, ${OF_MESSAGE}
    FROM conversations c
    LEFT JOIN messages m ON m.conversation_id = c.id
    LEFT JOIN replies r ON r.reply_message_id = m.id
    WHERE c.id = @conversationId ORDER BY m.id`);
  return async (conversationId) => {
    const rows = await read.all({ conversationId });
    const said = rows.filter(({ id }) => id !== null);
    return {
      messages: said.map(messageFromRow),
      turnIds: said.map(({ turn_id: turnId }) => turnId),
      sequence: rows[0]?.sequence ?? 0,
    };
  };
}

export function createConversationStore(
  reader: Reader, writer: ConversationWriter, search: SearchIndex,
): ConversationStore {
  const find = reader.prepare<object, ConversationRow>(
    `SELECT ${CONVERSATION} FROM conversations WHERE uuid = @uuid`);
  const ofVisitor = reader.prepare<object, Exists>(`
    SELECT 1 FROM conversations
    WHERE assistant_id = @assistantId AND visitor_id = @visitorId AND type = @type LIMIT 1`);
  const history = createHistory(reader);
  const recent = reader.prepare<object, MessageRow>(`
    SELECT ${MESSAGE} FROM messages WHERE conversation_id = +@conversationId
    ORDER BY id DESC LIMIT (@rows + 0)`);
  const failures = reader.prepare<object, FailureRow>(`
    SELECT id, failure, error, finished_at FROM turns
    WHERE conversation_id = @conversationId AND state = 'failed' ORDER BY id DESC LIMIT (@rows + 0)`);
  const ends = reader.prepare<object, { state: string }>(`
    SELECT state FROM turns WHERE conversation_id = @conversationId AND state <> 'open'
    ORDER BY id DESC LIMIT (@rows + 0)`);

  return {
    ...writes(writer, "conversations", "create", "publishRefused"),
    find: async (uuid) => orNull(await find.get({ uuid }), conversationFromRow),
    hasOfVisitor: async (assistantId, type, visitorId) =>
      await ofVisitor.get({ assistantId, type, visitorId }) !== undefined,
    outlook: createOutlook(reader),
    history,
    recent: async (conversationId, rows) =>
      (await recent.all({ conversationId, rows })).map(messageFromRow),
    failedInARow: async (conversationId, rows) => {
      const states = (await ends.all({ conversationId, rows })).map(({ state }) => state);
      const answered = states.findIndex((state) => state !== "failed");
      return answered < 0 ? states.length : answered;
    },
    failedReplies: async (conversationId, rows) =>
      (await failures.all({ conversationId, rows })).map((row) => ({
        turnId: row.id,
        failure: row.failure,
        error: row.error ?? "",
        failedAt: row.finished_at ?? 0,
      })),
    ...createLists(reader, writer, search),
    ...createTurnReads(reader),
    beginTurn: (args) => writer.write("turns.begin", args),
    completeTurn: (args) => writer.write("turns.complete", args),
    failTurn: (args) => writer.write("turns.fail", args),
    ...createConversationSweeps(reader, writer),
  };
}

interface OpenTurnRow {
  turn_id: number;
  node_id: number;
  id: number;
  uuid: string;
  account_id: number;
  assistant_id: number;
}

const openTurnFromRow = (row: OpenTurnRow): OpenTurn => ({
  turnId: row.turn_id,
  nodeId: row.node_id,
  accountId: row.account_id,
  conversation: { id: row.id, uuid: row.uuid, assistantId: row.assistant_id },
});

function createConversationSweeps(
  reader: Reader, writer: ConversationWriter,
): Pick<ConversationStore, "endInactive" | "recover"> {
  const due = reader.prepare<object, { id: number; accountId: number }>(`
    SELECT id, account_id AS "accountId" FROM conversations
    WHERE state = 'open' AND check_at <= @now ORDER BY check_at LIMIT (@rows + 0)`);
  const open = reader.prepare<object, OpenTurnRow>(`
    SELECT t.id AS turn_id, coalesce(t.node_id, ${NOBODY}) AS node_id, c.id, c.uuid, c.account_id,
      c.assistant_id
    FROM turns t JOIN conversations c ON c.id = t.conversation_id
    WHERE t.state = 'open' AND ${isFree("t.node_id")} ORDER BY t.conversation_id`);
  return {
    endInactive: async ({ now, rows }) => {
      const looked = await due.all({ now, rows });
      const events = await perAccount(looked, (accountId, own) =>
        writer.write("conversations.endInactive", {
          accountId, ids: own.map(({ id }) => id), now,
        }));
      return { looked: looked.length, events: events.flat() };
    },
    recover: async ({ now }) => {
      const left = (await open.all({})).map(openTurnFromRow);
      const events = await perAccount(left, (accountId, turns) =>
        writer.write("turns.recover", { accountId, turns, now }));
      return events.flat();
    },
  };
}
