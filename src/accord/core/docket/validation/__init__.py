"""Checking and repairing snapshots that others wrote."""
