-- Settings of the assistant that had no effect on this server when the call was answered (JSON).
ALTER TABLE calls ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
