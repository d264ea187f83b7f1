"""A session as turns: one module for each subject of messages."""
