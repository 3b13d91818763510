-- All deliveries of an endpoint, which go with it: the ones of no conversation were looked for among
-- those of everybody.
DROP INDEX webhook_deliveries_of_conversation;
CREATE INDEX webhook_deliveries_of_conversation
  ON webhook_deliveries (endpoint_id, conversation_uuid);
-- Those that are past their time, of which one that was given up has more than one that was taken.
DROP INDEX webhook_deliveries_finished;
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (state, finished_at)
  WHERE finished_at IS NOT NULL;
