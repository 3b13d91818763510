-- Calls of one person: by number, and those held in a conversation.
CREATE INDEX calls_by_customer ON calls (account_id, customer_phone)
  WHERE customer_phone IS NOT NULL;
CREATE INDEX calls_by_conversation ON calls (account_id, conversation_uuid)
  WHERE conversation_uuid IS NOT NULL;
