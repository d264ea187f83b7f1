"""Signing in to a server, and the tokens of profiles."""
