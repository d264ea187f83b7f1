"""`accord git` and `accord why`."""
