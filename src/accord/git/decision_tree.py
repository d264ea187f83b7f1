"""The decision tree of PVP 18.5: sessions, forks and merges as commits in git.

A session maps to a tree of commits, a fork to a branch, a group of messages to a commit, and a
merge to a merge commit.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from accord.core.provenance.commit_message.trailer_values import branch_of
from accord.core.provenance.decision_commit import DecisionCommit, decisions_of
from accord.git import user_arguments
from accord.git.records import decisions_ref
from accord.git.repository import Commit, Repository

MAX_COMMITS = 2000


class TreeCommit(NamedTuple):
    """A commit in the tree; `merges` is the fork that it merged, if any."""

    commit: Commit
    decisions: tuple[DecisionCommit, ...]
    merges: str | None = None


class ForkCommits(NamedTuple):
    """Commits of a session's trunk or of one fork, with the branches they were made on."""

    fork: str
    branches: tuple[str, ...]
    entries: tuple[TreeCommit, ...]
    merged_by: str | None = None


class SessionTree(NamedTuple):
    """One session in this repository."""

    session: str
    name: str
    forks: tuple[ForkCommits, ...]


def session_trees(repo: Repository, session: str | None = None) -> list[SessionTree]:
    """Trees of all sessions with commits in this repository, or of one session."""
    linked = decisions_ref.all_links(repo)
    head = ["HEAD"] if repo.resolve("HEAD") else []
    reachable = set(repo.run_text("rev-list", "--branches", "--remotes", "--tags", *head).split())
    shas = [sha for sha in linked if sha in reachable][:MAX_COMMITS]
    commits = {each.sha: each for each in repo.commits("--no-walk=unsorted", *shas)} if shas else {}
    notes = decisions_ref.read_records(repo, {id for sha in commits for id in linked[sha]})
    decision_by_id = {
        id: own_of_note[0]
        for id, note in notes.items()
        if (own_of_note := _own_decisions(id, decisions_of(note)))
    }
    sessions: dict[str, list[TreeCommit]] = {}
    for commit in sorted(commits.values(), key=lambda each: (each.at, each.sha)):
        known = tuple(
            decision_by_id[id] for id in sorted(linked[commit.sha]) if id in decision_by_id
        )
        for name in sorted({each.pvp_session for each in known}):
            own = tuple(each for each in known if each.pvp_session == name)
            sessions.setdefault(name, []).append(TreeCommit(commit, own))
    return [
        _session_tree(repo, name, each)
        for name, each in sessions.items()
        if session in (None, name)
    ]


def _own_decisions(id: str, candidates: Iterable[DecisionCommit]) -> list[DecisionCommit]:
    return [decision for decision in candidates if decision.id == id]


def _session_tree(repo: Repository, session: str, entries: list[TreeCommit]) -> SessionTree:
    entries_by_fork: dict[str, list[TreeCommit]] = {}
    for entry in entries:
        for fork in sorted({each.fork for each in entry.decisions}):
            entries_by_fork.setdefault(fork, []).append(entry)
    merge_by_fork = _merge_commit_by_fork(repo, entries_by_fork)
    names = (each.session_name for entry in entries for each in entry.decisions)
    forks = [
        _fork_commits(fork, entries_by_fork[fork], merge_by_fork)
        for fork in sorted(entries_by_fork)
    ]
    return SessionTree(session, next(filter(None, names), ""), tuple(forks))


def _merge_commit_by_fork(
    repo: Repository, entries_by_fork: Mapping[str, list[TreeCommit]]
) -> dict[str, str]:
    """Which merge commit merged each fork: its second parent contains the fork's last commit."""
    merges = [
        entry.commit
        for each in entries_by_fork.values()
        for entry in each
        if len(entry.commit.parents) > 1
    ]
    merge_by_fork: dict[str, str] = {}
    for fork, entries in entries_by_fork.items():
        tip = entries[-1].commit.sha
        for merge in merges if fork else ():
            inside = any(repo.contains(parent, tip) for parent in merge.parents[1:])
            if inside and merge.sha != tip:
                merge_by_fork.setdefault(fork, merge.sha)
    return merge_by_fork


def _fork_commits(
    fork: str, entries: list[TreeCommit], merge_by_fork: Mapping[str, str]
) -> ForkCommits:
    fork_by_merge = {sha: name for name, sha in merge_by_fork.items()}
    labelled = tuple(
        entry._replace(merges=fork_by_merge.get(entry.commit.sha)) for entry in entries
    )
    branches = sorted({each.branch for entry in entries for each in entry.decisions if each.branch})
    return ForkCommits(fork, tuple(branches), labelled, merge_by_fork.get(fork))


def create_fork_branch(repo: Repository, fork: str, start: str = "HEAD") -> str:
    """Create a branch for a fork and return its name; an existing branch is left unchanged."""
    name = branch_of(fork)
    if repo.resolve(f"refs/heads/{name}"):
        return name
    repo.run_text("branch", "--no-track", name, user_arguments.resolve_commit(repo, start))
    return name
