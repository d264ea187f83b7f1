"""Patterns of files that search tools take: where they lead, and which secrets they find."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from accord.core.policy import paths
from accord.core.policy.call_findings import Finding
from accord.core.policy.path_rules import PathRules
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk

BRACES = re.compile(r"\{([^{}]*)\}")
MAX_ALTERNATIVES = 64
# Escapes, and groups that match what is written in several ways.
UNREADABLE = frozenset("\\(){}")


def searching(places: PathRules, pattern: str, folder: str, *, shows: bool) -> Iterator[Finding]:
    """What a search for a pattern in a folder finds; `shows`: it shows what is in the files."""
    written = alternatives(pattern)
    if written is None or any(leads_away(each) for each in written):
        why = f"searches {pattern}, which may be outside the worktree"
        yield Finding(Category.SECRET_ACCESS, Risk.MEDIUM, why)
        return
    for each in written:
        if each.startswith("/"):
            yield places.reading(paths.normalize(paths.fixed_part(each)))
        if shows and finds_secrets(places, paths.normalize(each, folder)):
            why = f"searches {pattern}, which finds files that hold secrets"
            yield Finding(Category.SECRET_ACCESS, Risk.HIGH, why)


def alternatives(pattern: str) -> list[str] | None:
    """The pattern once for each way to read its braces; None if there are too many."""
    found, left = list[str](), [pattern]
    while left:
        each = left.pop()
        group = BRACES.search(each)
        if group is None:
            found.append(each)
        else:
            before, after = each[: group.start()], each[group.end() :]
            left += [f"{before}{word}{after}" for word in group[1].split(",")]
        if len(found) + len(left) > MAX_ALTERNATIVES:
            return None
    return found


def leads_away(pattern: str) -> bool:
    """Whether the text alone does not say in which folder a pattern searches."""
    return (
        pattern.startswith("~") or ".." in pattern.split("/") or not UNREADABLE.isdisjoint(pattern)
    )


def finds_secrets(places: PathRules, pattern: str) -> bool:
    """Whether a file that holds secrets could have a name that the pattern matches.

    What begins with a wildcard finds hidden files; it is not held against it that `*.json` would
    also find the one kind of JSON that holds secrets.
    """
    last = pattern.rsplit("/", 1)[-1].lower()
    is_wide = last.startswith(("*", "?", "["))
    return places.is_secret(pattern) or any(
        fnmatchcase(name, last)
        for name in places.secret_examples()
        if name.startswith(".") or not is_wide
    )
