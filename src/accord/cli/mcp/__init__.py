"""`accord mcp`: MCP on standard input and output."""
