"""Create missing records of local commits whose hook was killed or never ran.

Only commits that a reflog of this repository shows as made here are considered; commits fetched
from elsewhere have their records elsewhere.
"""

import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accord.core.provenance.commit_message.parser import parse_message
from accord.git.hooks import marker_files, post_commit
from accord.git.hooks.marker_files import PendingCommit
from accord.git.records import decisions_ref
from accord.git.repository import Commit, Repository

MAX_REFLOG_ENTRIES = 2000
MAX_RECOVERED = 50
RECOVERY_TIMEOUT_S = 1.0  # overall, so that a server that does not respond cannot add up delays
LOCAL_COMMIT_PREFIXES = ("commit: ", "commit (initial): ", "commit (merge): ", "commit (amend): ")
HEAD = "HEAD"


class ReflogEntry(NamedTuple):
    """One reflog entry: the commit, the ref, the action, and the ref's previous commit."""

    sha: str
    ref: str
    action: str
    before: str


def mentions_session(commit: Commit) -> bool:
    """Whether the message has PVP context, so that a record should exist."""
    return "pvp" in commit.message.lower() and parse_message(commit.message).has_context


def recover_records(repo: Repository) -> dict[str, frozenset[str]]:
    """Create missing records as the hook would have; the decisions of each recovered commit."""
    installed = bool(repo.read_config(r"^accord\.repo$"))
    local = _commits_made_here(repo) if installed else {}
    unrecorded = decisions_ref.commits_without_record(
        local, *decisions_ref.links_and_notes(repo, local)
    )
    missing = [sha for sha in local if sha in unrecorded]
    commits = repo.commits("--no-walk", revisions=missing) if missing else []
    pending = [commit for commit in commits if mentions_session(commit)][:MAX_RECOVERED]
    deadline = time.monotonic() + RECOVERY_TIMEOUT_S
    ids_by_sha: dict[str, frozenset[str]] = {}
    for commit in reversed(
        pending
    ):  # oldest first, because a decision starts where the previous one ends
        if time.monotonic() > deadline:
            break
        entry = local[commit.sha]
        branch = "" if entry.ref == HEAD else entry.ref
        whole = commit._replace(reflog=entry.action)
        record = post_commit.record_commit(
            repo, whole, [], post_commit.CommitOrigin(branch, entry.before)
        )
        ids_by_sha[commit.sha] = record.ids
        if record.no_answer and marker_files.expects_server(repo, os.environ):
            made_at = post_commit.committed_at_ms(commit)
            marker_files.add_pending(repo, PendingCommit(commit.sha, made_at, "", branch))
    return {sha: ids for sha, ids in ids_by_sha.items() if ids}


def _commits_made_here(repo: Repository) -> dict[str, ReflogEntry]:
    """Local commits by id; a branch's entry wins over HEAD's, which does not name the branch."""
    words = (
        "log",
        "--walk-reflogs",
        "--no-color",
        f"-n{MAX_REFLOG_ENTRIES}",
        "--format=%H %gD %gs",
    )
    listed = repo.try_text(*words, HEAD, "--branches", "--") or ""
    entries: dict[str, ReflogEntry] = {}
    for entry in _parse_reflog(listed.split("\n")):
        known = entries.get(entry.sha)
        if entry.action.startswith(LOCAL_COMMIT_PREFIXES) and (known is None or known.ref == HEAD):
            entries[entry.sha] = entry
    return entries


def _parse_reflog(rows: Iterable[str]) -> Iterator[ReflogEntry]:
    """Parse reflog lines, newest first, in which git interleaves all refs by time."""
    newer: dict[str, ReflogEntry] = {}
    for row in filter(None, rows):
        sha, _, rest = row.partition(" ")
        selector, _, action = rest.partition(" ")
        entry = ReflogEntry(sha, selector.rpartition("@{")[0], action, "")
        if later := newer.get(entry.ref):
            yield later._replace(before=sha)
        newer[entry.ref] = entry
    yield from newer.values()
