"""Signing in and out, inviting and removing people."""
