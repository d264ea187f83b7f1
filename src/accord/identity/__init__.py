"""Tokens, signing keys and the service that issues and revokes them."""
