"""Finding the decisions of commits again, after a rebase elsewhere or a forge's squash merge.

A commit is tied to a decision by what names it (a trailer, a reference, a commit that its message
quotes), or by doing the same: its patch is one that is on record, or all that a branch changed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from accord.core.provenance import refs
from accord.core.provenance.message import DECISION, parse

from . import branches, decisions, mending, patches
from .decisions import Link
from .ledger import DECISIONS
from .process import GitError
from .repository import Commit, Repository

MOST = 1000
# Compiled when they are first needed: `pre-push` loads this and seldom needs them.
_TRAILER = rf"(?mi)^\s*{DECISION}:\s*(\S+)\s*$"
_REF = r"\[pvp:(dec-[A-Za-z0-9_.-]+)\]"
_QUOTED = r"(?m)(?:^commit |cherry picked from commit )([0-9a-f]{40,64})\b"


class Healed(NamedTuple):
    """A commit that has its decisions again, and how they were found."""

    commit: Commit
    ids: frozenset[str]
    by: str


def heal(repo: Repository, which: Sequence[str], most: int = MOST) -> list[Healed]:
    """Tie commits that have no record to the decisions that led to them."""
    commits = repo.commits(*which, most=most) if which else []
    if not repo.refs(DECISIONS) and not any(map(mending.speaks, commits)):
        return []
    shas = [commit.sha for commit in commits]
    due = decisions.lacking(shas, *decisions.on_record(repo, shas))
    return tie(repo, [commit for commit in commits if commit.sha in due])


def tie(repo: Repository, commits: Sequence[Commit]) -> list[Healed]:
    """The same for those of which it is known that they lack something.

    Where one tells of a session, records that no hook made come first: others may be copies.
    """
    made = mending.mend(repo) if any(map(mending.speaks, commits)) else {}
    found = [
        each._replace(by="trailers") if each.commit.sha in made else each
        for each in find(repo, commits)
    ]
    if found:
        names = patches.of_many(repo, (each.commit.sha for each in found))
        links = {
            each.commit.sha: Link(each.ids, frozenset({names.get(each.commit.sha, "")} - {""}))
            for each in found
        }
        decisions.attach(repo, links)
    return found


def find(repo: Repository, commits: Sequence[Commit]) -> Iterator[Healed]:
    """What led to each of these commits, by the surest sign there is."""
    if not commits:
        return
    shas = [commit.sha for commit in commits]
    linked = decisions.of_commits(repo, shas)
    named = _named(repo, commits)
    names = patches.of_many(repo, shas)
    by_patch = decisions.of_patches(repo, names.values())
    squashed: dict[str, frozenset[str]] | None = None
    for commit in commits:
        same = _same(repo, commit, by_patch.get(names.get(commit.sha, ""), frozenset()))
        if ids := linked.get(commit.sha):
            yield Healed(commit, ids, "commit")
        elif ids := named.get(commit.sha, frozenset()) | same:
            yield Healed(commit, ids, "name" if named.get(commit.sha) else "patch")
        elif patch := names.get(commit.sha):
            squashed = branches.unmerged(repo, shas[0]) if squashed is None else squashed
            if ids := squashed.get(patch, frozenset()):
                yield Healed(commit, ids, "branch")


def _named(repo: Repository, commits: Sequence[Commit]) -> dict[str, frozenset[str]]:
    """By trailers, also those that a squash left in the body, references and quoted commits."""
    named = {commit.sha: set(_ids_said(commit)) for commit in commits}
    short = {commit.sha: set(re.findall(_REF, commit.message)) for commit in commits}
    quoted = {commit.sha: set(re.findall(_QUOTED, commit.message)) for commit in commits}
    known = decisions.known(repo) if any(short.values()) else ()
    linked = decisions.of_commits(repo, {sha for each in quoted.values() for sha in each})
    there = decisions.records(repo, {id for ids in named.values() for id in ids})
    found: dict[str, frozenset[str]] = {}
    for commit in commits:
        sha = commit.sha
        ids = {id for id in named[sha] if id in there}
        for ref in short[sha]:
            matching = refs.matches(refs.parse(ref), known)
            ids |= set(matching) if len(matching) == 1 else set()
        ids.update(id for other in quoted[sha] for id in linked.get(other, ()))
        if ids:
            found[sha] = frozenset(ids)
    return found


def _ids_said(commit: Commit) -> Iterator[str]:
    yield from (id for id in parse(commit.message).decision_ids if decisions.is_id(id))
    for value in re.findall(_TRAILER, commit.message):
        yield from (id for id in value.split(",") if decisions.is_id(id))


def _same(repo: Repository, commit: Commit, ids: frozenset[str]) -> frozenset[str]:
    """A patch of nothing but binary files says little, so the files must be the same, too."""
    if not ids:
        return ids
    files = {decisions.shown(path) for path in repo.files(commit.sha)}
    known = decisions.records(repo, ids)
    told = {path for note in known.values() for path in _files_in(note)}
    return ids if not told or files <= told else frozenset()


def _files_in(note: Mapping[str, object]) -> Iterator[str]:
    found = note.get("decisions")
    for each in found if isinstance(found, list) else []:
        files = each.get("files_changed") if isinstance(each, dict) else None
        yield from (
            path for path in (files if isinstance(files, list) else []) if isinstance(path, str)
        )


def ids_of(repo: Repository, commit: Commit) -> tuple[frozenset[str], str]:
    """The decisions of one commit, without writing anything, and by which sign."""
    try:
        found = next(find(repo, [commit]), None)
    except GitError:
        found = None
    return (found.ids, found.by) if found else (frozenset(), "")
