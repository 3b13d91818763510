-- Tools of MCP servers: which tool of the server at the endpoint it is and what it takes, as JSON.
ALTER TABLE tools ADD COLUMN mcp TEXT;
