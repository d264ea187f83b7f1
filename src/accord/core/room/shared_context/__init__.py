"""Shared context items and secrets."""
