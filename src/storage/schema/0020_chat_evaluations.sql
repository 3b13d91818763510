-- What the model found a conversation to have been, by the schema of its assistant, and the moment of
-- the end that waits for it.
ALTER TABLE conversations ADD COLUMN evaluation TEXT;
ALTER TABLE conversations ADD COLUMN evaluation_error TEXT;
ALTER TABLE conversations ADD COLUMN evaluation_due INTEGER;
CREATE INDEX conversations_to_evaluate ON conversations (id) WHERE evaluation_due IS NOT NULL;
UPDATE conversations SET evaluation_due = updated_at WHERE uuid IN (
  SELECT conversation_uuid FROM webhook_deliveries WHERE needs_evaluation = 1 AND state = 'pending');
