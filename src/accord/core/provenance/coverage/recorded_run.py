"""What our executor records of a run in a work tree of its own: tree ids before and after it.

The record is in the metadata of the result, under `work_tree`. Anyone who holds an agent's token
can send one, so it is evidence only where a token with the label `executor` sent it: whoever gave
that label vouches that the token is our executor's, and that nobody else works in its work trees.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

RECORD_KEY = "work_tree"
MAX_RECORDED_CHANGES = 300
TREE_PATTERN = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
CHANGE_FIELDS = ("path", "before", "old_mode", "after", "mode")

# The blob and mode of a path; both empty where there is none.
Version = tuple[str, str]


class RecordedChange(NamedTuple):
    """A path that a run changed."""

    path: str
    before: Version
    after: Version


class RecordedRun(NamedTuple):
    """The trees of the checked-out commit (`base`), and of all files before and after the run."""

    base: str
    before: str
    after: str
    changes: tuple[RecordedChange, ...]


def parse_recorded_run(metadata: Mapping[str, Any] | None) -> RecordedRun | None:
    """The record in the metadata of a result; None if there is none that can be used."""
    record = (metadata or {}).get(RECORD_KEY)
    if not isinstance(record, dict):
        return None
    trees = tuple(record.get(name) for name in ("base", "before", "after"))
    changes = record.get("changes")
    if not all(isinstance(tree, str) and TREE_PATTERN.fullmatch(tree) for tree in trees):
        return None
    if not isinstance(changes, list) or len(changes) > MAX_RECORDED_CHANGES:
        return None
    parsed = tuple(_changes(changes))
    base, before, after = map(str, trees)
    return RecordedRun(base, before, after, parsed) if len(parsed) == len(changes) else None


def _changes(changes: Sequence[Any]) -> Iterator[RecordedChange]:
    for change in changes:
        found = [change.get(name, "") for name in CHANGE_FIELDS] if isinstance(change, dict) else []
        if found and all(isinstance(value, str) for value in found):
            path, before, old_mode, after, mode = found
            yield RecordedChange(path, (before, old_mode), (after, mode))
