-- The last ids given: they are not reused even though their rows are gone.
CREATE TABLE last_ids (
  name  TEXT     PRIMARY KEY,
  id    INTEGER  NOT NULL
) STRICT;
INSERT INTO last_ids (name, id) SELECT 'folders', coalesce(max(id), 0) FROM folders;
INSERT INTO last_ids (name, id) SELECT 'labels', coalesce(max(id), 0) FROM labels;
