-- only postgres
-- What every process that uses the database has to agree on. A file has one process, which needs none.
CREATE TABLE facts (
  name   TEXT PRIMARY KEY,
  value  TEXT NOT NULL
);
-- end
