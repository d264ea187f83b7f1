"""`accord stdio`."""
