-- The newest problem an account's visitors met: shown to its owner until it is dealt with.
ALTER TABLE accounts ADD COLUMN trouble_at INTEGER;
ALTER TABLE accounts ADD COLUMN trouble_reason TEXT;
ALTER TABLE accounts ADD COLUMN trouble_conversation TEXT;
