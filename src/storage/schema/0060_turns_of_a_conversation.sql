-- Queries for the turns of a conversation scanned those of all.
DROP INDEX turns_failed;
CREATE INDEX turns_by_conversation ON turns (conversation_id, id);
