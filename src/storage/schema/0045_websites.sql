-- Websites that are read again on a timetable, and what is known of their pages since the last
-- reading, as JSON, so that only changes are read.
ALTER TABLE documents ADD COLUMN reread_hours INTEGER;
ALTER TABLE documents ADD COLUMN ignore_robots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN read_at INTEGER;
ALTER TABLE documents ADD COLUMN next_read_at INTEGER;
CREATE INDEX documents_by_next_read ON documents (next_read_at) WHERE next_read_at IS NOT NULL;

CREATE TABLE document_sites (
  document_id  INTEGER PRIMARY KEY REFERENCES documents (id),
  pages        TEXT    NOT NULL
) STRICT;
