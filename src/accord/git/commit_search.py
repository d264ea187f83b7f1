"""Find commits by session or participant: git greps candidates, trailers decide (OPEN-75)."""

from accord.core.provenance.commit_message.parser import parse_message
from accord.core.provenance.commit_message.trailers import DECISION_BY_KEY, SESSION_KEY
from accord.git.records import decisions_ref
from accord.git.repository import Commit, Repository

MAX_COMMITS = 10_000
MAX_NEWEST = 20
# The newest session commits are searched for among this many commits at most.
MAX_SCANNED_COMMITS = 2000


def newest_session_commits(repo: Repository, max_count: int = MAX_NEWEST) -> list[Commit]:
    """Commits on any ref with a session in their message or a record, newest first."""
    scanned = repo.commits(*_ref_options(repo), max_count=MAX_SCANNED_COMMITS)
    linked = decisions_ref.ids_by_commit(repo, (commit.sha for commit in scanned))
    matching = [
        commit
        for commit in scanned
        if commit.sha in linked or parse_message(commit.message).has_context
    ]
    return matching[:max_count]


def commits_of_session(repo: Repository, id: str) -> list[Commit]:
    """Commits on any ref whose `PVP-Session` is exactly this id, not merely prefixed by it."""
    return [
        commit
        for commit in _candidate_commits(repo, SESSION_KEY, id)
        if parse_message(commit.message).session_id == id
    ]


def commits_by_participant(repo: Repository, name: str) -> list[Commit]:
    """Commits on any ref decided by this participant, given as `alice` or `human:alice`."""
    return [
        commit
        for commit in _candidate_commits(repo, DECISION_BY_KEY, "")
        if any(
            name in (participant.identifier, f"{participant.kind}:{participant.identifier}")
            for participant in parse_message(commit.message).decided_by
        )
    ]


def _candidate_commits(repo: Repository, key: str, value: str) -> list[Commit]:
    """Commits that may match; a value that trailers would encode is searched by key alone."""
    plain = value.isascii() and value.isalnum()
    words = ("--fixed-strings", "--regexp-ignore-case", "--all-match", f"--grep={key}:")
    return repo.commits(
        *_ref_options(repo), *words, *([f"--grep={value}"] if plain else []), max_count=MAX_COMMITS
    )


def _ref_options(repo: Repository) -> tuple[str, ...]:
    """Branches, remotes, tags and HEAD; this leaves out Accord's own refs and notes."""
    head = ("HEAD",) if repo.resolve("HEAD") else ()
    return ("--branches", "--remotes", "--tags", *head)
