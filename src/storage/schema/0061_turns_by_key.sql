-- One index finds a turn by its key and all turns of a conversation: two were written at each.
DROP INDEX turns_by_conversation;
DROP INDEX turns_by_key;
CREATE UNIQUE INDEX turns_by_key ON turns (conversation_id, idempotency_key);
