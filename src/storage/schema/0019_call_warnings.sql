-- Settings of the assistant that did not act on this server when the call was answered (JSON).
ALTER TABLE calls ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
