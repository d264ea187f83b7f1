"""`accord doctor`."""
