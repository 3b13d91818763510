// Text conversations in SQLite: reads on the main thread. The commands are in turns.ts (begin,
// complete, fail, recover) and conversation-commands.ts (create, toggle, end).
import type {
  Conversation,
  ConversationFilter,
  ConversationStore,
  ConversationSummary,
  ConversationType,
  DeskStore,
  LastMessage,
  Message,
} from "#features/conversations/records.ts";
import type { Desk } from "#features/conversations/desk.ts";
import type {
  AttachmentBody, Author, DeskReason, DeskState, FailureClass, FunctionCall, Rating,
} from "#events/events.ts";
import type { conversationCommands } from "./conversation-commands.ts";
import type { deskCommands } from "./desk-commands.ts";
import { createFound } from "./found.ts";
import type { messageSearchCommands } from "./message-search.ts";
import { isFree, NOBODY } from "./nodes.ts";
import type { SearchIndex } from "./search.ts";
import type { Exists, Reader } from "./sql.ts";
import { perAccount } from "./sweeps.ts";
import type { OpenTurn, turnCommands } from "./turns.ts";
import type { Writer, WriterOf } from "./writer.ts";

export interface ConversationRow {
  id: number;
  uuid: string;
  account_id: number;
  assistant_id: number;
  type: ConversationType;
  state: "open" | "ended";
  desk: DeskState;
  desk_holder: string | null;
  desk_holder_name: string | null;
  desk_reason: DeskReason | null;
  desk_at: number | null;
  variables: string;
  external_identifier: string | null;
  visitor_id: string | null;
  page: string | null;
  created_at: number;
}

export interface SummaryRow extends ConversationRow {
  assistant_uuid: string;
  assistant_name: string;
  message_count: number;
  total_cost_micros: number;
  evaluation: string | null;
  evaluation_error: string | null;
  score: number | null;
  score_comment: string | null;
  scored_at: number | null;
  updated_at: number;
}

export interface MessageRow {
  role: "user" | "assistant";
  content: string;
  function_calls: string | null;
  stopped: number;
  truncated: number;
  input_tokens: number | null;
  output_tokens: number | null;
  author: string | null;
  rating: number | null;
  attachments: string | null;
  created_at: number;
}

interface FailureRow {
  id: number;
  failure: FailureClass | null;
  error: string | null;
  finished_at: number | null;
}

export const DESK = "desk, desk_holder, desk_holder_name, desk_reason, desk_at";
export const CONVERSATION = `id, uuid, account_id, assistant_id, type, state, ${DESK}, variables,
  external_identifier, visitor_id, page, created_at`;
/** What is left of one that was deleted is of this type; no list shows it. */
export const DELETED = "deleted";
/** The same beside other tables. */
const OF_CONVERSATION = CONVERSATION.replace(/\w+/g, "c.$&");
/** Rows as lists show them, with more columns where they are named. */
export const SUMMARIES = (more?: string): string => `
    SELECT ${OF_CONVERSATION}, c.message_count, c.total_cost_micros, c.updated_at,
      c.evaluation, c.evaluation_error, c.score, c.score_comment, c.scored_at, a.uuid AS assistant_uuid, a.name AS assistant_name
      ${more === undefined ? "" : `, ${more}`}
    FROM conversations c
    JOIN assistants a ON a.id = c.assistant_id AND c.type <> '${DELETED}'`;
export const MESSAGE =
  "role, content, function_calls, stopped, truncated, input_tokens, output_tokens, author, rating, attachments, created_at";

export type DeskRow = Pick<
  ConversationRow, "desk" | "desk_holder" | "desk_holder_name" | "desk_reason" | "desk_at">;

export const deskFromRow = (row: DeskRow): Desk => ({
  state: row.desk,
  holder: row.desk_holder === null
    ? null
    : { id: row.desk_holder, name: row.desk_holder_name ?? "" },
  reason: row.desk_reason,
  at: row.desk_at,
});

export function conversationFromRow(row: ConversationRow): Conversation {
  return {
    id: row.id,
    uuid: row.uuid,
    accountId: row.account_id,
    assistantId: row.assistant_id,
    type: row.type,
    state: row.state,
    desk: deskFromRow(row),
    variables: JSON.parse(row.variables) as Record<string, string>,
    externalIdentifier: row.external_identifier,
    visitorId: row.visitor_id,
    page: row.page,
    createdAt: row.created_at,
  };
}

export const ratingFrom = (value: number | null): Rating | null =>
  value === null ? null : value > 0 ? "up" : "down";

