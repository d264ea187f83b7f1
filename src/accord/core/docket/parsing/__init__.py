"""Batch text, judgements and snapshots to values."""
