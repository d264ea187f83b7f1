"""Record the commits that were made while no server answered, once one does."""

import os
import time
from typing import Any, NamedTuple

from accord.core.provenance.commit_message.parser import parse_message
from accord.git import bridge_client, commit_content
from accord.git.hooks import marker_files, post_commit
from accord.git.hooks.marker_files import PendingCommit
from accord.git.records import decisions_ref
from accord.git.records.decisions_ref import DecisionLink, decision_ids_of
from accord.git.repository import Repository

TOO_SLOW = "the records of earlier commits come first, and took longer than a hook may wait"
# The server knows no session for them, or several: another one may, or a later one.
MAX_UNKNOWN_ASKED = 5  # a server that knows none of them must not cost every hook its whole time
KEPT_CODES = frozenset({marker_files.NOT_FOUND, "SESSION_NOT_FOUND", "CONFLICT"})


class RecordedCommits(NamedTuple):
    """The decisions of commits that now have a record; why the others still wait, if they must."""

    ids_by_sha: dict[str, frozenset[str]]
    reason: str = ""


def record_pending(repo: Repository) -> RecordedCommits:
    """Ask the server for the record of each commit that waits, oldest first, within one timeout.

    With a reason, no later commit may be recorded yet: it would get what belongs to those before.
    """
    if not bridge_client.is_reachable(os.environ):
        return RecordedCommits({}, marker_files.no_answer_reason(os.environ))
    deadline = time.monotonic() + bridge_client.response_timeout(os.environ)
    recorded: dict[str, frozenset[str]] = {}
    unknown = 0
    for pending in marker_files.pending_commits(repo):
        left = min(deadline - time.monotonic(), bridge_client.hook_wait.left_s)
        if left <= 0:
            return RecordedCommits(recorded, TOO_SLOW)
        if repo.resolve(pending.sha) is not None:
            if unknown >= MAX_UNKNOWN_ASKED and _names_session(repo, pending):
                continue
            response = _request_record(repo, pending, left)
            code, message = marker_files.refusal_in(response)
            if response is None or code in marker_files.RETRY_CODES:
                reason = message or marker_files.no_answer_reason(os.environ)
                return RecordedCommits(recorded, reason)
            if code in KEPT_CODES and not _names_session(repo, pending):
                break
            if code in KEPT_CODES:
                # Nothing of another session belongs to it, so the next one need not wait. Next time
                # it is asked for behind the others.
                marker_files.add_pending(repo, pending)
                unknown += 1
                continue
            if ids := _attach(repo, pending, response):
                recorded[pending.sha] = ids
        marker_files.remove_pending(repo, [pending.sha])
    return RecordedCommits(recorded)


def _names_session(repo: Repository, pending: PendingCommit) -> bool:
    return bool(pending.session or parse_message(repo.commit(pending.sha).message).session_id)


def _request_record(repo: Repository, pending: PendingCommit, left: float) -> dict[str, Any] | None:
    commit = repo.commit(pending.sha)
    patch = commit_content.patch_of(repo, commit)
    message = parse_message(commit.message)
    details = post_commit.details_of(commit, message, patch, pending.branch)
    more: dict[str, Any] = {"made_at": pending.made_at}
    if pending.session:
        more["session"] = pending.session
    elif len(commit.parents) > 1 and not message.has_context:
        for session, forks in post_commit.merged_forks(repo, commit).items():
            more |= {"session": session, "merges": sorted(forks)}
    return post_commit.request_record(repo, details, left, **more)


def _attach(repo: Repository, pending: PendingCommit, response: dict[str, Any]) -> frozenset[str]:
    """Write note and decision; empty if the server says that nothing led to the commit."""
    note = response.get("note")
    if not isinstance(note, dict):
        return frozenset()
    ids = frozenset(decision_ids_of(note))
    if ids:
        patch = commit_content.patch_of(repo, repo.commit(pending.sha)).patch_id
        link = DecisionLink(ids, frozenset({patch} - {""}))
        made_of_message = _ids_without_server(repo, pending.sha) - ids
        decisions_ref.attach_decisions(
            repo, {pending.sha: link}, dict.fromkeys(ids, note), replaced=made_of_message
        )
    return ids


def _ids_without_server(repo: Repository, sha: str) -> frozenset[str]:
    """The decisions in the commit's note that were made of its message, with no place in a log."""
    noted = decisions_ref.notes_of(repo, [sha]).get(sha) or {}
    return frozenset(
        id
        for made in decisions_ref.decisions_in(noted)
        if isinstance(id := made.get("id"), str) and not made.get("position")
    )
