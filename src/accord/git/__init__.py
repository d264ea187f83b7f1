"""Git, as far as Accord uses it."""
