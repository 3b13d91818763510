-- Who holds a conversation: the assistant, the assistant while the visitor waits for a person, or a
-- person. Replaces the AI switch; a conversation switched off is held by an unnamed person.
ALTER TABLE conversations ADD COLUMN desk TEXT NOT NULL DEFAULT 'assistant'
  CHECK (desk IN ('assistant', 'waiting', 'person'));
ALTER TABLE conversations ADD COLUMN desk_holder TEXT;
ALTER TABLE conversations ADD COLUMN desk_holder_name TEXT;
ALTER TABLE conversations ADD COLUMN desk_reason TEXT;
ALTER TABLE conversations ADD COLUMN desk_at INTEGER;
UPDATE conversations SET desk = 'person', desk_reason = 'taken_over', desk_at = updated_at
  WHERE ai_enabled = 0;
ALTER TABLE conversations DROP COLUMN ai_enabled;
CREATE INDEX conversations_at_desk ON conversations (account_id, desk, desk_at)
  WHERE desk <> 'assistant';

-- A message with an author was written by a person of the account. Its role stays 'assistant', the
-- account's side: to widen the CHECK of a column, SQLite would have to copy the table.
ALTER TABLE messages ADD COLUMN author TEXT;
ALTER TABLE messages ADD COLUMN idempotency_key TEXT;
CREATE UNIQUE INDEX messages_by_key ON messages (conversation_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;

-- Notes that only the account reads; one without an author is the assistant's.
CREATE TABLE conversation_notes (
  id               INTEGER PRIMARY KEY,
  account_id       INTEGER NOT NULL REFERENCES accounts (id),
  conversation_id  INTEGER NOT NULL REFERENCES conversations (id),
  author           TEXT,
  text             TEXT    NOT NULL,
  created_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX conversation_notes_by_conversation ON conversation_notes (conversation_id, id);
