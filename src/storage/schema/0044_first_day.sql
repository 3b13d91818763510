-- An account's first steps: which document was found first, and whether people still want to see
-- the steps.
CREATE TABLE first_steps (
  account_id    INTEGER PRIMARY KEY REFERENCES accounts (id),
  dismissed_at  INTEGER,
  found_at      INTEGER,
  found         TEXT
) STRICT;

-- What was made from a template, to be removed together; null: gone already.
CREATE TABLE template_sets (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id        INTEGER NOT NULL REFERENCES accounts (id),
  template          TEXT    NOT NULL,
  assistant_id      INTEGER NOT NULL,
  knowledgebase_id  INTEGER,
  tool_id           INTEGER,
  call_id           INTEGER,
  created_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX template_sets_by_account ON template_sets (account_id, id);

-- Saved lists: filters and columns, as in the page's address.
CREATE TABLE saved_views (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  list        TEXT    NOT NULL,
  name        TEXT    NOT NULL,
  query       TEXT    NOT NULL,
  created_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX saved_views_by_name ON saved_views (account_id, list, name);
