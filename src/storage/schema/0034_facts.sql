-- only postgres
-- What all processes that use the database must agree on. A file has one process, so needs none.
CREATE TABLE facts (
  name   TEXT PRIMARY KEY,
  value  TEXT NOT NULL
);
-- end
