"""`accord decide`."""
