-- Figures of an account by day. The ledger's index covers all columns that are summed, so that its
-- rows are not read.
CREATE INDEX ledger_by_time ON ledger (account_id, created_at, kind, amount_micros);
CREATE INDEX calls_by_time ON calls (account_id, created_at);
CREATE INDEX conversations_by_time ON conversations (account_id, created_at);
