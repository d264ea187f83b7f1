"""Snapshots, tables and reports as text."""
