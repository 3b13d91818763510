-- Files that nothing refers to any more, until they are removed, and files on their way to what
-- will refer to them: if that never happens, they are removed when due.
CREATE TABLE unwanted_files (
  name    TEXT    PRIMARY KEY,
  due_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX unwanted_files_by_time ON unwanted_files (due_at);
