// The search index in SQLite: FTS5 with BM25 for words, sqlite-vec for meaning.
import { LIMITS } from "#core/limits.ts";
import { bytesOf, type SearchCommands, type SearchIndex } from "#storage/search.ts";
import type { Sql } from "#storage/sql.ts";

/** Written without spaces, so that each sign is a word of its own. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/gu;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
/** Words this long also find what begins with them: "opening" asks for "openings", too. */
const PREFIX_CHARS_MIN = 4;

// Words of questions that say nothing about the subject; BM25 weighs them little, yet in a small
// knowledgebase even a rare "what" would count.
const CHATTER = new Set((
  "a about an and any are as at be by can could do does did for from get give has have how i if in "
  + "is it its me much many my of on or our please should so tell than that the their there these "
  + "this to was we what when where which who why will with would you your "
  + "der die das ein eine und oder ist sind wie was wer wo wann warum ich sie es mit von zu im in "
  + "el la los las un una y o es son como que quien donde cuando por para con de del en mi su "
  + "le les et ou est sont comment quoi qui quand pourquoi pour avec des du dans je vous"
).split(" "));

const indexable = (text: string): string => text.replace(UNSPACED, " $& ");

/** The token that marks every entry of a knowledgebase. */
const scopeOf = (knowledgebaseId: number): string => `k${knowledgebaseId}`;

/** Quoted terms only, so that nothing people type is read as query syntax; null: no words. */
function matchOf(knowledgebaseId: number, query: string): string | null {
  const words = [...indexable(query.toLowerCase()).matchAll(WORD)].map(([word]) => word);
  const telling = words.filter((word) => !CHATTER.has(word));
  const terms = [...new Set(telling.length > 0 ? telling : words)].slice(0, LIMITS.searchTermsMax);
  if (terms.length === 0) return null;
  const either = terms.flatMap((term) =>
    term.length >= PREFIX_CHARS_MIN ? [`"${term}"`, `"${term}"*`] : [`"${term}"`]);
  return `scope : "${scopeOf(knowledgebaseId)}" AND {headings text} : (${either.join(" OR ")})`;
}

export function createSearchIndex(sql: Sql): SearchIndex {
  // The join on the knowledgebase is what keeps tenants apart; the scope token makes it fast.
  const byWords = sql.prepare<object, { id: number }>(`
    SELECT c.id FROM chunk_index i
    JOIN chunks c ON c.id = i.rowid JOIN documents d ON d.id = c.document_id
    WHERE chunk_index MATCH @match AND c.knowledgebase_id = @knowledgebaseId
      AND d.status = 'active'
    ORDER BY bm25(chunk_index, 0.0, 2.0, 1.0), c.id LIMIT @rows`);
  const byMeaning = sql.prepare<object, { id: number }>(`
    SELECT c.id FROM chunk_vectors v
    JOIN chunks c ON c.id = v.chunk_id JOIN documents d ON d.id = c.document_id
    WHERE v.knowledgebase_id = @knowledgebaseId AND v.model = @model
      AND length(v.vector) = length(@vector) AND d.status = 'active'
    ORDER BY vec_distance_cosine(v.vector, @vector), c.id LIMIT @rows`);
  return {
    words: async (knowledgebaseId, query, rows) => {
      const match = matchOf(knowledgebaseId, query);
      if (match === null) return [];
      return (await byWords.all({ match, knowledgebaseId, rows })).map(({ id }) => id);
    },
    meaning: async (knowledgebaseId, { model, vector }, rows) => {
      const found = await byMeaning.all({ knowledgebaseId, model, vector: bytesOf(vector), rows });
      return found.map(({ id }) => id);
    },
  };
}

export function createSearchCommands(sql: Sql): SearchCommands {
  const insert = sql.prepare(
    "INSERT INTO chunk_index (rowid, scope, headings, text) VALUES (@id, @scope, @headings, @text)");
  const remove = sql.prepare(`
    DELETE FROM chunk_index WHERE rowid IN (SELECT id FROM chunks WHERE document_id = @documentId)`);
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
    forget: async (documentId) => {
      await remove.run({ documentId });
    },
  };
}
