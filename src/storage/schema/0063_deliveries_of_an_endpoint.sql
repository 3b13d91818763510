-- All deliveries of an endpoint, which are deleted with it: before, those without a conversation
-- were found by scanning everybody's.
DROP INDEX webhook_deliveries_of_conversation;
CREATE INDEX webhook_deliveries_of_conversation
  ON webhook_deliveries (endpoint_id, conversation_uuid);
-- Finished deliveries past their retention, which is longer for dead ones than for delivered ones.
DROP INDEX webhook_deliveries_finished;
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (state, finished_at)
  WHERE finished_at IS NOT NULL;
