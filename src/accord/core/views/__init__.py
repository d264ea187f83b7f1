"""Read models, computed from state and records alone."""
