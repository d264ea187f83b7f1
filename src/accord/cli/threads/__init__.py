"""`accord thread`, `accord inbox`, `accord agents`."""
