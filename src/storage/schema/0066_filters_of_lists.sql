-- The index a list is read along contains its filter columns: before, a filter that matches few
-- rows read each call or delivery of the account in full.
DROP INDEX calls_by_account;
CREATE INDEX calls_by_account ON calls
  (account_id, id, status, type, assistant_id, campaign_id, created_at, customer_phone);
DROP INDEX webhook_deliveries_by_account;
CREATE INDEX webhook_deliveries_by_account ON webhook_deliveries
  (account_id, id, type, endpoint_id, state);
DROP INDEX webhook_deliveries_dead;
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (account_id, id, type, endpoint_id)
  WHERE state = 'dead';
-- Entries other than messages; those are the bulk of the ledger, and cost nothing more here.
CREATE INDEX ledger_of_kind ON ledger (account_id, kind, number, created_at)
  WHERE kind <> 'message';
