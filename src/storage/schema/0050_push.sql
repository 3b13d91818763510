-- Browsers that are notified when somebody waits for a person: the push service's endpoint for
-- each, and its keys.
CREATE TABLE push_subscriptions (
  id          INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  -- The id of an author.
  person      TEXT    NOT NULL,
  endpoint    TEXT    NOT NULL,
  public_key  TEXT    NOT NULL,
  auth        TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  UNIQUE (account_id, endpoint)
) STRICT;
CREATE INDEX push_subscriptions_by_person ON push_subscriptions (account_id, person, id);
