"""Pact in a working tree: verbs on files and git, with or without a server."""
