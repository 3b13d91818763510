-- Dead deliveries, a few among all that an account has: before, they were found by scanning all.
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (account_id, id) WHERE state = 'dead';
