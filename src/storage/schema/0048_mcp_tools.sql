-- For tools of MCP servers: the tool's name at the endpoint's server and its parameters, as JSON.
ALTER TABLE tools ADD COLUMN mcp TEXT;
