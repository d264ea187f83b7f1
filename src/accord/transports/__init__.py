"""WebSocket, HTTP and git bridge: each decodes bytes and hands typed messages to the engine."""
