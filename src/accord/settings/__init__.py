"""Settings of clients and of the server."""
