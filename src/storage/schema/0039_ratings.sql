-- What visitors thought: 1 or -1 of a reply, 1 to 5 of a conversation, with a comment where they left one.
ALTER TABLE messages ADD COLUMN rating INTEGER;
ALTER TABLE conversations ADD COLUMN score INTEGER;
ALTER TABLE conversations ADD COLUMN score_comment TEXT;
ALTER TABLE conversations ADD COLUMN scored_at INTEGER;
