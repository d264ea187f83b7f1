"""HTTP for git hooks, on the standard library alone: one connection, within one deadline."""
