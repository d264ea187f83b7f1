"""`accord pact`."""
