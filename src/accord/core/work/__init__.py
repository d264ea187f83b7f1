"""Work: what must get done, and who said that it is done. Nobody accepts their own."""
