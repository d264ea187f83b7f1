"""`accord gates`, `accord approve`, `accord reject`."""
