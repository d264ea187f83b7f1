"""Pact: tasks, their owners and reviewers, and the rule that nobody accepts their own work."""
