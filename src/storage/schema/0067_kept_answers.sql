-- Answers to requests with an Idempotency-Key, given again until they expire. `name` is made of
-- the sender, the request's route and its key; `request` is a hash of what was asked.
CREATE TABLE kept_answers (
  name        TEXT    PRIMARY KEY,
  account_id  INTEGER NOT NULL,
  request     TEXT    NOT NULL,
  -- Null until the request has ended: it is being handled, or was interrupted.
  status      INTEGER,
  sealed      TEXT,
  expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_answers_by_end ON kept_answers (expires_at);
CREATE INDEX kept_answers_of_account ON kept_answers (account_id, expires_at);
