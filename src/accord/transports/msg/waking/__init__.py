"""Heartbeats, wakes and silence: what the server does about an agent that does not read."""
