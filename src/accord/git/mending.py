"""Records of commits that were made here and have none: their hook was killed, or never ran.

What git's own log of a head or a branch calls a commit was made here; whatever came from elsewhere
has its record elsewhere.
"""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accord.core.provenance.message import parse

from . import decisions, linking
from .repository import Commit, Repository

MOST_SEEN = 2000
MOST_MENDED = 50
PATIENCE_S = 1.0  # a server that does not answer keeps nobody waiting for every commit
OWN = ("commit: ", "commit (initial): ", "commit (merge): ", "commit (amend): ")
HEAD = "HEAD"


class Entry(NamedTuple):
    """How a commit came to be where a ref stood, and what stood there before."""

    sha: str
    ref: str
    said: str
    before: str


def speaks(commit: Commit) -> bool:
    """Whether its message tells of a session, so that there should be a record."""
    return "pvp" in commit.message.lower() and parse(commit.message).has_context


def mend(repo: Repository) -> dict[str, frozenset[str]]:
    """Make the record that is missing, as the hook would have; the decisions of each commit."""
    installed = bool(repo.settings(r"^accord\.repo$"))
    made = _made_here(repo) if installed else {}
    due = decisions.lacking(made, *decisions.on_record(repo, made))
    asked = [sha for sha in made if sha in due]
    read = repo.commits("--no-walk", asked=asked) if asked else []
    owed = [commit for commit in read if speaks(commit)][:MOST_MENDED]
    until = time.monotonic() + PATIENCE_S
    found: dict[str, frozenset[str]] = {}
    for commit in reversed(owed):  # the oldest first: the next decision begins where it ends
        if time.monotonic() > until:
            break
        entry = made[commit.sha]
        branch = "" if entry.ref == HEAD else entry.ref
        whole = commit._replace(reflog=entry.said)
        found[commit.sha] = linking.record(repo, whole, [], linking.Then(branch, entry.before))
    return {sha: ids for sha, ids in found.items() if ids}


def _made_here(repo: Repository) -> dict[str, Entry]:
    """By their names; what a branch tells counts before what a head does, which names no branch."""
    words = ("log", "--walk-reflogs", "--no-color", f"-n{MOST_SEEN}", "--format=%H %gD %gs")
    listed = repo.maybe(*words, HEAD, "--branches", "--") or ""
    found: dict[str, Entry] = {}
    for entry in _entries(listed.split("\n")):
        known = found.get(entry.sha)
        if entry.said.startswith(OWN) and (known is None or known.ref == HEAD):
            found[entry.sha] = entry
    return found


def _entries(rows: Iterable[str]) -> Iterator[Entry]:
    """Each with the next of its ref, which was there before; git mixes refs by their time."""
    after: dict[str, Entry] = {}
    for row in filter(None, rows):
        sha, _, rest = row.partition(" ")
        place, _, said = rest.partition(" ")
        here = Entry(sha, place.rpartition("@{")[0], said, "")
        if later := after.get(here.ref):
            yield later._replace(before=sha)
        after[here.ref] = here
    yield from after.values()
