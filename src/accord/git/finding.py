"""Commits of a session or of a participant: fixed strings, then the parsed trailers (OPEN-75)."""

from accord.core.provenance.message import DECISION_BY, SESSION, parse

from .repository import Commit, Repository

MOST = 10_000


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
    which = ("--branches", "--remotes", "--tags", *(["HEAD"] if repo.resolve("HEAD") else []))
    words = ("--fixed-strings", "--regexp-ignore-case", "--all-match", f"--grep={key}:")
    return repo.commits(*which, *words, *([f"--grep={value}"] if plain else []), most=MOST)
