"""Backup, restore, retention and verification of a log."""
