-- The IANA time zone of an account's days; null: none chosen, so UTC.
ALTER TABLE accounts ADD COLUMN time_zone TEXT;
