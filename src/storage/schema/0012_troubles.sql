-- The newest trouble an account's visitors had: shown to its owner until it is seen to.
ALTER TABLE accounts ADD COLUMN trouble_at INTEGER;
ALTER TABLE accounts ADD COLUMN trouble_reason TEXT;
ALTER TABLE accounts ADD COLUMN trouble_conversation TEXT;
