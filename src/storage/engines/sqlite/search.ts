// The search index in SQLite: FTS5 with BM25 for words, sqlite-vec for meaning.
import { plainTerms, plainWords, scopeOf as accountScope } from "#storage/search/message-search.ts";
import {
  bytesOf, type Hit, type MessageSteps, type SearchCommands, type SearchIndex,
} from "#storage/search/search.ts";
import { aside, type Reader, type Sql } from "#storage/sql.ts";
import { indexable, termsOf } from "#storage/search/words.ts";

/** The token that marks every entry of a knowledgebase. */
const scopeOf = (knowledgebaseId: number): string => `k${knowledgebaseId}`;

/** Decimals of a score that order by: the words of a question are added up in no fixed order. */
const SCORE_DECIMALS = 12;

/** Quoted terms only, so that nothing people type is read as query syntax; null: no words. */
function matchOf(knowledgebaseId: number, query: string): string | null {
  const terms = termsOf(query);
  if (terms.length === 0) return null;
  const either = terms.flatMap(({ word, isPrefix }) =>
    (isPrefix ? [`"${word}"`, `"${word}"*`] : [`"${word}"`]));
  return `scope : "${scopeOf(knowledgebaseId)}" AND {headings text} : (${either.join(" OR ")})`;
}

/** The same for messages, which must contain every word; null: no words. */
function messageMatchOf(accountId: number, query: string): string | null {
  const terms = plainTerms(query);
  if (terms.length === 0) return null;
  const all = terms.map(({ word, isPrefix }) => (isPrefix ? `"${word}"*` : `"${word}"`));
  return [`"${accountScope(accountId)}"`, ...all].join(" AND ");
}

export function createSearchIndex(reader: Reader): SearchIndex {
  // The join on the knowledgebase is what keeps tenants apart; the scope token makes it fast.
  const byWords = reader.prepare<object, Hit>(`
    SELECT c.id, -bm25(chunk_index, 0.0, 2.0, 1.0) AS score FROM chunk_index i
    JOIN chunks c ON c.id = i.rowid JOIN documents d ON d.id = c.document_id
    WHERE chunk_index MATCH @match AND c.knowledgebase_id = @knowledgebaseId
      AND c.position < d.found_until
    ORDER BY round(score, ${SCORE_DECIMALS}) DESC, c.id LIMIT @rows`);
  const byMeaning = reader.prepare<object, Hit>(`
    SELECT c.id, 1 - vec_distance_cosine(v.vector, @vector) AS score FROM chunk_vectors v
    JOIN chunks c ON c.id = v.chunk_id JOIN documents d ON d.id = c.document_id
    WHERE v.knowledgebase_id = @knowledgebaseId AND v.model = @model
      AND length(v.vector) = length(@vector) AND c.position < d.found_until
    ORDER BY score DESC, c.id LIMIT @rows`);
  const byMessage = aside<object, { id: number }>(reader, `
    SELECT DISTINCT m.conversation_id AS id FROM (
      SELECT rowid FROM message_index WHERE message_index MATCH @match
      ORDER BY rowid DESC LIMIT (@rows + 0)
    ) AS hit JOIN messages m ON m.id = hit.rowid`);
  return {
    words: async (knowledgebaseId, query, rows) => {
      const match = matchOf(knowledgebaseId, query);
      if (match === null) return [];
      return byWords.all({ match, knowledgebaseId, rows });
    },
    meaning: async (knowledgebaseId, { model, vector }, rows) =>
      byMeaning.all({ knowledgebaseId, model, vector: bytesOf(vector), rows }),
    conversations: async (accountId, query, rows) => {
      const match = messageMatchOf(accountId, query);
      if (match === null) return [];
      return (await byMessage.all({ accountId, match, rows })).map(({ id }) => id);
    },
  };
}

export function createSearchCommands(sql: Sql): SearchCommands {
  const insert = sql.prepare(
    "INSERT INTO chunk_index (rowid, scope, headings, text) VALUES (@id, @scope, @headings, @text)");
  const remove = sql.prepare(`
    DELETE FROM chunk_index WHERE rowid IN (
      SELECT id FROM chunks
      WHERE document_id = @documentId AND position >= @first AND position < @end)`);
  return {
    index: async (chunks) => {
      for (const { id, knowledgebaseId, headings, text } of chunks) {
        await insert.run({
          id,
          scope: scopeOf(knowledgebaseId),
          headings: indexable(headings.join("\n")),
          text: indexable(text),
        });
      }
    },
    forget: async (chunks) => {
      await remove.run(chunks);
    },
    ...createMessageIndex(sql),
  };
}

function createMessageIndex(sql: Sql): MessageSteps {
  const insert = sql.prepare("INSERT INTO message_index (rowid, words) VALUES (@id, @words)");
  const forget = sql.prepare(`
    DELETE FROM message_index WHERE rowid IN (
      SELECT id FROM messages WHERE conversation_id = @conversationId)`);
  const clear = sql.prepare("INSERT INTO message_index (message_index) VALUES ('delete-all')");
  return {
    isMissing: () => "true",
    indexMessages: async (messages) => {
      for (const { id, accountId, text } of messages) {
        await insert.run({ id, words: [accountScope(accountId), ...plainWords(text)].join(" ") });
      }
    },
    clearMessages: async () => {
      await clear.run({});
    },
    forgetMessages: async (conversationId) => {
      await forget.run({ conversationId });
    },
    transactions: () => Promise.resolve(null),
  };
}
