-- The audio quality of a call: jitter, loss, delay and scores derived from them (JSON).
ALTER TABLE calls ADD COLUMN quality TEXT;
