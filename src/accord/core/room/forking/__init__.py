"""Forks and merges of a session."""
