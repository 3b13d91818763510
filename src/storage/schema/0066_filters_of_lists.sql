-- What lists are narrowed by stands in the index that they are read along: a filter that few match
-- looked at each call or delivery that an account has, with all that is in it.
DROP INDEX calls_by_account;
CREATE INDEX calls_by_account ON calls
  (account_id, id, status, type, assistant_id, campaign_id, created_at, customer_phone);
DROP INDEX webhook_deliveries_by_account;
CREATE INDEX webhook_deliveries_by_account ON webhook_deliveries
  (account_id, id, type, endpoint_id, state);
DROP INDEX webhook_deliveries_dead;
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (account_id, id, type, endpoint_id)
  WHERE state = 'dead';
-- Entries other than of messages, which are most: these cost nothing more.
CREATE INDEX ledger_of_kind ON ledger (account_id, kind, number, created_at)
  WHERE kind <> 'message';
