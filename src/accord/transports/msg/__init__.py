"""The MSG methods: one table for `POST /v1/<method>` and for MCP."""
