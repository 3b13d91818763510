-- A call asked for again under its Idempotency-Key is the one created before.
ALTER TABLE calls ADD COLUMN idempotency_key TEXT;
CREATE UNIQUE INDEX calls_by_key ON calls (account_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
