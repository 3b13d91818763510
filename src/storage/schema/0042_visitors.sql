-- Visitors whose id was signed by a site. The number is part of the secret, which changes with it;
-- 0: there is no secret.
ALTER TABLE assistants ADD COLUMN identity_number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assistants ADD COLUMN identity_changed_at INTEGER;

ALTER TABLE conversations ADD COLUMN visitor_id TEXT;
CREATE INDEX conversations_by_visitor ON conversations (assistant_id, visitor_id, id)
  WHERE visitor_id IS NOT NULL;
