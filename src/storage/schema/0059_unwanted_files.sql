-- Files that nothing names any more, until they are removed, and those that are on their way to what
-- will name them: should that never come, they are removed once they are due.
CREATE TABLE unwanted_files (
  name    TEXT    PRIMARY KEY,
  due_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX unwanted_files_by_time ON unwanted_files (due_at);
