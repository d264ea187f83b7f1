"""What readers want to know, computed from state and records alone."""
