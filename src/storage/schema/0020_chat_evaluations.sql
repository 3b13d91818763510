-- The model's evaluation of a conversation, by its assistant's schema, and the end that an
-- evaluation is due for.
ALTER TABLE conversations ADD COLUMN evaluation TEXT;
ALTER TABLE conversations ADD COLUMN evaluation_error TEXT;
ALTER TABLE conversations ADD COLUMN evaluation_due INTEGER;
CREATE INDEX conversations_to_evaluate ON conversations (id) WHERE evaluation_due IS NOT NULL;
UPDATE conversations SET evaluation_due = updated_at WHERE uuid IN (
  SELECT conversation_uuid FROM webhook_deliveries WHERE needs_evaluation = 1 AND state = 'pending');
