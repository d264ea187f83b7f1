"""One suite per port; an adapter is correct when it passes."""
