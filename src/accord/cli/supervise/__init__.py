"""`accord supervise`."""
