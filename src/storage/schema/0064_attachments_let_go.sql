-- Files of deleted conversations are found like files never sent: before, each deletion of a
-- conversation scanned all files of all accounts.
UPDATE attachments SET sent_at = NULL, created_at = 0
  WHERE NOT EXISTS (SELECT 1 FROM conversations c
    WHERE c.id = attachments.conversation_id AND c.type <> 'deleted');
