"""Rulings of the decision kernel inside a session, and what they hold back."""
