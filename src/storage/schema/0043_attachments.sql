-- Files visitors have attached. They are named without a reference, because a file outlives its
-- conversation until it is removed; `sent_at`: it stands in a message.
CREATE TABLE attachments (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid             TEXT    NOT NULL UNIQUE,
  account_id       INTEGER NOT NULL REFERENCES accounts (id),
  conversation_id  INTEGER NOT NULL,
  name             TEXT    NOT NULL,
  type             TEXT    NOT NULL,
  bytes            INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  sent_at          INTEGER
) STRICT;
CREATE INDEX attachments_by_conversation ON attachments (conversation_id, id);
CREATE INDEX attachments_unsent ON attachments (created_at) WHERE sent_at IS NULL;

-- Those of the message as JSON, so that whoever reads the message need not look elsewhere.
ALTER TABLE messages ADD COLUMN attachments TEXT;
