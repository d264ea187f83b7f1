"""Agents: programs that take part in sessions through the same client as people."""
