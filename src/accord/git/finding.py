"""Commits of a session or of a participant: fixed strings, then the parsed trailers (OPEN-75)."""

from accord.core.provenance.message import DECISION_BY, SESSION, parse

from . import decisions
from .repository import Commit, Repository

MOST = 10_000
MOST_NEWEST = 20
# Behind so many commits nobody looks for the newest.
MOST_LOOKED_AT = 2000


def newest(repo: Repository, most: int = MOST_NEWEST) -> list[Commit]:
    """Commits on any ref that come of a session, by their message or by a record, newest first."""
    looked_at = repo.commits(*_refs(repo), most=MOST_LOOKED_AT)
    linked = decisions.of_commits(repo, (each.sha for each in looked_at))
    found = [each for each in looked_at if each.sha in linked or parse(each.message).has_context]
    return found[:most]


def of_session(repo: Repository, id: str) -> list[Commit]:
    """Commits on any ref whose `PVP-Session` is this id, not one that it begins."""
    return [commit for commit in _near(repo, SESSION, id) if parse(commit.message).session_id == id]


def by_participant(repo: Repository, name: str) -> list[Commit]:
    """Commits on any ref that this participant decided: `alice`, or `human:alice`."""
    return [
        commit
        for commit in _near(repo, DECISION_BY, "")
        if any(
            name in (each.identifier, f"{each.kind}:{each.identifier}")
            for each in parse(commit.message).decided_by
        )
    ]


def _near(repo: Repository, key: str, value: str) -> list[Commit]:
    """All that might be; a value that trailers encode is found by the key alone."""
    plain = value.isascii() and value.isalnum()
    words = ("--fixed-strings", "--regexp-ignore-case", "--all-match", f"--grep={key}:")
    return repo.commits(*_refs(repo), *words, *([f"--grep={value}"] if plain else []), most=MOST)


def _refs(repo: Repository) -> tuple[str, ...]:
    """Everything that somebody works on; our own refs and notes are no commits of theirs."""
    head = ("HEAD",) if repo.resolve("HEAD") else ()
    return ("--branches", "--remotes", "--tags", *head)
