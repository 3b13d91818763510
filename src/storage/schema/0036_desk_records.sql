-- Account labels on conversations, like those on assistants.
CREATE TABLE conversation_labels (
  conversation_id  INTEGER NOT NULL REFERENCES conversations (id),
  label_id         INTEGER NOT NULL REFERENCES labels (id),
  PRIMARY KEY (conversation_id, label_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_labels_by_label ON conversation_labels (label_id, conversation_id);

-- Up to when each side has read: the visitor, and each person of the account.
ALTER TABLE conversations ADD COLUMN visitor_read_at INTEGER;
CREATE TABLE conversation_reads (
  conversation_id  INTEGER NOT NULL REFERENCES conversations (id),
  person           TEXT    NOT NULL,
  read_at          INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, person)
) STRICT, WITHOUT ROWID;

-- Requests to be called or written to; a conversation has one open at a time.
CREATE TABLE callbacks (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id       INTEGER NOT NULL REFERENCES accounts (id),
  conversation_id  INTEGER NOT NULL REFERENCES conversations (id),
  name             TEXT    NOT NULL,
  phone            TEXT,
  email            TEXT,
  wish             TEXT,
  wanted_time      TEXT,
  created_at       INTEGER NOT NULL,
  done_at          INTEGER,
  done_by          TEXT
) STRICT;
CREATE UNIQUE INDEX callbacks_open ON callbacks (conversation_id) WHERE done_at IS NULL;
CREATE INDEX callbacks_by_conversation ON callbacks (conversation_id, id);
