"""`accord agent`."""
