"""Shared by every context: messages and records, actors, authority, ballots, refusals."""
