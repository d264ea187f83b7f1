"""How decisions are linked to commits: commit messages, decision records, notes, attestations.

Git hooks import from here at every commit and must start fast. So this file imports nothing, and
modules that parse or write commit messages use the standard library only. The context `repo/<id>`
is in `commits`.
"""
