"""Helpers shared by several test packages; README.md lists them."""
