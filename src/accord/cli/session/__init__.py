"""`accord session`."""
