// The search index in PostgreSQL: words in a `tsvector`, ranked by BM25 in SQL; meaning by cosine
// similarity, computed here over a knowledgebase's vectors, which are cached while they are in use.
// No extension is needed: not every server has pgvector.
import { stemmer } from "stemmer";
import { LIMITS } from "#core/limits.ts";
import { plainTerms, plainWords, scopeOf as accountScope } from "#storage/search/message-search.ts";
import type { Hit, MessageSteps, SearchCommands, SearchIndex } from "#storage/search/search.ts";
import { aside, together, type Reader, type Sql } from "#storage/sql.ts";
import { termsOf, wordsOf } from "#storage/search/words.ts";

/** PostgreSQL stores positions up to this one, and words up to 2 KB. */
const PLACE_MAX = 16_383;
const WORD_CHARS_MAX = 100;

/** Words within these lengths in bytes are stemmed. */
const STEM_BYTES_MIN = 3;
const STEM_BYTES_MAX = 64;
/** Each non-ASCII byte is moved here, so that the stemmer treats it as one consonant. */
const BYTES_FROM = 0xe000;

/** The stem FTS5 computes for a word: Porter's algorithm on bytes instead of letters. */
function stemOf(word: string): string {
  const bytes = Buffer.from(word);
  if (bytes.length < STEM_BYTES_MIN || bytes.length > STEM_BYTES_MAX) return word;
  const letters = Array.from(bytes, (byte) => (byte < 0x80 ? byte : BYTES_FROM + byte));
  const stem = stemmer(String.fromCharCode(...letters));
  return Buffer.from(Array.from(stem, (letter) => letter.charCodeAt(0) % BYTES_FROM)).toString();
}

/** A word as it is indexed: without diacritics, and stemmed. */
const folded = (word: string): string =>
  stemOf(word.normalize("NFD").replaceAll(/\p{M}/gu, "")).slice(0, WORD_CHARS_MAX);

/** The word that marks every entry of a knowledgebase; no text has one like it. */
const scopeOf = (knowledgebaseId: number): string => `:${knowledgebaseId}`;

const quoted = (word: string): string => `'${word.replaceAll("'", "''").replaceAll("\\", "\\\\")}'`;

/** The text of a `tsvector`: each word with its positions; those of headings have weight A. */
function vectorOf(
  knowledgebaseId: number, headings: string[], text: string[],
): { words: string; length: number } {
  const places = new Map<string, string[]>();
  let place = 0;
  const put = (words: string[], weight: string): void => {
    for (const word of words) {
      place = Math.min(place + 1, PLACE_MAX);
      const known = places.get(word);
      if (known) known.push(`${place}${weight}`);
      else places.set(word, [`${place}${weight}`]);
    }
  };
  put(headings, "A");
  put(text, "");
  return {
    words: [
      quoted(scopeOf(knowledgebaseId)),
      ...[...places].map(([word, at]) => `${quoted(word)}:${at.join(",")}`),
    ].join(" "),
    length: headings.length + text.length + 1,
  };
}

/** The same constants as FTS5. */
const K1 = 1.2;
const B = 0.75;

const BY_WORDS = `
  WITH wanted AS (
    SELECT * FROM unnest(CAST(@stems AS TEXT[]), CAST(@prefixes AS BIGINT[]))
      WITH ORDINALITY AS wanted (stem, is_prefix, number)
  ), size AS (
    SELECT count(*) AS entries, avg(length) AS length FROM chunk_index
    WHERE knowledgebase_id = @knowledgebaseId
  ), hit AS MATERIALIZED (
    SELECT i.chunk_id, i.length, i.words FROM chunk_index i
    JOIN chunks c ON c.id = i.chunk_id JOIN documents d ON d.id = c.document_id
    WHERE i.words @@ CAST(@match AS tsquery) AND c.knowledgebase_id = @knowledgebaseId
      AND c.position < d.found_until
  ), counted AS (
    SELECT hit.chunk_id, hit.length, wanted.number, sum(
        (SELECT sum(CASE weight WHEN 'A' THEN 2 ELSE 1 END) FROM unnest(word.weights) AS weight)
      ) AS times
    FROM hit CROSS JOIN LATERAL unnest(hit.words) AS word (lexeme, places, weights)
    JOIN wanted ON CASE wanted.is_prefix WHEN 1 THEN starts_with(word.lexeme, wanted.stem)
      ELSE word.lexeme = wanted.stem END
    GROUP BY hit.chunk_id, hit.length, wanted.number
  ), weighed AS (
    SELECT number, greatest(ln((entries - hits + 0.5) / (hits + 0.5)), 0.000001) AS weight
    FROM (SELECT number, count(*) AS hits FROM counted GROUP BY number) AS found, size
  )
  SELECT chunk_id AS id, CAST(sum(weighed.weight * counted.times * (${K1} + 1)
      / (counted.times + ${K1} * (1 - ${B} + ${B} * counted.length / size.length)))
    AS DOUBLE PRECISION) AS score
  FROM counted JOIN weighed USING (number) CROSS JOIN size
  GROUP BY chunk_id ORDER BY score DESC, chunk_id LIMIT @rows`;

