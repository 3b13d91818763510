-- The words of messages, for searches in the inbox. They are indexed after a message's commit, in
-- batches, and so are messages older than this table. Every message up to `settled` is indexed,
-- later ones in part. See storage/search/message-search.ts for the other two columns.
CREATE TABLE message_index_state (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  settled  INTEGER NOT NULL,
  seen     INTEGER,
  horizon  INTEGER
) STRICT;
INSERT INTO message_index_state (id, settled) VALUES (1, 0);
-- only sqlite
-- Each entry has one token for its account, so that a search never leaves its own.
CREATE VIRTUAL TABLE message_index USING fts5 (
  words, content = '', contentless_delete = 1, detail = none,
  tokenize = "unicode61 remove_diacritics 0 tokenchars ':'"
);
-- end
-- only postgres
CREATE TABLE message_index (
  message_id       INTEGER  PRIMARY KEY,
  conversation_id  INTEGER  NOT NULL,
  words            tsvector NOT NULL
);
CREATE INDEX message_index_words ON message_index USING gin (words);
-- end
