// Search in messages: stored messages are indexed after their commit, so that writing one costs no
// more. Used by the engines' search.ts; its commands by the inbox's store.
import type { IndexedMessage, SearchCommands } from "./search.ts";
import type { Sql } from "#storage/sql.ts";
import { indexable } from "./words.ts";

const WORD = /[\p{L}\p{N}]+/gu;
const WORD_CHARS_MAX = 64;
const TERMS_MAX = 8;

/** The words of a text as people search for them: each once, in lower case, without diacritics. */
export function plainWords(text: string): string[] {
  const plain = text.normalize("NFKD").toLowerCase().replaceAll(/\p{M}/gu, "").replaceAll("ß", "ss");
  const words = [...indexable(plain).matchAll(WORD)].map(([word]) => word.slice(0, WORD_CHARS_MAX));
  return [...new Set(words)];
}

/** The terms of a query; a word of more than one letter also matches as a prefix. */
export const plainTerms = (query: string): { word: string; isPrefix: boolean }[] =>
  plainWords(query).slice(0, TERMS_MAX).map((word) => ({ word, isPrefix: word.length > 1 }));

/** The word that marks the entries of an account; no text has one like it. */
export const scopeOf = (accountId: number): string => `:${accountId}`;

interface State {
  settled: number;
  /** Every message up to here that was visible is indexed. Null: nothing waits to be settled. */
  seen: number | null;
  /** Once no transaction before this one is under way, no message up to `seen` can appear. */
  horizon: number | null;
}

/**
 * Message ids are drawn in order but may be committed out of order: `settled` moves up to `seen`
 * once every transaction that could have drawn a lower id is over.
 */
function settle(
  state: State, { own, oldest }: { own: number; oldest: number }, newest: number,
): State {
  const { settled, seen, horizon } = state;
  if (seen === null) return { settled, seen: newest > settled ? newest : null, horizon: null };
  if (horizon === null) return { settled, seen, horizon: own };
  return oldest >= horizon ? { settled: seen, seen: null, horizon: null } : state;
}

export function messageSearchCommands(sql: Sql, search: SearchCommands) {
  const find = sql.prepare<object, State>(
    "SELECT settled, seen, horizon FROM message_index_state WHERE id = 1");
  const missing = sql.prepare<object, IndexedMessage>(`
    SELECT m.id, m.conversation_id AS "conversationId", c.account_id AS "accountId",
      m.content AS text
    FROM messages m JOIN conversations c ON c.id = m.conversation_id
    WHERE m.id > +@settled AND ${search.isMissing("m.id")} ORDER BY m.id LIMIT (@rows + 0)`);
  const newest = sql.prepare<object, { id: number }>(
    "SELECT coalesce(max(id), 0) AS id FROM messages");
  const save = sql.prepare(`
    UPDATE message_index_state SET settled = @settled, seen = @seen, horizon = @horizon
    WHERE id = 1`);
  return {
    /** Indexes the next messages that are missing; resolves to how many. */
    "messages.index": async ({ rows }: { rows: number }): Promise<number> => {
      const state = await find.one({});
      const found = await missing.all({ settled: state.settled, rows });
      await search.indexMessages(found);
      const last = found.length === rows ? found.at(-1)?.id : undefined;
      const upTo = last ?? (await newest.one({})).id;
      const transactions = await search.transactions();
      const next = transactions === null
        ? { settled: upTo, seen: null, horizon: null }
        : settle(state, transactions, upTo);
      const isSame = next.settled === state.settled && next.seen === state.seen
        && next.horizon === state.horizon;
      if (!isSame) await save.run(next);
      return found.length;
    },
    /** Empties the index; `messages.index` refills it. */
    "messages.forgetIndex": async (_: { all: true }): Promise<void> => {
      await search.clearMessages();
      await save.run({ settled: 0, seen: null, horizon: null });
    },
  };
}
