-- A reply that ended at its bound, and what the models counted for it; null where they count nothing.
ALTER TABLE messages ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN input_tokens INTEGER;
ALTER TABLE messages ADD COLUMN output_tokens INTEGER;

-- Which class of failure the public was told; `error` is the owner's text.
ALTER TABLE turns ADD COLUMN failure TEXT;
CREATE INDEX turns_failed ON turns (conversation_id, id) WHERE state = 'failed';
