// Passages of documents: search results, fused from two rankings, and all passages in reading
// order. Called by knowledgebases.ts.
import type {
  FoundPassage, KnowledgebaseStore, Passage,
} from "#features/knowledgebases/knowledgebases.ts";
import { LIMITS } from "#core/limits.ts";
import type { Hit, SearchIndex } from "#storage/search/search.ts";
import { together, type Reader } from "#storage/sql.ts";

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

const PASSAGE = `SELECT c.id, c.document_id, d.name AS document, c.position, c.headings, c.page, c.url,
  c.text FROM chunks c JOIN documents d ON d.id = c.document_id`;
/** Reciprocal rank fusion: keeps the top of one ranking from outweighing a hit in both. */
const FUSION_K = 60;

type Place = FoundPassage["words"];

/** The rank of each hit. */
const placesOf = (hits: Hit[]): Map<number, NonNullable<Place>> =>
  new Map(hits.map(({ id, score }, index) => [id, { place: index + 1, score }]));

interface Ranked {
  id: number;
  score: number;
  words: Place;
  meaning: Place;
}

/** Fuses the rankings; a hit that is first in all of them has the score 1. */
function fused(byWords: Hit[], byMeaning: Hit[] | null): Ranked[] {
  const words = placesOf(byWords);
  const meaning = placesOf(byMeaning ?? []);
  const best = (byMeaning ? 2 : 1) / (FUSION_K + 1);
  const share = (place: Place): number => (place ? 1 / (FUSION_K + place.place) : 0);
  return [...new Set([...words.keys(), ...meaning.keys()])]
    .map((id) => ({ id, words: words.get(id) ?? null, meaning: meaning.get(id) ?? null }))
    .map((one) => ({ ...one, score: (share(one.words) + share(one.meaning)) / best }))
    .sort((one, other) => other.score - one.score);
}

export function createPassages(
  reader: Reader, index: SearchIndex,
): Pick<KnowledgebaseStore, "search" | "passages" | "chunks" | "textOf"> {
  const one = reader.prepare<object, PassageRow>(`${PASSAGE} WHERE c.id = @id`);
  const passages = reader.prepare<object, PassageRow>(`${PASSAGE}
    WHERE c.knowledgebase_id = @knowledgebaseId AND c.position < d.found_until
    ORDER BY c.document_id, c.position LIMIT @rows`);
  const chunks = reader.prepare<object, PassageRow>(`${PASSAGE}
    WHERE c.document_id = @documentId AND c.position < d.found_until
    ORDER BY c.position LIMIT @rows OFFSET @offset`);
  const total = reader.prepare<object, { total: number }>(`
    SELECT count(*) AS total FROM chunks c JOIN documents d ON d.id = c.document_id
    WHERE c.document_id = @documentId AND c.position < d.found_until`);
  const text = reader.prepare<object, { text: string }>(
    "SELECT text FROM document_texts WHERE document_id = @documentId");
  return {
    search: async (knowledgebaseId, query, rows, meaning) => {
      const [words, near] = await Promise.all([
        index.words(knowledgebaseId, query, LIMITS.rankingRows),
        meaning ? index.meaning(knowledgebaseId, meaning, LIMITS.rankingRows) : null,
      ]);
      const ranked = fused(words, near).slice(0, rows);
      const found = await together(...ranked.map(({ id }) => one.get({ id })));
      return ranked.flatMap(({ score, words, meaning }, place) => {
        const row = found[place];
        return row ? [{ ...passageFromRow(row), score, words, meaning }] : [];
      });
    },
    chunks: async (documentId, offset, rows) => ({
      total: (await total.one({ documentId })).total,
      items: (await chunks.all({ documentId, offset, rows })).map(passageFromRow),
    }),
    textOf: async (documentId) => (await text.get({ documentId }))?.text ?? null,
    passages: async (knowledgebaseId, rows) =>
      (await passages.all({ knowledgebaseId, rows })).map(passageFromRow),
  };
}
