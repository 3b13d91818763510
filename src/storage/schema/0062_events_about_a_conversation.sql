-- Deleting a conversation finds the account-only events about it by this index: before, all of the
-- account's events since the conversation began were scanned.
ALTER TABLE events ADD COLUMN about_conversation TEXT;
-- only sqlite
UPDATE events SET about_conversation = substr(data, instr(data, '"conversation_id":"') + 19, 36)
  WHERE conversation_id IS NULL AND type IN ('note_added', 'callback_requested', 'callback_done',
    'conversation_evaluated', 'reply_failure_explained');
-- end
-- only postgres
UPDATE events SET about_conversation = substring(data FROM '"conversation_id":"([^"]+)"')
  WHERE conversation_id IS NULL AND type IN ('note_added', 'callback_requested', 'callback_done',
    'conversation_evaluated', 'reply_failure_explained');
-- end
CREATE INDEX events_about_conversation ON events (about_conversation)
  WHERE about_conversation IS NOT NULL;
