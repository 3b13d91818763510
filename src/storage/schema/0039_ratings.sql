-- Visitors' ratings: 1 or -1 for a reply, 1 to 5 for a conversation, with an optional comment.
ALTER TABLE messages ADD COLUMN rating INTEGER;
ALTER TABLE conversations ADD COLUMN score INTEGER;
ALTER TABLE conversations ADD COLUMN score_comment TEXT;
ALTER TABLE conversations ADD COLUMN scored_at INTEGER;
