"""Bytes to messages and records to bytes, one module per external format."""
