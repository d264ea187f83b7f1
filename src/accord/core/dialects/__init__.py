"""Bytes to messages and records to bytes, one module for each language spoken."""
