-- What the carrier charges for a minute of the call, in micro-dollars, as known when it was answered.
ALTER TABLE calls ADD COLUMN carrier_price_per_minute INTEGER NOT NULL DEFAULT 0;