interface Kept {
  version: number;
  model: string;
  ids: number[];
  vectors: Float32Array[];
  bytes: number;
}

function vectorFrom(bytes: Buffer): Float32Array {
  const copy = new Uint8Array(bytes);
  return new Float32Array(copy.buffer);
}

function cosine(one: Float32Array, other: Float32Array): number {
  let product = 0;
  let oneSquared = 0;
  let otherSquared = 0;
  for (let index = 0; index < one.length; index += 1) {
    const [a = 0, b = 0] = [one[index], other[index]];
    product += a * b;
    oneSquared += a * a;
    otherSquared += b * b;
  }
  return product / Math.sqrt(oneSquared * otherSquared);
}

/** The cached vectors of knowledgebases, each valid while its version stays the same. */
function createVectors(sql: Sql) {
  const version = sql.prepare<object, { version: number }>(
    "SELECT version FROM knowledgebases WHERE id = @knowledgebaseId");
  const all = sql.prepare<object, { id: number; vector: Buffer }>(`
    SELECT c.id, v.vector FROM chunk_vectors v
    JOIN chunks c ON c.id = v.chunk_id JOIN documents d ON d.id = c.document_id
    WHERE v.knowledgebase_id = @knowledgebaseId AND v.model = @model AND c.position < d.found_until
    ORDER BY c.id`);
  const kept = new Map<number, Kept>();
  let bytes = 0;
  const forget = (knowledgebaseId: number): void => {
    bytes -= kept.get(knowledgebaseId)?.bytes ?? 0;
    kept.delete(knowledgebaseId);
  };
  return async (knowledgebaseId: number, model: string): Promise<Kept | null> => {
    const now = await version.get({ knowledgebaseId });
    const known = kept.get(knowledgebaseId);
    forget(knowledgebaseId);
    if (!now) return null;
    let entry = known;
    if (entry?.version !== now.version || entry.model !== model) {
      const rows = await all.all({ knowledgebaseId, model });
      const vectors = rows.map(({ vector }) => vectorFrom(vector));
      entry = {
        version: now.version, model, vectors, ids: rows.map(({ id }) => id),
        bytes: vectors.reduce((sum, { byteLength }) => sum + byteLength, 0),
      };
    }
    forget(knowledgebaseId);
    kept.set(knowledgebaseId, entry);
    bytes += entry.bytes;
    for (const oldest of kept.keys()) {
      if (bytes <= LIMITS.databaseVectorBytes || oldest === knowledgebaseId) break;
      forget(oldest);
    }
    return entry;
  };
}

