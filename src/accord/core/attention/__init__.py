"""Attention: what each agent has read, and whether it has to be woken. One stream per agent."""
