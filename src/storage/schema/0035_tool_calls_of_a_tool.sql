-- A tool's page shows its last calls.
CREATE INDEX tool_calls_by_tool ON tool_calls (tool_id, id);
