-- Files attached by visitors. No foreign key, because a file outlives its conversation until it is
-- removed; `sent_at`: when it was sent with a message.
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

-- The message's attachments as JSON, so that reading a message needs no other table.
ALTER TABLE messages ADD COLUMN attachments TEXT;
