"""A branch as one patch: what a squash merge makes of it, wherever that is done."""

from collections.abc import Iterable, Mapping

from . import decisions, patches
from .ledger import by_patch
from .repository import Repository

MOST = 1000
MOST_TIPS = 200
MOST_ON_RECORD = 1000
MOST_WALKED = 10_000

Links = Mapping[str, frozenset[str]]


def unmerged(repo: Repository, into: str) -> dict[str, frozenset[str]]:
    """What each branch that is not in this commit changes as one patch, and the decisions in it.

    A branch that a forge squashed lives on as a ref or, when that was deleted, as commits on
    record that no other commit on record follows.
    """
    graph = _graph(repo, into)
    linked = decisions.of_commits(repo, graph)
    followed = {parent for parents in graph.values() for parent in parents}
    bases: dict[str, str] = {}
    decided: dict[str, frozenset[str]] = {}
    for tip in [sha for sha in graph if sha not in followed][:MOST_TIPS]:
        inside, ends = _walked(graph, tip)
        if ids := _decided(inside, linked):
            plain = len(ends) == 1
            base = ends.pop() if plain else repo.maybe("merge-base", into, tip)
            bases |= {tip: base} if base else {}
            decided[tip] = ids
    found: dict[str, frozenset[str]] = {}
    for tip, patch in patches.since(repo, bases).items():
        found[patch] = found.get(patch, frozenset()) | decided[tip]
    return found


def _graph(repo: Repository, into: str) -> dict[str, list[str]]:
    """Commits that somebody works on or that are on record, and are not in this one; parents."""
    asked = "".join(f"{sha}\n" for sha in (*decisions.commits(repo)[:MOST_ON_RECORD], f"^{into}"))
    words = ("rev-list", "--parents", "--ignore-missing", f"--max-count={MOST_WALKED}")
    rows = repo.ask(*words, "--branches", "--remotes", "--stdin", data=asked.encode())
    return {row[0]: row[1:] for row in map(str.split, rows.splitlines())}


def _walked(graph: Mapping[str, list[str]], tip: str) -> tuple[set[str], set[str]]:
    """What is on a branch, and where that begins."""
    inside, ends, rest = set[str](), set[str](), [tip]
    while rest:
        sha = rest.pop()
        if sha not in graph:
            ends.add(sha)
        elif sha not in inside:
            inside.add(sha)
            rest += graph[sha]
    return inside, ends


def _decided(shas: Iterable[str], linked: Links) -> frozenset[str]:
    return frozenset(id for sha in shas for id in linked.get(sha, ()))


def remember(repo: Repository, tip: str, trunk: str | None, linked: Links | None = None) -> bool:
    """Keep what a branch changes as one patch, so that its squash is known in every clone.

    `linked` is what is known already of commits on it.
    """
    base, inside = _since(repo, trunk, tip) if trunk and trunk != tip else ("", [])
    if not base or not inside:
        return False
    known = dict(linked or {})
    known |= decisions.of_commits(repo, [sha for sha in inside if sha not in known])
    ids = _decided(inside, known)
    patch = patches.since(repo, {tip: base}).get(tip) if ids else None
    return bool(patch) and decisions.index(repo, {by_patch(str(patch)): ids})


def _since(repo: Repository, trunk: str, tip: str) -> tuple[str, list[str]]:
    """Where a branch left the trunk, empty where the two never met, and its commits since."""
    words = ("--boundary", "--right-only", f"--max-count={MOST}", f"{trunk}...{tip}")
    rows = repo.ask("rev-list", *words).splitlines()
    inside = [row for row in rows if not row.startswith("-")]
    ends = [row[1:] for row in rows if row.startswith("-")]
    plain = len(ends) == 1 and len(inside) < MOST
    return (ends[0] if plain else repo.maybe("merge-base", trunk, tip) or ""), inside
