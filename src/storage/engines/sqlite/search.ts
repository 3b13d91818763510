// Full-text search over the chunks of one knowledgebase: FTS5 with BM25. Hidden behind the store's
// `search`, so that another engine can do it its own way.
import { LIMITS } from "#core/limits.ts";
import type {
  KnowledgebaseStore, Meaning, Passage,
} from "#features/knowledgebases/knowledgebases.ts";
import type { Db } from "./database.ts";

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

export const indexable = (text: string): string => text.replace(UNSPACED, " $& ");

/** The token that marks every entry of a knowledgebase. */
export const scopeOf = (knowledgebaseId: number): string => `k${knowledgebaseId}`;

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

interface PassageRow {
  document_id: number;
  document: string;
  position: number;
  headings: string;
  page: number | null;
  url: string | null;
  text: string;
}

function passageFromRow(row: PassageRow): Passage {
  return {
    documentId: row.document_id,
    document: row.document,
    chunk: row.position,
    headings: JSON.parse(row.headings) as string[],
    page: row.page,
    url: row.url,
    text: row.text,
  };
}

const PASSAGE = `c.id, c.document_id, d.name AS document, c.position, c.headings, c.page, c.url,
  c.text`;
/** Reciprocal rank fusion: keeps the first of one ranking from outweighing both. */
const FUSION_K = 60;

/** Ids in the order of both rankings together. */
function fused(rankings: number[][]): number[] {
  const scores = new Map<number, number>();
  for (const ids of rankings) {
    ids.forEach((id, index) => {
      scores.set(id, (scores.get(id) ?? 0) + 1 / (FUSION_K + index + 1));
    });
  }
  return [...scores].sort((one, other) => other[1] - one[1]).map(([id]) => id);
}

export function createSearch(db: Db): Pick<KnowledgebaseStore, "search" | "passages"> {
  // The join on the knowledgebase is what keeps tenants apart; the scope token makes it fast.
  const byWords = db.prepare<[object], { id: number }>(`
    SELECT c.id FROM chunk_index i
    JOIN chunks c ON c.id = i.rowid JOIN documents d ON d.id = c.document_id
    WHERE chunk_index MATCH @match AND c.knowledgebase_id = @knowledgebaseId
      AND d.status = 'active'
    ORDER BY bm25(chunk_index, 0.0, 2.0, 1.0), c.id LIMIT @rows`);
  const byMeaning = db.prepare<[object], { id: number }>(`
    SELECT c.id FROM chunk_vectors v
    JOIN chunks c ON c.id = v.chunk_id JOIN documents d ON d.id = c.document_id
    WHERE v.knowledgebase_id = @knowledgebaseId AND v.model = @model
      AND length(v.vector) = length(@vector) AND d.status = 'active'
    ORDER BY vec_distance_cosine(v.vector, @vector), c.id LIMIT @rows`);
  const one = db.prepare<[object], PassageRow>(`
    SELECT ${PASSAGE} FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.id = @id`);
  const passages = db.prepare<[object], PassageRow>(`
    SELECT ${PASSAGE} FROM chunks c JOIN documents d ON d.id = c.document_id
    WHERE c.knowledgebase_id = @knowledgebaseId AND d.status = 'active'
    ORDER BY c.document_id, c.position LIMIT @rows`);
  const idsByWords = (knowledgebaseId: number, query: string): number[] => {
    const match = matchOf(knowledgebaseId, query);
    if (match === null) return [];
    return byWords.all({ match, knowledgebaseId, rows: LIMITS.rankingRows }).map(({ id }) => id);
  };
  const idsByMeaning = (knowledgebaseId: number, { model, vector }: Meaning): number[] =>
    byMeaning.all({
      knowledgebaseId, model, vector: bytesOf(vector), rows: LIMITS.rankingRows,
    }).map(({ id }) => id);
  return {
    search: (knowledgebaseId, query, rows, meaning) => {
      const rankings = [idsByWords(knowledgebaseId, query)];
      if (meaning) rankings.push(idsByMeaning(knowledgebaseId, meaning));
      return fused(rankings).slice(0, rows)
        .map((id) => one.get({ id }))
        .filter((row) => row !== undefined)
        .map(passageFromRow);
    },
    passages: (knowledgebaseId, rows) =>
      passages.all({ knowledgebaseId, rows }).map(passageFromRow),
  };
}

export const bytesOf = (vector: Float32Array): Buffer =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
