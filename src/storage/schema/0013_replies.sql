-- Whether a reply was cut off at its limit, and the models' token counts; null where they count
-- nothing.
ALTER TABLE messages ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN input_tokens INTEGER;
ALTER TABLE messages ADD COLUMN output_tokens INTEGER;

-- The class of failure the public was told; `error` is the text for the owner.
ALTER TABLE turns ADD COLUMN failure TEXT;
CREATE INDEX turns_failed ON turns (conversation_id, id) WHERE state = 'failed';
