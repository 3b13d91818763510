-- Deliveries that were given up, few among all that an account has: they were looked for one by one.
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (account_id, id) WHERE state = 'dead';
