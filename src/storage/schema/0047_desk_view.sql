-- A small picture of each person, which visitors see while that person answers.
CREATE TABLE avatars (
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  person      TEXT    NOT NULL,
  image       TEXT    NOT NULL,
  PRIMARY KEY (account_id, person)
) STRICT, WITHOUT ROWID;

-- Where the visitor was when the chat began: URL up to the path, and title.
ALTER TABLE conversations ADD COLUMN page TEXT;
