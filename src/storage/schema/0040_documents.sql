-- Further kinds of documents, including texts written by hand. Chunks of a document below
-- `found_until` are searched; those from there on belong to a reading under way, and replace the
-- others when it is done.
ALTER TABLE documents ADD COLUMN kind TEXT NOT NULL DEFAULT 'txt';
UPDATE documents SET kind = type;
ALTER TABLE documents DROP COLUMN type;
ALTER TABLE documents RENAME COLUMN kind TO type;
ALTER TABLE documents ADD COLUMN found_until INTEGER NOT NULL DEFAULT 0;
UPDATE documents SET found_until = (
  SELECT coalesce(max(position), -1) + 1 FROM chunks WHERE document_id = documents.id
) WHERE status = 'active';

-- Kept apart from the documents, so that listing them need not read it.
CREATE TABLE document_texts (
  document_id  INTEGER PRIMARY KEY REFERENCES documents (id),
  text         TEXT    NOT NULL
) STRICT;
