CREATE TABLE tools (
  -- Never given twice: settings of assistants name tools that may be gone.
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid         TEXT    NOT NULL UNIQUE,
  account_id   INTEGER NOT NULL REFERENCES accounts (id),
  name         TEXT    NOT NULL,
  description  TEXT    NOT NULL,
  endpoint     TEXT    NOT NULL,
  method       TEXT    NOT NULL CHECK (method IN ('GET', 'POST', 'PUT', 'PATCH', 'DELETE')),
  timeout_s    INTEGER NOT NULL,
  -- Sealed, bound to the uuid.
  headers      TEXT    NOT NULL,
  schema       TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX tools_by_account ON tools (account_id, id);

-- Requests to an endpoint and their results. The row is written before the request is sent.
CREATE TABLE tool_calls (
  id           INTEGER PRIMARY KEY,
  -- Where the call happened, e.g. 'turn:17'; identical calls there have one effect.
  scope        TEXT    NOT NULL,
  call_key     TEXT    NOT NULL,
  account_id   INTEGER NOT NULL,
  tool_id      INTEGER NOT NULL,
  -- 'sent': on its way, or its process died; 'unsent': the endpoint has certainly not seen it.
  state        TEXT    NOT NULL CHECK (state IN ('sent', 'done', 'unsent')),
  result       TEXT,
  created_at   INTEGER NOT NULL,
  finished_at  INTEGER,
  UNIQUE (scope, call_key)
) STRICT;
CREATE INDEX tool_calls_by_age ON tool_calls (created_at);

CREATE TABLE knowledgebases (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id   INTEGER NOT NULL REFERENCES accounts (id),
  name         TEXT    NOT NULL,
  description  TEXT,
  -- Incremented whenever search results in it may change.
  version      INTEGER NOT NULL DEFAULT 0,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX knowledgebases_by_account ON knowledgebases (account_id, id);

CREATE TABLE documents (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id        INTEGER NOT NULL REFERENCES accounts (id),
  knowledgebase_id  INTEGER NOT NULL REFERENCES knowledgebases (id),
  name              TEXT    NOT NULL,
  description       TEXT,
  type              TEXT    NOT NULL CHECK (type IN ('website', 'pdf', 'txt', 'docx')),
  -- What to read, as JSON: a file of the upload folder, or the addresses.
  source            TEXT    NOT NULL,
  status            TEXT    NOT NULL CHECK (status IN ('processing', 'active', 'failed')),
  -- Why it failed, in words for its owner.
  reason            TEXT,
  pages             INTEGER NOT NULL DEFAULT 0,
  characters        INTEGER NOT NULL DEFAULT 0,
  attempts          INTEGER NOT NULL DEFAULT 0,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX documents_by_knowledgebase ON documents (knowledgebase_id, id);
CREATE INDEX documents_processing ON documents (id) WHERE status = 'processing';

CREATE TABLE chunks (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  knowledgebase_id  INTEGER NOT NULL,
  document_id       INTEGER NOT NULL REFERENCES documents (id),
  position          INTEGER NOT NULL,
  headings          TEXT    NOT NULL,
  text              TEXT    NOT NULL,
  page              INTEGER,
  url               TEXT
) STRICT;
CREATE UNIQUE INDEX chunks_by_document ON chunks (document_id, position);
CREATE INDEX chunks_by_knowledgebase ON chunks (knowledgebase_id, document_id, position);

-- only sqlite
-- `scope` holds one token per knowledgebase, so that a search never leaves its own.
CREATE VIRTUAL TABLE chunk_index USING fts5 (
  scope, headings, text, content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
-- end
-- only postgres
-- `words` holds one word per knowledgebase, so that a search stays within one; words of headings
-- have weight A. `length` counts all words, for BM25.
CREATE TABLE chunk_index (
  chunk_id          INTEGER  PRIMARY KEY REFERENCES chunks (id),
  knowledgebase_id  INTEGER  NOT NULL,
  length            INTEGER  NOT NULL,
  words             tsvector NOT NULL
);
CREATE INDEX chunk_index_words ON chunk_index USING gin (words);
CREATE INDEX chunk_index_by_knowledgebase ON chunk_index (knowledgebase_id, length);
-- end
