"""`accord policy`."""
