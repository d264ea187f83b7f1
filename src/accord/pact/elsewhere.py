"""What other branches know: events that the ledger here lacks, and branches that a remote has."""

from shlex import quote
from typing import NamedTuple

from accord.core.dialects import pact
from accord.git.repository import Repository
from accord.pact.place import Place

HEADS, REMOTES = "refs/heads/", "refs/remotes/"
# Whoever was told has fetched or switched lately; further back nobody looks.
MOST_BRANCHES = 20


class News(NamedTuple):
    """A branch whose ledger has more, and how many events that are."""

    branch: str
    events: int
    remote: bool


def news(place: Place, data: bytes, about: str) -> News | None:
    """The branch that knows most of a task or a feature that these lines do not say."""
    repository = place.repository
    if not repository:
        return None
    refs = _recent(repository)
    name = place.name(place.log)
    found = repository.objects(f"{ref}:{name}" for ref in refs)
    told = (
        News(
            _short(ref),
            _events(data, found[f"{ref}:{name}"].content, about),
            ref.startswith(REMOTES),
        )
        for ref in refs
        if f"{ref}:{name}" in found
    )
    best = max(told, key=lambda each: each.events, default=None)
    return best if best and best.events else None


def _recent(repository: Repository) -> list[str]:
    words = ("for-each-ref", "--sort=-committerdate", f"--count={MOST_BRANCHES}")
    return repository.ask(*words, "--format=%(refname)", HEADS, REMOTES).split()


def _short(ref: str) -> str:
    return ref.removeprefix(HEADS).removeprefix(REMOTES)


def _events(here: bytes, there: bytes, about: str) -> int:
    more = pact.read(pact.missing(here, there)).entries
    return sum(about in (each.event.task_id, each.event.feature) for each in more)


def advice(place: Place, found: News) -> str:
    """Commands that have them here: the ledger is committed first, else git would refuse."""
    repository = place.repository
    here = repository.branch() if repository else ""
    folder = f"{place.name(place.directory)}/"
    changed = repository.changed() if repository else []
    own = found.branch.partition("/")[2] if found.remote else found.branch
    saves = any(each.startswith(folder) for each in changed)
    steps = [f"git commit -qm ledger {quote(folder)}"] if saves else []
    steps += [f"git switch {quote(own)}"] if own != here else []
    steps += [f"git merge {quote(found.branch)}"] if found.remote else []
    return " && ".join(steps)


def tracked(repository: Repository, branch: str) -> str:
    """The branch of a remote that has this name, where exactly one does."""
    words = ("for-each-ref", "--count=2", "--format=%(refname)", f"{REMOTES}*/{branch}")
    found = repository.ask(*words).split()
    return _short(found[0]) if len(found) == 1 else ""
