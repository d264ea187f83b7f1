"""Recognise squash merges by the patch id of a whole branch, wherever the squash was made."""

from collections.abc import Iterable, Mapping

from accord.git import commit_content
from accord.git.records import decisions_ref
from accord.git.records.record_refs import patch_index_path
from accord.git.repository import Repository

MAX_BRANCH_COMMITS = 1000
MAX_TIPS = 200
MAX_RECORDED_COMMITS = 1000
MAX_WALKED_COMMITS = 10_000

IdsByCommit = Mapping[str, frozenset[str]]


def unmerged_branch_patches(repo: Repository, into: str) -> dict[str, frozenset[str]]:
    """Patch ids of the branches not contained in this commit, with the decisions on each branch.

    A branch that a forge squashed survives as a ref. If the ref was deleted, the branch's tip is a
    recorded commit without recorded children.
    """
    graph = _commit_graph(repo, into)
    linked = decisions_ref.ids_by_commit(repo, graph)
    followed = {parent for parents in graph.values() for parent in parents}
    bases: dict[str, str] = {}
    ids_by_tip: dict[str, frozenset[str]] = {}
    for tip in [sha for sha in graph if sha not in followed][:MAX_TIPS]:
        inside, ends = _walk_branch(graph, tip)
        if ids := _ids_of_commits(inside, linked):
            is_linear = len(ends) == 1
            base = ends.pop() if is_linear else repo.try_text("merge-base", into, tip)
            bases |= {tip: base} if base else {}
            ids_by_tip[tip] = ids
    ids_by_patch: dict[str, frozenset[str]] = {}
    for tip, patch in commit_content.patch_ids_since(repo, bases).items():
        ids_by_patch[patch] = ids_by_patch.get(patch, frozenset()) | ids_by_tip[tip]
    return ids_by_patch


def _commit_graph(repo: Repository, into: str) -> dict[str, list[str]]:
    """Parents of the commits on branches or on record that are not contained in `into`."""
    revisions = "".join(
        f"{sha}\n"
        for sha in (*decisions_ref.recorded_commits(repo)[:MAX_RECORDED_COMMITS], f"^{into}")
    )
    words = ("rev-list", "--parents", "--ignore-missing", f"--max-count={MAX_WALKED_COMMITS}")
    rows = repo.run_text(*words, "--branches", "--remotes", "--stdin", data=revisions.encode())
    return {row[0]: row[1:] for row in map(str.split, rows.splitlines())}


def _walk_branch(graph: Mapping[str, list[str]], tip: str) -> tuple[set[str], set[str]]:
    """The commits of a branch, and the commits it starts from."""
    inside, ends, pending = set[str](), set[str](), [tip]
    while pending:
        sha = pending.pop()
        if sha not in graph:
            ends.add(sha)
        elif sha not in inside:
            inside.add(sha)
            pending += graph[sha]
    return inside, ends


def _ids_of_commits(shas: Iterable[str], linked: IdsByCommit) -> frozenset[str]:
    return frozenset(id for sha in shas for id in linked.get(sha, ()))


def record_branch_patch(
    repo: Repository, tip: str, trunk: str | None, linked: IdsByCommit | None = None
) -> bool:
    """Index the patch id of a whole branch, so that every clone recognises its squash merge.

    `linked` holds the decisions of its commits as far as they were already read.
    """
    base, inside = _base_and_commits(repo, trunk, tip) if trunk and trunk != tip else ("", [])
    if not base or not inside:
        return False
    ids_by_sha = dict(linked or {})
    ids_by_sha |= decisions_ref.ids_by_commit(
        repo, [sha for sha in inside if sha not in ids_by_sha]
    )
    ids = _ids_of_commits(inside, ids_by_sha)
    patch = commit_content.patch_ids_since(repo, {tip: base}).get(tip) if ids else None
    return bool(patch) and decisions_ref.index_decisions(repo, {patch_index_path(str(patch)): ids})


def _base_and_commits(repo: Repository, trunk: str, tip: str) -> tuple[str, list[str]]:
    """Where a branch left the trunk (empty if unrelated), and its commits since then."""
    words = ("--boundary", "--right-only", f"--max-count={MAX_BRANCH_COMMITS}", f"{trunk}...{tip}")
    rows = repo.run_text("rev-list", *words).splitlines()
    inside = [row for row in rows if not row.startswith("-")]
    ends = [row[1:] for row in rows if row.startswith("-")]
    is_unambiguous = len(ends) == 1 and len(inside) < MAX_BRANCH_COMMITS
    return (ends[0] if is_unambiguous else repo.try_text("merge-base", trunk, tip) or ""), inside
