-- What a node reports about itself with each heartbeat, for people who look at all of them.
ALTER TABLE nodes ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN streams INTEGER NOT NULL DEFAULT 0;
