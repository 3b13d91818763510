-- only sqlite
-- For a list of more than two values in a CHECK, SQLite builds a table and throws it away at every
-- write of the row: a tenth of a charge's cost. The same states, compared one by one.
CREATE TABLE turns_now (
  id                INTEGER PRIMARY KEY,
  conversation_id   INTEGER NOT NULL,
  state             TEXT    NOT NULL CHECK (
    state = 'open' OR state = 'done' OR state = 'stored' OR state = 'stopped'
    OR state = 'failed' OR state = 'interrupted'
  ),
  idempotency_key   TEXT,
  request_hash      TEXT,
  user_sequence     INTEGER NOT NULL,
  reply_message_id  INTEGER,
  price_micros      INTEGER NOT NULL,
  error             TEXT,
  -- When the present attempt began: a failed turn may be tried again under its key.
  begun_at          INTEGER NOT NULL,
  finished_at       INTEGER,
  failure           TEXT,
  node_id           INTEGER
) STRICT;
INSERT INTO turns_now (id, conversation_id, state, idempotency_key, request_hash, user_sequence,
    reply_message_id, price_micros, error, begun_at, finished_at, failure, node_id)
  SELECT id, conversation_id, state, idempotency_key, request_hash, user_sequence,
    reply_message_id, price_micros, error, begun_at, finished_at, failure, node_id FROM turns;
DROP TABLE turns;
ALTER TABLE turns_now RENAME TO turns;
CREATE UNIQUE INDEX turns_by_key ON turns (conversation_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX turns_one_open ON turns (conversation_id) WHERE state = 'open';
CREATE INDEX turns_failed ON turns (conversation_id, id) WHERE state = 'failed';
-- end
