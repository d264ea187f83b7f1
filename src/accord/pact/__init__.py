"""Pact in a work tree: verbs that act on files and git, with or without a server."""
