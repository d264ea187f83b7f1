"""Joining, leaving, roles and presence."""
