"""Relinking: find a commit's decisions again after its id has changed.

The problem. A record is stored for a commit id, and commit ids do not last: an amend, a rebase, a
cherry-pick or a squash makes a new commit with a new id. The hooks see most rewrites as they
happen (`post-commit` for amends, `post-rewrite` for rebases) and carry the records over. They do
not see a rebase in another clone, a squash made by a forge, or anything done while they were not
installed, and a killed hook carries nothing over. This module then finds the record from the
commit alone. `pre-push` runs it for the commits that are pushed, `accord git heal` for a range,
and `accord why` for one commit without writing anything.

What links a commit to a decision. The first kind of link that yields something is used:

1. `commit`: the index `by-commit` has this very commit id. Nothing was rewritten, only the note
   is missing, as in a fresh clone.
2. `name`: the message names it. That is a decision trailer, also one that a squash pushed up into
   the body; a short reference such as `[pvp:dec-…]`, if exactly one known decision matches it; or
   a quoted commit ("cherry picked from commit …", or a squash message's "commit …" lines) that is
   on record. A decision id is usually a ULID, so a match by accident is out of the question.
3. `patch`: the commit makes the same change, meaning that `git patch-id` gives the same id for its
   diff. Position and commit metadata do not count; whitespace does, because in some languages it
   carries meaning. A diff of binary files alone says little, so the commit must also touch no
   file outside those of the recorded decision. `name` and `patch` add up: a commit may name one
   decision and repeat the change of another.
4. `branch`: the commit's change equals everything that an unmerged branch changed since it left
   the trunk. This is what a forge's squash merge looks like: one commit, an arbitrary message. The
   decisions of all commits on that branch then apply. `squash_merges` computes these patch ids,
   and `pre-push` indexes them so that clones without the branch can recognise the squash as well.

A commit of several decisions keeps them all, because a squash combines several commits. If a
message has PVP context but no record exists, `recovery` first creates the record that a hook
should have made here; other commits may be copies of that one and relink to it.

What is never invented. A wrong reason is worse than none, so there is no fuzzy matching: no
similar messages, no similar diffs, no neighbouring commits, and an ambiguous reference is
ignored. (Only where git itself names an old and a new commit does `rewrite_match` accept a pair
that merely shares a changed file or line.) A named decision counts only if its record exists, so
that a trailer cannot claim an unknown id. An amend that changed the diff relinks by its
trailers, or not at all. Relinking adds links and removes none: attaching keeps whatever is there,
so running it twice, or in two clones, ends in the same state. It creates no decision, approver or
reviewer either, only links to records that exist.

Costs are bounded: at most MAX_COMMITS commits per run, and the branch comparison, which is the
expensive one, runs only once a commit with a change has no other link.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.parser import parse_message
from accord.core.provenance.commit_message.trailers import DECISION_KEY
from accord.git import commit_content
from accord.git.process import GitError
from accord.git.records import decisions_ref, missing_records, squash_merges
from accord.git.records.decisions_ref import DecisionLink
from accord.git.records.record_refs import DECISIONS_REF
from accord.git.repository import Commit, Repository

MAX_COMMITS = 1000
# Kept as strings, compiled at first use: `pre-push` imports this module and rarely needs them.
_TRAILER = rf"(?mi)^\s*{DECISION_KEY}:\s*(\S+)\s*$"
_REF = r"\[pvp:(dec-[A-Za-z0-9_.-]+)\]"
_QUOTED = r"(?m)(?:^commit |cherry picked from commit )([0-9a-f]{40,64})\b"


class Relinked(NamedTuple):
    """A commit with the decisions found for it, and the kind of link that found them."""

    commit: Commit
    ids: frozenset[str]
    by: str


def relink_missing(
    repo: Repository, which: Sequence[str], max_count: int = MAX_COMMITS
) -> list[Relinked]:
    """Find and store the decisions of those commits in a range that lack a record."""
    commits = repo.commits(*which, max_count=max_count) if which else []
    if not repo.existing_refs(DECISIONS_REF) and not any(
        map(missing_records.mentions_session, commits)
    ):
        return []
    shas = [commit.sha for commit in commits]
    unrecorded = decisions_ref.commits_without_record(
        shas, *decisions_ref.links_and_notes(repo, shas)
    )
    return relink_commits(repo, [commit for commit in commits if commit.sha in unrecorded])


def relink_commits(repo: Repository, commits: Sequence[Commit]) -> list[Relinked]:
    """Find and store the decisions of these commits, which are known to lack a record.

    Missing records of local commits are created first, because others may be copies of those.
    """
    recovered = (
        missing_records.recover_records(repo)
        if any(map(missing_records.mentions_session, commits))
        else {}
    )
    relinked = [
        link._replace(by="trailers") if link.commit.sha in recovered else link
        for link in find_decisions(repo, commits)
    ]
    if relinked:
        names = commit_content.patch_ids_of(repo, (link.commit.sha for link in relinked))
        links = {
            link.commit.sha: DecisionLink(
                link.ids, frozenset({names.get(link.commit.sha, "")} - {""})
            )
            for link in relinked
        }
        decisions_ref.attach_decisions(repo, links)
    return relinked


def find_decisions(repo: Repository, commits: Sequence[Commit]) -> Iterator[Relinked]:
    """The decisions of each commit, by the most reliable kind of link that yields any."""
    if not commits:
        return
    shas = [commit.sha for commit in commits]
    linked = decisions_ref.ids_by_commit(repo, shas)
    named = _ids_named_in_messages(repo, commits)
    patch_by_sha = commit_content.patch_ids_of(repo, shas)
    by_patch = decisions_ref.ids_by_patch(repo, patch_by_sha.values())
    squashed: dict[str, frozenset[str]] | None = None
    for commit in commits:
        ids_by_change = _ids_if_same_files(
            repo, commit, by_patch.get(patch_by_sha.get(commit.sha, ""), frozenset())
        )
        if ids := linked.get(commit.sha):
            yield Relinked(commit, ids, "commit")
        elif ids := named.get(commit.sha, frozenset()) | ids_by_change:
            yield Relinked(commit, ids, "name" if named.get(commit.sha) else "patch")
        elif patch := patch_by_sha.get(commit.sha):
            squashed = (
                squash_merges.unmerged_branch_patches(repo, shas[0])
                if squashed is None
                else squashed
            )
            if ids := squashed.get(patch, frozenset()):
                yield Relinked(commit, ids, "branch")


def _ids_named_in_messages(
    repo: Repository, commits: Sequence[Commit]
) -> dict[str, frozenset[str]]:
    """Decisions named by trailers (also within the body), references and quoted commits."""
    named = {commit.sha: set(_ids_in_message(commit)) for commit in commits}
    references = {commit.sha: set(re.findall(_REF, commit.message)) for commit in commits}
    quoted = {commit.sha: set(re.findall(_QUOTED, commit.message)) for commit in commits}
    known = decisions_ref.all_decision_ids(repo) if any(references.values()) else ()
    linked = decisions_ref.ids_by_commit(repo, {sha for shas in quoted.values() for sha in shas})
    existing = decisions_ref.read_records(repo, {id for ids in named.values() for id in ids})
    result: dict[str, frozenset[str]] = {}
    for commit in commits:
        sha = commit.sha
        ids = {id for id in named[sha] if id in existing}
        for ref in references[sha]:
            matching = trailer_values.matching_ids(trailer_values.parse_ref(ref), known)
            ids |= set(matching) if len(matching) == 1 else set()
        ids.update(id for other in quoted[sha] for id in linked.get(other, ()))
        if ids:
            result[sha] = frozenset(ids)
    return result


def _ids_in_message(commit: Commit) -> Iterator[str]:
    yield from (
        id for id in parse_message(commit.message).decision_ids if decisions_ref.is_decision_id(id)
    )
    for value in re.findall(_TRAILER, commit.message):
        yield from (id for id in value.split(",") if decisions_ref.is_decision_id(id))


def _ids_if_same_files(repo: Repository, commit: Commit, ids: frozenset[str]) -> frozenset[str]:
    """The ids, if the commit touches only files of their records.

    The patch id of a change to binary files is too weak as evidence on its own.
    """
    if not ids:
        return ids
    files = {decisions_ref.escape_invalid_utf8(path) for path in repo.files_changed_by(commit.sha)}
    records = decisions_ref.read_records(repo, ids)
    recorded_files = {path for note in records.values() for path in _files_in_note(note)}
    return ids if not recorded_files or files <= recorded_files else frozenset()


def _files_in_note(note: Mapping[str, object]) -> Iterator[str]:
    entries = note.get("decisions")
    for entry in entries if isinstance(entries, list) else []:
        files = entry.get("files_changed") if isinstance(entry, dict) else None
        yield from (
            path for path in (files if isinstance(files, list) else []) if isinstance(path, str)
        )


def find_ids_of_commit(repo: Repository, commit: Commit) -> tuple[frozenset[str], str]:
    """The decisions of one commit and the kind of link, without writing anything."""
    try:
        link = next(find_decisions(repo, [commit]), None)
    except GitError:
        link = None
    return (link.ids, link.by) if link else (frozenset(), "")
