"""Commits and their parents: which hold a given one, and by which it came into a branch."""

from collections.abc import Iterable

from .repository import Repository


class Lineage:
    """The commits of some tips with their parents, which come before them."""

    def __init__(self, rows: Iterable[list[str]]) -> None:
        self._parents = {row[0]: row[1:] for row in rows}

    @classmethod
    def of(cls, repo: Repository, tips: Iterable[str], shas: list[str]) -> "Lineage":
        """Of these tips, as far down as the commits that somebody asks about."""
        ends = (repo.maybe("merge-base", "--octopus", *shas) or "").split()
        rows = [f"{each}\n" for each in tips] + [f"^{end}\n" for end in ends]
        words = ("rev-list", "--parents", "--topo-order", "--reverse", "--ignore-missing")
        listed = repo.ask(*words, "--stdin", "--", data="".join(rows).encode())
        return cls(map(str.split, listed.splitlines()))

    def holding(self, sha: str) -> set[str]:
        """Those that hold this one, itself included."""
        found = {sha}
        for each, parents in self._parents.items():
            if not found.isdisjoint(parents):
                found.add(each)
        return found

    def brought(self, branch: str, holding: set[str]) -> str:
        """The first commit of a branch's own line that is among these; empty where none is."""
        found, at = "", branch
        while at in holding:
            found = at
            at = next(iter(self._parents.get(at, ())), "")
        return found
