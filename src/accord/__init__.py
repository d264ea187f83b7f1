"""Accord: people and coding agents decide together, and git remembers why."""

__version__ = "0.1.0"
