-- Files of deleted conversations are found like those that were never sent: to find them, all files
-- of all accounts were looked at, each time a conversation was deleted.
UPDATE attachments SET sent_at = NULL, created_at = 0
  WHERE NOT EXISTS (SELECT 1 FROM conversations c
    WHERE c.id = attachments.conversation_id AND c.type <> 'deleted');