export function messageFromRow(row: MessageRow): Message {
  return {
    role: row.author === null ? row.role : "operator",
    content: row.content,
    author: row.author === null ? null : (JSON.parse(row.author) as Author),
    functionCalls: row.function_calls === null
      ? []
      : (JSON.parse(row.function_calls) as FunctionCall[]),
    stopped: row.stopped === 1,
    truncated: row.truncated === 1,
    usage: row.input_tokens === null || row.output_tokens === null
      ? null
      : { inputTokens: row.input_tokens, outputTokens: row.output_tokens },
    rating: ratingFrom(row.rating),
    attachments: row.attachments === null
      ? []
      : (JSON.parse(row.attachments) as AttachmentBody[]),
    createdAt: row.created_at,
  };
}

export function summaryFromRow(row: SummaryRow): ConversationSummary {
  return {
    ...conversationFromRow(row),
    assistantUuid: row.assistant_uuid,
    assistantName: row.assistant_name,
    messageCount: row.message_count,
    totalCostMicros: row.total_cost_micros,
    evaluation: row.evaluation === null
      ? null
      : (JSON.parse(row.evaluation) as Record<string, unknown>),
    evaluationError: row.evaluation_error,
    satisfaction: row.score === null || row.scored_at === null
      ? null
      : { score: row.score, comment: row.score_comment, at: row.scored_at },
    updatedAt: row.updated_at,
  };
}

/** The newest message `m` beside the conversation. */
export const LAST = `m.role AS last_role, m.author AS last_author, m.content AS last_content,
      m.created_at AS last_at`;

export interface LastRow {
  last_role: "user" | "assistant" | null;
  last_author: string | null;
  last_content: string | null;
  last_at: number | null;
}

export function lastFromRow(row: LastRow): LastMessage | null {
  const { last_role: role, last_content: content, last_at: at, last_author: author } = row;
  return role === null || content === null || at === null
    ? null
    : { role: author === null ? role : "operator", content, at };
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

export const createDeskStore = (writer: WriterOf<typeof deskCommands>): DeskStore => ({
  moveDesk: (args) => writer.write("desk.move", args),
  say: (args) => writer.write("desk.say", args),
  end: (args) => writer.write("desk.end", args),
});
interface EndRow {
  state: "open" | "stored" | "done" | "stopped" | "failed" | "interrupted";
  reply_message_id: number | null;
}

/** What other nodes have under way, and how it ended. */
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
    // The row has the words for the owner; whoever asked reads what any client may.
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
  const summary = reader.prepare<object, SummaryRow>(`
    ${summaries} WHERE c.uuid = @uuid AND c.account_id = +@accountId`);
  const list = reader.prepare<object, SummaryRow & LastRow>(`
    ${SUMMARIES(LAST)}
    LEFT JOIN messages m ON m.id = (SELECT max(id) FROM messages WHERE conversation_id = c.id)
    WHERE c.account_id = @accountId AND (CAST(@before AS BIGINT) = 0 OR c.id < @before)
      AND (CAST(@type AS TEXT) IS NULL OR c.type = @type)
      AND (CAST(@assistantId AS BIGINT) IS NULL OR c.assistant_id = @assistantId)
      AND (CAST(@externalIdentifier AS TEXT) IS NULL OR c.external_identifier = @externalIdentifier)
      AND (CAST(@from AS BIGINT) IS NULL OR c.created_at >= @from)
      AND (CAST(@to AS BIGINT) IS NULL OR c.created_at < @to)
      AND ${found.condition}
    ORDER BY c.id DESC LIMIT (@rows + 0)`);
  return {
    summary: async (accountId, uuid) => {
      const row = await summary.get({ accountId, uuid });
      return row ? summaryFromRow(row) : null;
    },
    list: async (accountId, filter: ConversationFilter, before, rows) => (await list.all({
      accountId,
      before,
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

export function createConversationStore(
  reader: Reader, writer: ConversationWriter, search: SearchIndex,
): ConversationStore {
  const find = reader.prepare<object, ConversationRow>(
    `SELECT ${CONVERSATION} FROM conversations WHERE uuid = @uuid`);
  const ofVisitor = reader.prepare<object, Exists>(`
    SELECT 1 FROM conversations
    WHERE assistant_id = @assistantId AND visitor_id = @visitorId AND type = @type LIMIT 1`);
  const history = reader.prepare<object, MessageRow>(
    `SELECT ${MESSAGE} FROM messages WHERE conversation_id = +@conversationId ORDER BY id`);
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
    create: (args) => writer.write("conversations.create", args),
    find: async (uuid) => {
      const row = await find.get({ uuid });
      return row ? conversationFromRow(row) : null;
    },
    hasOfVisitor: async (assistantId, type, visitorId) =>
      await ofVisitor.get({ assistantId, type, visitorId }) !== undefined,
    outlook: createOutlook(reader),
    history: async (conversationId) => (await history.all({ conversationId })).map(messageFromRow),
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
    publishRefused: (args) => writer.write("conversations.publishRefused", args),
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
    WHERE t.state = 'open' AND ${isFree("t.node_id")} ORDER BY t.id`);
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
