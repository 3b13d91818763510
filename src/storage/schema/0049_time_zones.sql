-- Where an account's days begin and end, as IANA calls it; null: nobody has chosen, so UTC.
ALTER TABLE accounts ADD COLUMN time_zone TEXT;
