"""Bytes from the world in, bytes out; each transport hands typed messages to the engine."""
