"""Commit ancestry: which commits contain a given one, what brought it into a branch, the trunk."""

from collections.abc import Iterable, Mapping

from accord.git.repository import BRANCH_PREFIX, Repository

SETTINGS_PATTERN = r"^(accord\.|init\.defaultbranch$)"


class Ancestry:
    """Parents of every commit reachable from some tips, parents before children."""

    def __init__(self, rows: Iterable[list[str]]) -> None:
        self._parents = {row[0]: row[1:] for row in rows}

    @classmethod
    def read(cls, repo: Repository, tips: Iterable[str], shas: list[str]) -> "Ancestry":
        """Read the history of `tips` down to the common ancestor of `shas`."""
        ends = (repo.try_text("merge-base", "--octopus", *shas) or "").split()
        rows = [f"{tip}\n" for tip in tips] + [f"^{end}\n" for end in ends]
        words = ("rev-list", "--parents", "--topo-order", "--reverse", "--ignore-missing")
        listed = repo.run_text(*words, "--stdin", "--", data="".join(rows).encode())
        return cls(map(str.split, listed.splitlines()))

    def descendants_of(self, sha: str) -> set[str]:
        """All commits that contain this one, itself included."""
        descendants = {sha}
        for commit, parents in self._parents.items():
            if not descendants.isdisjoint(parents):
                descendants.add(commit)
        return descendants

    def first_on_branch(self, branch: str, holding: set[str]) -> str:
        """The oldest first-parent ancestor of `branch` that is in `holding`; empty if none."""
        first, commit = "", branch
        while commit in holding:
            first = commit
            commit = next(iter(self._parents.get(commit, ())), "")
        return first


def trunk_refs(settings: Mapping[str, str]) -> list[str]:
    """Candidate refs, most likely first; `settings` holds what matches SETTINGS_PATTERN."""
    usual = settings.get("accord.trunk") or settings.get("init.defaultbranch")
    local = (f"{BRANCH_PREFIX}{name}" for name in (usual, "main", "master") if name)
    return ["refs/remotes/origin/HEAD", *dict.fromkeys(local)]


def trunk_commit(repo: Repository) -> str | None:
    """The commit at the tip of the trunk; None if there is no trunk."""
    return next(
        iter(repo.existing_refs(*trunk_refs(repo.read_config(SETTINGS_PATTERN))).values()), None
    )
