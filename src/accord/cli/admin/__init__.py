"""Commands for operators: tokens, keys, backup, restore, verify, compact."""
