"""Approval: from a tool proposal through gates and votes to its grant."""
