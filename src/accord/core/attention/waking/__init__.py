"""Waking: which runtime is woken for a thread, when, by what, and why not."""
