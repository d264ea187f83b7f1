"""How decisions reached the code: commit messages, decision records, notes, proof.

Hooks import from here at every commit, so this file imports nothing, and whatever reads or
writes a message keeps to the standard library; the context `repo/<id>` is in `commits`.
"""
