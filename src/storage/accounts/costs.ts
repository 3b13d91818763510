// Spending, counted from the ledger: the reads, and the command that counts. Rules:
// features/accounts/money/costs.ts.
import {
  QUARTER_MICROS, type CostDimension, type CostRow, type CostStore,
} from "#features/accounts/money/costs.ts";
import type { LedgerKind } from "#features/accounts/money/ledger.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import { DELETED } from "#storage/conversations/rows.ts";
import { aside, type Reader, type Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

interface Counted {
  at: Instant;
  kind: string;
  channel: string;
  assistantId: number;
  campaignId: number;
  modelId: number;
  micros: Micros;
  entries: number;
}

interface EntryRow {
  number: number;
  kind: LedgerKind;
  reference: string;
  amount_micros: number;
  created_at: number;
}
interface ThingRow {
  id: number;
  type: string;
  assistant_id: number;
  campaign_id: number | null;
}
interface AssistantRow {
  id: number;
  mode: string;
  settings: string;
}

export function costCommands(sql: Sql) {
  const begin = sql.prepare(`
    INSERT INTO costs_counted (account_id, number) VALUES (@accountId, 0)
    ON CONFLICT (account_id) DO NOTHING`);
  const mark = sql.prepare(`
    UPDATE costs_counted SET number = @upTo WHERE account_id = @accountId AND number = @after`);
  const add = sql.prepare(`
    INSERT INTO costs (account_id, at, kind, channel, assistant_id, campaign_id, model_id, micros,
      entries)
    VALUES (@accountId, @at, @kind, @channel, @assistantId, @campaignId, @modelId, @micros,
      @entries)
    ON CONFLICT (account_id, at, kind, channel, assistant_id, campaign_id, model_id) DO UPDATE
    SET micros = costs.micros + excluded.micros, entries = costs.entries + excluded.entries`);
  return {
    /** Returns false and writes nothing where another process has counted on from there. */
    "costs.count": async (args: {
      accountId: number; after: number; upTo: number; counted: Counted[];
    }): Promise<boolean> => {
      const { accountId, after, counted } = args;
      if (after === 0) await begin.run({ accountId });
      if ((await mark.run(args)).changes === 0) return false;
      for (const one of counted) await add.run({ accountId, ...one });
      return true;
    },
  };
}

const THINGS = { turn: "conversation", call: "call" } as const;

/** `turn:17.3` belongs to conversation 17, `call:12` to call 12. */
function thingOf(reference: string): { table: "conversation" | "call"; id: number } | null {
  const [, what, id] = /^(turn|call):(\d{1,15})(?:\.\d+)?$/.exec(reference) ?? [];
  return what === "turn" || what === "call" ? { table: THINGS[what], id: Number(id) } : null;
}

/** The model an assistant is set to use: the text model, or the speech model. */
function modelOf({ mode, settings }: AssistantRow, isCall: boolean): number {
  const set = JSON.parse(settings) as Record<string, number | null | undefined>;
  if (mode === "pipeline") return set.llm_model_id ?? 0;
  return (isCall ? set.multimodal_model_id : set.chat_llm_fallback_id) ?? 0;
}

function createReads(sql: Sql) {
  const { dialect } = sql;
  const conversations = sql.prepare<object, ThingRow>(`
    SELECT id, type, assistant_id, NULL AS campaign_id FROM conversations
    WHERE account_id = @accountId AND ${dialect.among("id", "@ids")}`);
  const calls = sql.prepare<object, ThingRow>(`
    SELECT id, type, assistant_id, campaign_id FROM calls
    WHERE account_id = @accountId AND ${dialect.among("id", "@ids")}`);
  const assistants = sql.prepare<object, AssistantRow>(`
    SELECT id, mode, settings FROM assistants
    WHERE account_id = @accountId AND ${dialect.among("id", "@ids")}`);
  const byId = <Row extends { id: number }>(rows: Row[]) =>
    new Map(rows.map((row) => [row.id, row]));
  return async (accountId: number, entries: EntryRow[]) => {
    const idsOf = (table: "conversation" | "call"): number[] => {
      const named = entries.map(({ reference }) => thingOf(reference));
      return [...new Set(named.flatMap((one) => (one?.table === table ? [one.id] : [])))];
    };
    const things = {
      conversation: byId(await conversations.all({ accountId, ids: idsOf("conversation") })),
      call: byId(await calls.all({ accountId, ids: idsOf("call") })),
    };
    const ids = new Set([...things.conversation.values(), ...things.call.values()]
      .map(({ assistant_id: id }) => id));
    return { things, assistants: byId(await assistants.all({ accountId, ids: [...ids] })) };
  };
}

type Known = Awaited<ReturnType<ReturnType<typeof createReads>>>;

/** Null: money that came in. */
function countedFrom(entry: EntryRow, { things, assistants }: Known): Counted | null {
  const { kind, reference, amount_micros: amount, created_at: createdAt } = entry;
  const isTaken = kind === "credit";
  if (isTaken && amount >= 0) return null;
  const thing = isTaken ? null : thingOf(reference);
  const found = thing && things[thing.table].get(thing.id);
  const assistant = found && assistants.get(found.assistant_id);
  return {
    at: createdAt - (createdAt % QUARTER_MICROS),
    kind: isTaken ? "other" : kind,
    channel: found && found.type !== DELETED ? found.type : isTaken ? "other" : kind,
    assistantId: found?.assistant_id ?? 0,
    campaignId: found?.campaign_id ?? 0,
    modelId: assistant ? modelOf(assistant, thing?.table === "call") : 0,
    micros: -amount,
    entries: 1,
  };
}

function together(counted: Counted[]): Counted[] {
  const sums = new Map<string, Counted>();
  for (const one of counted) {
    const { micros, entries, ...what } = one;
    const key = Object.values(what).join(" ");
    const sum = sums.get(key);
    if (sum) {
      sum.micros += micros;
      sum.entries += entries;
    } else sums.set(key, one);
  }
  return [...sums.values()];
}

const COLUMNS: Record<CostDimension, string> = {
  assistant: "assistant_id", campaign: "campaign_id", model: "model_id", channel: "channel",
  kind: "kind",
};

const sumBy = (reader: Reader, by: CostDimension) => aside<object, CostRow>(reader, `
  SELECT ${COLUMNS[by]} AS key, sum(micros) AS micros, sum(entries) AS entries FROM costs
  WHERE account_id = @accountId AND at >= @from AND at < @to GROUP BY ${COLUMNS[by]}`);

export function createCostStore(reader: Reader, writer: WriterOf<typeof costCommands>): CostStore {
  const counted = reader.prepare<object, { number: number }>(
    "SELECT number FROM costs_counted WHERE account_id = @accountId");
  const next = reader.prepare<object, EntryRow>(`
    SELECT number, kind, reference, amount_micros, created_at FROM ledger
    WHERE account_id = +@accountId AND number > +@after ORDER BY number LIMIT (@rows + 0)`);
  const uncounted = reader.prepare<object, { id: number }>(`
    SELECT a.id FROM accounts a LEFT JOIN costs_counted c ON c.account_id = a.id
    WHERE a.ledger_entries > coalesce(c.number, 0) LIMIT (@rows + 0)`);
  const read = createReads(reader);
  const sums = {
    assistant: sumBy(reader, "assistant"), campaign: sumBy(reader, "campaign"),
    model: sumBy(reader, "model"), channel: sumBy(reader, "channel"), kind: sumBy(reader, "kind"),
  };
  const among = reader.dialect.among("id", "@ids");
  const names = {
    assistant: reader.prepare<object, { key: number; id: string; name: string }>(`
      SELECT id AS key, uuid AS id, name FROM assistants WHERE account_id = @accountId AND ${among}`),
    campaign: reader.prepare<object, { key: number; id: string; name: string }>(`
      SELECT id AS key, CAST(id AS TEXT) AS id, name FROM campaigns
      WHERE account_id = @accountId AND ${among}`),
  };
  return {
    count: async (accountId, rows) => {
      const after = (await counted.get({ accountId }))?.number ?? 0;
      const entries = await next.all({ accountId, after, rows });
      const upTo = entries.at(-1)?.number;
      if (upTo === undefined) return false;
      const known = await read(accountId, entries);
      const found = entries.map((entry) => countedFrom(entry, known))
        .filter((one) => one !== null);
      const isCounted = await writer.write(
        "costs.count", { accountId, after, upTo, counted: together(found) });
      // When another process was first, it may have stopped before the newest of these entries.
      return !isCounted || entries.length === rows;
    },
    uncounted: async (rows) => (await uncounted.all({ rows })).map(({ id }) => id),
    sum: async (accountId, range, by) => sums[by].all({ accountId, ...range }),
    names: async (accountId, by, ids) => new Map(
      (await names[by].all({ accountId, ids })).map(({ key, ...known }) => [key, known])),
  };
}
