-- A chat completion used to store its request's hash as the name of a variable of its conversation,
-- request_<32 hex digits>, the first request's first. It belongs to the first turn.
UPDATE turns SET request_hash = (
    SELECT substr(c.variables, 11, 32) FROM conversations c WHERE c.id = turns.conversation_id)
  WHERE id IN (
    SELECT min(t.id) FROM turns t JOIN conversations c ON c.id = t.conversation_id
    WHERE t.idempotency_key IS NOT NULL AND c.type = 'api'
      AND c.external_identifier LIKE 'completion:%' AND length(c.external_identifier) = 75
      AND substr(c.variables, 1, 10) = '{"request_' AND substr(c.variables, 43, 5) = '":"1"'
    GROUP BY t.conversation_id);
UPDATE conversations SET variables = '{}'
  WHERE type = 'api'
    AND external_identifier LIKE 'completion:%' AND length(external_identifier) = 75
    AND substr(variables, 1, 10) = '{"request_' AND substr(variables, 43, 5) = '":"1"';
