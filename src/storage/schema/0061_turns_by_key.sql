-- One index finds both a turn by its key and all turns of a conversation; each write kept up two.
DROP INDEX turns_by_conversation;
DROP INDEX turns_by_key;
CREATE UNIQUE INDEX turns_by_key ON turns (conversation_id, idempotency_key);
