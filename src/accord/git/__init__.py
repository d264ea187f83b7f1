"""Decisions in a git repository: hooks, notes, the decisions ref, and `accord why`.

Hooks run at every commit and must start fast, so this file imports nothing.
"""
