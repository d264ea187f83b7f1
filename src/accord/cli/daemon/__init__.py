"""`accord daemon`."""