export function createSearchIndex(reader: Reader): SearchIndex {
  const byWords = reader.prepare<object, Hit>(BY_WORDS);
  const vectorsOf = createVectors(reader);
  // A sum cannot be ordered by an index: to spare the sort, PostgreSQL would look for a word that
  // few messages have in all of them, from the newest on.
  const byMessage = aside<object, { id: number }>(reader, `
    SELECT DISTINCT conversation_id AS id FROM (
      SELECT conversation_id FROM message_index WHERE words @@ CAST(@match AS tsquery)
      ORDER BY message_id + 0 DESC LIMIT (@rows + 0)
    ) AS hit`);
  return {
    words: async (knowledgebaseId, query, rows) => {
      const wanted = termsOf(query).flatMap(({ word, isPrefix }) => {
        const stem = folded(word);
        return isPrefix ? [{ stem, prefix: 0 }, { stem, prefix: 1 }] : [{ stem, prefix: 0 }];
      });
      if (wanted.length === 0) return [];
      const either = wanted.map(({ stem, prefix }) => `${quoted(stem)}${prefix ? ":*" : ""}`);
      return byWords.all({
        knowledgebaseId, rows, match: `${quoted(scopeOf(knowledgebaseId))} & (${either.join(" | ")})`,
        stems: wanted.map(({ stem }) => stem), prefixes: wanted.map(({ prefix }) => prefix),
      });
    },
    meaning: async (knowledgebaseId, { model, vector }, rows) => {
      const kept = await vectorsOf(knowledgebaseId, model);
      if (!kept) return [];
      return kept.ids
        .map((id, index) => ({ id, near: kept.vectors[index] }))
        .filter(({ near }) => near?.length === vector.length)
        .map(({ id, near }) => ({ id, score: cosine(near as Float32Array, vector) }))
        .sort((one, other) => other.score - one.score || one.id - other.id)
        .slice(0, rows);
    },
    conversations: async (accountId, query, rows) => {
      const terms = plainTerms(query);
      if (terms.length === 0) return [];
      const all = terms.map(({ word, isPrefix }) => `${quoted(word)}${isPrefix ? ":*" : ""}`);
      const match = [quoted(accountScope(accountId)), ...all].join(" & ");
      return (await byMessage.all({ accountId, match, rows })).map(({ id }) => id);
    },
  };
}

export function createSearchCommands(sql: Sql): SearchCommands {
  const insert = sql.prepare(`
    INSERT INTO chunk_index (chunk_id, knowledgebase_id, length, words)
    VALUES (@id, @knowledgebaseId, @length, CAST(@words AS tsvector))`);
  const remove = sql.prepare(`
    DELETE FROM chunk_index WHERE chunk_id IN (
      SELECT id FROM chunks
      WHERE document_id = @documentId AND position >= @first AND position < @end)`);
  return {
    index: async (chunks) => {
      await together(...chunks.map(({ id, knowledgebaseId, headings, text }) => insert.run({
        id, knowledgebaseId,
        ...vectorOf(
          knowledgebaseId, wordsOf(headings.join("\n")).map(folded), wordsOf(text).map(folded)),
      })));
    },
    forget: async (chunks) => {
      await remove.run(chunks);
    },
    ...createMessageIndex(sql),
  };
}

function createMessageIndex(sql: Sql): MessageSteps {
  const insert = sql.prepare(`
    INSERT INTO message_index (message_id, conversation_id, words)
    SELECT id, conversation_id, CAST(words AS tsvector) FROM unnest(
      CAST(@ids AS BIGINT[]), CAST(@conversations AS BIGINT[]), CAST(@words AS TEXT[])
    ) AS entry (id, conversation_id, words)`);
  const forget = sql.prepare(`
    DELETE FROM message_index WHERE message_id IN (
      SELECT id FROM messages WHERE conversation_id = @conversationId)`);
  // Deleting millions of rows one by one would take longer than a statement may.
  const clear = sql.prepare("TRUNCATE message_index");
  const transactions = sql.prepare<object, { own: number; oldest: number }>(`
    SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) AS own,
      CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS oldest`);
  return {
    // A subquery instead of a join: only the few messages after `settled` are looked up this way.
    isMissing: (id) => `(SELECT i.message_id FROM message_index i WHERE i.message_id = ${id}) IS NULL`,
    indexMessages: async (messages) => {
      if (messages.length === 0) return;
      await insert.run({
        ids: messages.map(({ id }) => id),
        conversations: messages.map(({ conversationId }) => conversationId),
        words: messages.map(({ accountId, text }) =>
          [accountScope(accountId), ...plainWords(text)].map(quoted).join(" ")),
      });
    },
    clearMessages: async () => {
      await clear.run({});
    },
    forgetMessages: async (conversationId) => {
      await forget.run({ conversationId });
    },
    transactions: async () => transactions.one({}),
  };
}
