"""MCP over streamable HTTP: one table of tools, a fast path, and the official SDK behind it."""
