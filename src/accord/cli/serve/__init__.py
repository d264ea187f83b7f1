"""`accord serve`."""
