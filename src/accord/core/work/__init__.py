"""Pact: tasks, their owners and reviewers, and the rule that no one accepts their own work."""
