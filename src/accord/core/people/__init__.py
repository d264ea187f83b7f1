"""Tokens, signing keys and roles of principals."""
