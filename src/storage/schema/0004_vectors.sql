-- Embeddings of chunks, for search by meaning beside search by words; only filled while an
-- embeddings server is configured.
CREATE TABLE chunk_vectors (
  chunk_id          INTEGER PRIMARY KEY REFERENCES chunks (id),
  knowledgebase_id  INTEGER NOT NULL,
  model             TEXT    NOT NULL,
  -- 32-bit floats, little-endian.
  vector            BLOB    NOT NULL
) STRICT;
CREATE INDEX chunk_vectors_by_knowledgebase ON chunk_vectors (knowledgebase_id, model);
