"""What the approval of a merge covers: the fork as it was when the merge was proposed.

Messages in the fork and commits on its branch void it. Hooks report commits, and the session notes
them: each clone of a repository has a stream of its own, so only the session can tell one clone
that another has already committed a run, and which merges a commit voids.
"""

import re
from collections.abc import Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolver, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission
from accord.core.room.field_types import Id
from accord.core.room.forking.fork_state import Merge
from accord.core.room.state import Room, without_keys
from accord.core.room.visibility import outcome_key, remember_outcomes

if TYPE_CHECKING:
    from accord.core.room.forking.merges import MergeExecute

HEAD_KEY = "head"
COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Messages in a fork that leave what a merge would bring back as it is.
UNCHANGING_TYPES = frozenset(
    {
        "tool.approve",
        "tool.reject",
        "gate.request",
        "gate.approve",
        "gate.reject",
        "gate.timeout",
        "merge.propose",
        "merge.execute",
    }
)
MAX_REPORTED_RUNS = 1000  # of more, the newest


class CommitReport(Body, frozen=True, omit_defaults=True, gc=False):
    """A commit was made in a repository, in the fork's branch if it names one."""

    type = "commit.report"
    needs = Permission.SERVER_ONLY
    while_paused = True

    repo: Id
    sha: Id
    in_fork: Id | None = None
    runs: Annotated[tuple[Id, ...], Meta(max_length=MAX_REPORTED_RUNS)] = ()


class CommitReported(Event, frozen=True, kw_only=True, gc=False):
    """A commit was reported, with the proposals whose runs it contains; not sent to members."""

    name = "commit.reported"

    repo: str
    sha: str
    runs: tuple[str, ...] = ()


def head_of(metadata: Mapping[str, Any] | None) -> str:
    """The commit that is to be merged; empty if the proposal does not say."""
    head = (metadata or {}).get(HEAD_KEY)
    return head if isinstance(head, str) and COMMIT_ID.fullmatch(head) else ""


def check_head(metadata: Mapping[str, Any] | None) -> None:
    """Refuse a head that is no commit id: the gate would show what cannot be checked."""
    if metadata and HEAD_KEY in metadata and not head_of(metadata):
        detail = "metadata.head must be a whole commit id: 40 or 64 lower-case hexadecimal digits"
        raise Refused(Reason.MALFORMED, detail)


def void_reason(merge: Merge) -> str:
    changed = f"{merge.source} changed after the merge was proposed ({merge.changed})"
    return f"{changed}; propose it again"


def check_unchanged(room: Room, merge: Merge) -> None:
    """Refuse a merge whose approval is void; an open answer in the fork changes it as well."""
    streaming = any(stream.fork == merge.source for stream in room.streams.values())
    if merge.needs_approval and streaming and not merge.changed:
        merge = replace(merge, changed="an answer that is still open")
    if merge.needs_approval and merge.changed:
        raise Refused(Reason.GATE_FAILED, void_reason(merge))


def mark_unapproved(merge: Merge, body: "MergeExecute") -> "MergeExecute":
    """Name the values that the executor wrote: the gate showed the two sides alone."""
    custom = tuple(
        resolution.conflict_id
        for resolution in body.resolved_conflicts or ()
        if resolution.resolution == "custom"
    )
    return replace(body, not_approved=custom if merge.needs_approval and custom else None)


def noting_changes(evolver: Evolver) -> Evolver:
    """The evolver, which also notes that a fork changed for which a merge is proposed."""

    @wraps(evolver)
    def evolve(room: Room, event: Event, record: Record) -> Room:
        after: Room = evolver(room, event, record)
        if record.fork is None or not after.merges or record.said is None:
            return after
        return note_change(after, record.fork, f"{record.said.type} {record.id}", record.said.type)

    return evolve


def note_change(room: Room, fork: str, change: str, type: str) -> Room:
    """Mark the merges of this fork that were proposed before the change."""
    if type in UNCHANGING_TYPES:
        return room
    return _with_change(room, change, [m for m in room.merges.values() if m.source == fork])


def note_commit(room: Room, fork: str, sha: str) -> Room:
    """Mark the merges of this fork whose proposal showed another commit as its head."""
    proposed = [m for m in room.merges.values() if m.source == fork and m.head not in ("", sha)]
    return _with_change(room, f"commit {sha[:12]}", proposed)


def _with_change(room: Room, change: str, merges: list[Merge]) -> Room:
    changed = {merge.id: replace(merge, changed=change) for merge in merges if not merge.changed}
    return replace(room, merges={**room.merges, **changed}) if changed else room


def without_void_merges(room: Room, source: str) -> Room:
    """Forget the void merges of a fork for which a new one is proposed."""
    void = [merge for merge in room.merges.values() if merge.source == source and merge.changed]
    outcomes = {outcome_key(m.target, m.id): f"rejected: {m.source} changed" for m in void}
    return replace(
        room,
        merges=without_keys(room.merges, *(merge.id for merge in void)),
        past=remember_outcomes(room.past, outcomes),
    )


def report_commit(room: Room, command: Command, body: CommitReport) -> Iterator[EventOrEffect]:
    """Also in a session that has ended: its last work may be committed later."""
    if room.exists:
        yield CommitReported(repo=body.repo, sha=body.sha, runs=body.runs, fork=body.in_fork)


def on_reported(room: Room, event: CommitReported, record: Record) -> Room:
    """A commit on a fork's branch voids the merges that were to merge another head."""
    return note_commit(room, record.fork, event.sha) if record.fork else room


DECIDE: Deciders = {CommitReport: report_commit}
EVOLVE: Evolvers = {CommitReported: on_reported}
