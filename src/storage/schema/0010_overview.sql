-- What an account spent and did, day by day. The ledger's holds all that is summed, so that its
-- rows stay unread.
CREATE INDEX ledger_by_time ON ledger (account_id, created_at, kind, amount_micros);
CREATE INDEX calls_by_time ON calls (account_id, created_at);
CREATE INDEX conversations_by_time ON conversations (account_id, created_at);
