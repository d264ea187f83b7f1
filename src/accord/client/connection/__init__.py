"""The client's connection: reconnect, routing, inbox, outbox."""
