"""Sending committed records to connections: joining, replay, heartbeats, secrets."""
