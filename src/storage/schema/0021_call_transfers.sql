-- Each transfer that was tried: to whom, how, when, and what became of it (JSON).
ALTER TABLE calls ADD COLUMN transfers TEXT NOT NULL DEFAULT '[]';
