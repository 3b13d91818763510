-- The last calls of a tool are shown beside it.
CREATE INDEX tool_calls_by_tool ON tool_calls (tool_id, id);
