-- Who holds a call in progress: the assistant, or a person with a microphone.
ALTER TABLE calls ADD COLUMN desk TEXT NOT NULL DEFAULT 'assistant'
  CHECK (desk IN ('assistant', 'person'));
ALTER TABLE calls ADD COLUMN desk_holder TEXT;
ALTER TABLE calls ADD COLUMN desk_holder_name TEXT;
ALTER TABLE calls ADD COLUMN desk_reason TEXT;
ALTER TABLE calls ADD COLUMN desk_at INTEGER;

-- What a person of the account said has its author; its speaker stays 'assistant', the account's
-- side, because widening a column's CHECK would make SQLite copy the table.
ALTER TABLE call_entries ADD COLUMN author TEXT;
