-- Deliveries about a call are deleted with it.
CREATE INDEX webhook_deliveries_of_call ON webhook_deliveries (call_id)
  WHERE call_id IS NOT NULL;
