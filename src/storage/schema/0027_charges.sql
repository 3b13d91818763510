-- An open turn is its own reservation. An event that was paid for names its ledger entry and also
-- stands for the balance change, under the account's next number.
DELETE FROM reservations WHERE substr(reference, 1, 5) = 'turn:';
ALTER TABLE events RENAME TO events_before;
CREATE TABLE events (
  id                INTEGER PRIMARY KEY,
  account_id        INTEGER NOT NULL,
  account_sequence  INTEGER NOT NULL,
  conversation_id   INTEGER,
  call_id           INTEGER,
  sequence          INTEGER NOT NULL,
  ledger_number     INTEGER,
  created_at        INTEGER NOT NULL,
  type              TEXT    NOT NULL,
  data              TEXT    NOT NULL
) STRICT;
INSERT INTO events (id, account_id, account_sequence, conversation_id, call_id, sequence, created_at, type, data)
  SELECT id, account_id, account_sequence, conversation_id, call_id, sequence, created_at, type, data FROM events_before;
DROP TABLE events_before;
CREATE UNIQUE INDEX events_by_account ON events (account_id, account_sequence);
CREATE UNIQUE INDEX events_by_conversation ON events (conversation_id, sequence)
  WHERE conversation_id IS NOT NULL;
CREATE UNIQUE INDEX events_by_call ON events (call_id, sequence) WHERE call_id IS NOT NULL;
