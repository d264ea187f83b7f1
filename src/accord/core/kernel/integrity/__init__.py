"""The hash chain and retention cuts."""
