"""Git as the place where decisions are kept: hooks, notes, our own ref, and `accord why`.

Hooks run at every commit, so this file imports nothing.
"""
