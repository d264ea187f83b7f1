"""Waking without a terminal: commands that resume an agent's conversation or begin a new one."""
