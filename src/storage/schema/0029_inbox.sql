-- The inbox lists open conversations; canned replies are texts people have ready.
CREATE INDEX conversations_open ON conversations (account_id, id) WHERE state = 'open';
CREATE TABLE canned_replies (
  id          INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  shortcut    TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX canned_replies_by_shortcut ON canned_replies (account_id, shortcut);
