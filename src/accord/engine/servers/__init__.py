"""Several servers on one log: who is connected where, and signals between them."""
