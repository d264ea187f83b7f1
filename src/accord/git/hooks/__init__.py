"""The git hooks, one module each, and their installation."""
