"""Sessions, forks and merges as they are in git: the decision tree of PVP 18.5.

A session is a tree of the repository, a fork a branch of it, messages together a commit, a merge
a merge commit.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from accord.core.provenance.decision import DecisionCommit
from accord.core.provenance.record import decisions_of
from accord.core.provenance.refs import branch_of

from . import decisions, naming
from .repository import Commit, Repository

MOST = 2000


class Entry(NamedTuple):
    """A commit in the tree; `merges` is the fork that came in with it."""

    commit: Commit
    decisions: tuple[DecisionCommit, ...]
    merges: str | None = None


class Limb(NamedTuple):
    """The trunk of a session, or one of its forks, with the branches it was committed on."""

    fork: str
    branches: tuple[str, ...]
    entries: tuple[Entry, ...]
    merged_by: str | None = None


class Tree(NamedTuple):
    """One session in this repository."""

    session: str
    name: str
    limbs: tuple[Limb, ...]


def grow(repo: Repository, session: str | None = None) -> list[Tree]:
    """The trees of all sessions that left commits here, or of one."""
    linked = decisions.links(repo)
    head = ["HEAD"] if repo.resolve("HEAD") else []
    reachable = set(repo.ask("rev-list", "--branches", "--remotes", "--tags", *head).split())
    shas = [sha for sha in linked if sha in reachable][:MOST]
    commits = {each.sha: each for each in repo.commits("--no-walk=unsorted", *shas)} if shas else {}
    notes = decisions.records(repo, {id for sha in commits for id in linked[sha]})
    made = {id: found[0] for id, note in notes.items() if (found := _own(id, decisions_of(note)))}
    sessions: dict[str, list[Entry]] = {}
    for commit in sorted(commits.values(), key=lambda each: (each.at, each.sha)):
        known = tuple(made[id] for id in sorted(linked[commit.sha]) if id in made)
        for name in sorted({each.pvp_session for each in known}):
            own = tuple(each for each in known if each.pvp_session == name)
            sessions.setdefault(name, []).append(Entry(commit, own))
    return [_tree(repo, name, each) for name, each in sessions.items() if session in (None, name)]


def _own(id: str, found: Iterable[DecisionCommit]) -> list[DecisionCommit]:
    return [each for each in found if each.id == id]


def _tree(repo: Repository, session: str, entries: list[Entry]) -> Tree:
    limbs: dict[str, list[Entry]] = {}
    for entry in entries:
        for fork in sorted({each.fork for each in entry.decisions}):
            limbs.setdefault(fork, []).append(entry)
    came = _merges(repo, limbs)
    names = (each.session_name for entry in entries for each in entry.decisions)
    made = [_limb(fork, limbs[fork], came) for fork in sorted(limbs)]
    return Tree(session, next(filter(None, names), ""), tuple(made))


def _merges(repo: Repository, limbs: Mapping[str, list[Entry]]) -> dict[str, str]:
    """Which merge commit brought a fork in: its second parent holds the fork's last commit."""
    merges = [
        entry.commit for each in limbs.values() for entry in each if len(entry.commit.parents) > 1
    ]
    found: dict[str, str] = {}
    for fork, entries in limbs.items():
        tip = entries[-1].commit.sha
        for merge in merges if fork else ():
            inside = any(repo.contains(parent, tip) for parent in merge.parents[1:])
            if inside and merge.sha != tip:
                found.setdefault(fork, merge.sha)
    return found


def _limb(fork: str, entries: list[Entry], came: Mapping[str, str]) -> Limb:
    by = {sha: name for name, sha in came.items()}
    told = tuple(entry._replace(merges=by.get(entry.commit.sha)) for entry in entries)
    found = sorted({each.branch for entry in entries for each in entry.decisions if each.branch})
    return Limb(fork, tuple(found), told, came.get(fork))


def make_branch(repo: Repository, fork: str, start: str = "HEAD") -> str:
    """A branch for a fork, on request; the one that is there already is kept."""
    name = branch_of(fork)
    if repo.resolve(f"refs/heads/{name}"):
        return name
    repo.ask("branch", "--no-track", name, naming.commit(repo, start))
    return name
