"""PVP over WebSocket: protocol, connection, registry."""
