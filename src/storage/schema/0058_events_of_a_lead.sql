-- Events and deliveries about a lead are blanked or deleted with it.
ALTER TABLE events ADD COLUMN lead_id INTEGER;
ALTER TABLE webhook_deliveries ADD COLUMN lead_id INTEGER;
-- only sqlite
UPDATE events SET lead_id = CAST(substr(data, instr(data, '"lead_id":') + 10) AS INTEGER)
  WHERE type = 'lead_status_changed';
UPDATE webhook_deliveries SET lead_id = CAST(substr(body, instr(body, '"lead_id":') + 10) AS INTEGER)
  WHERE type = 'lead_status_changed';
-- end
-- only postgres
UPDATE events SET lead_id = CAST(substring(data FROM '"lead_id":([0-9]+)') AS BIGINT)
  WHERE type = 'lead_status_changed';
UPDATE webhook_deliveries SET lead_id = CAST(substring(body FROM '"lead_id":([0-9]+)') AS BIGINT)
  WHERE type = 'lead_status_changed';
-- end
CREATE INDEX events_of_lead ON events (lead_id) WHERE lead_id IS NOT NULL;
CREATE INDEX webhook_deliveries_of_lead ON webhook_deliveries (lead_id) WHERE lead_id IS NOT NULL;
