"""Fold a pact's log to its state; events that break a rule are skipped and reported.

Nothing here refuses, because a log may have been merged by git or written by a tool that checks
less.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.core.work.event import LogEntry, PactEvent
from accord.core.work.state import Feature, Seat, Task, Work
from accord.core.work.vocabulary import (
    EventKind,
    TaskStatus,
    is_commit_id,
    is_sha256,
    is_slug,
)

MAX_VERSION = 10**9
# Module-level names, because looking up an enum member costs as much as folding an event.
ACCEPTED, AWAITING_REVIEW, IN_PROGRESS = (
    TaskStatus.ACCEPTED,
    TaskStatus.AWAITING_REVIEW,
    TaskStatus.IN_PROGRESS,
)
CHANGES_REQUESTED = TaskStatus.CHANGES_REQUESTED
ACCEPT, ASSIGN = str(EventKind.ACCEPT), str(EventKind.ASSIGN)


class SkippedEvent(NamedTuple):
    """An event that was skipped because it broke a rule."""

    line: int
    check: str
    sentence: str


class Fold:
    """A mutable state to which events are added in order."""

    def __init__(self) -> None:
        self.head = Work()
        self.skipped: list[SkippedEvent] = []
        self.tasks: dict[str, Task] = {}
        self.features: dict[str, Feature] = {}
        self.used_task_ids: set[str] = set()
        # Maintained incrementally, so that no event has to scan all tasks.
        self.task_ids: dict[str, list[str]] = {}
        self.open_counts: dict[str, int] = {}
        self.awaiting_owner: dict[str, dict[str, None]] = {}
        self._seen_ids: set[str] = set()

    def add(self, entries: Sequence[LogEntry]) -> "Fold":
        """Fold events; repeated events and unknown kinds are ignored."""
        applier_of, seen = self.appliers().get, self._seen_ids
        for entry in entries:
            event = entry.event
            if event.event_type == ASSIGN:
                self.used_task_ids.add(event.task_id)
            if id := event.event_id:
                if id in seen:
                    continue
                seen.add(id)
            if (apply := applier_of(event.event_type)) and (reason := apply(self, event)):
                self.skipped.append(SkippedEvent(entry.line, *reason))
        return self

    def appliers(self) -> "Appliers":
        """The function that applies each kind of event."""
        return APPLIERS

    def work(self) -> Work:
        """The current state as an immutable value."""
        features = {
            id: Feature(id, feature.branch, tuple(self.task_ids[id]), feature.shipped)
            for id, feature in self.features.items()
        }
        head = self.head
        return Work(
            *(head.project, head.base_branch, head.protocol, head.started, head.seats),
            features,
            dict(self.tasks),
            frozenset(self.used_task_ids),
        )

    def await_owner(self, task: Task) -> None:
        """Let the next `join` of the task's owner start it."""
        self.awaiting_owner.setdefault(task.owner, {})[task.id] = None

    def stop_awaiting_owner(self, task: Task) -> None:
        """Undo `await_owner`."""
        if waits := self.awaiting_owner.get(task.owner):
            waits.pop(task.id, None)


SkipReason = tuple[str, str] | None
Applier = Callable[[Fold, PactEvent], SkipReason]
Appliers = dict[str, Applier]


def on_init(fold: Fold, event: PactEvent) -> SkipReason:
    """The first `init` sets the roster; the highest protocol version wins (OPEN-101)."""
    payload, head = event.payload, fold.head
    protocol = max(head.protocol, parse_version(payload.protocol_version))
    if head.started:
        fold.head = Work(head.project, head.base_branch, protocol, started=True, seats=head.seats)
        same = (head.project, head.seats) == (
            payload.project,
            tuple(seats_in_payload(payload.seats)),
        )
        if same:
            return "init", "The pact was already started; the first `init` counts"
        return "roster", "The pact was already started with other seats; the earliest `init` counts"
    seats = tuple(seats_in_payload(payload.seats))
    fold.head = Work(payload.project, payload.base_branch, protocol, started=True, seats=seats)
    return None


def on_assign(fold: Fold, event: PactEvent) -> SkipReason:
    """Add a task; the first task of a feature creates it and sets its branch."""
    payload, id, name = event.payload, event.task_id, event.feature
    if id in fold.tasks:
        return "e", f"Task {id} already exists, in feature {fold.tasks[id].feature}"
    if (feature := fold.features.get(name)) and feature.shipped:
        return "state", f"Feature {name} is already shipped, so task {id} cannot be added"
    if feature is None:
        fold.features[name] = Feature(name, payload.branch)
        fold.task_ids[name] = []
        fold.open_counts[name] = 0
    fold.task_ids[name].append(id)
    fold.open_counts[name] += 1
    deps = tuple(strings_in(payload.deps)) if payload.deps else ()
    fold.tasks[id] = task = Task(id, name, payload.owner, payload.reviewer, payload.spec, deps)
    fold.await_owner(task)
    return None


def on_join(fold: Fold, event: PactEvent) -> SkipReason:
    """Start all tasks that wait for this seat."""
    for id in fold.awaiting_owner.pop(event.agent_id, ()):
        fold.tasks[id] = replace(fold.tasks[id], status=IN_PROGRESS)
    return None


def on_checkpoint(fold: Fold, event: PactEvent) -> SkipReason:
    """The owner submits work for review."""
    if not (task := fold.tasks.get(event.task_id)):
        return unknown_task(event)
    if event.agent_id != task.owner:
        return "rule1", f"{event.agent_id} is not the owner of {task.id} ({task.owner})"
    if task.status is ACCEPTED:
        return "state", f"{task.id} is already accepted; a checkpoint cannot reopen it"
    fold.stop_awaiting_owner(task)
    payload = event.payload
    shown = commit_or_empty(payload.commit)
    files = payload.files if shown and is_sha256(payload.files) else ""
    fold.tasks[task.id] = replace(
        task,
        status=AWAITING_REVIEW,
        evidence=payload.evidence,
        returned=False,
        commit=shown,
        files=files,
    )
    return None


def on_verdict(fold: Fold, event: PactEvent) -> SkipReason:
    """Accept or request changes; only by the reviewer, and only while a review is pending."""
    if not (task := fold.tasks.get(event.task_id)):
        return unknown_task(event)
    if event.agent_id != task.reviewer or event.agent_id == task.owner:
        return (
            "rule1",
            f"{event.agent_id} may not review {task.id}; its reviewer is {task.reviewer}",
        )
    # `Bob`, `bob ` and a Cyrillic bob are not valid seats: look-alikes may be one person.
    if not (is_slug(task.owner) and is_slug(task.reviewer)):
        return (
            "rule1",
            f"{task.id}: {task.owner!r} and {task.reviewer!r} are not both valid seat names",
        )
    if task.status is not AWAITING_REVIEW:
        return "state", f"{task.id} is {task.status}; it can only be reviewed while awaiting_review"
    if event.event_type == ACCEPT:
        seen = commit_or_empty(event.payload.commit) or task.commit
        fold.tasks[task.id] = replace(task, status=ACCEPTED, reason="", returned=False, commit=seen)
        fold.open_counts[task.feature] -= 1
    else:
        fold.tasks[task.id] = replace(
            task, status=CHANGES_REQUESTED, reason=event.payload.reason, returned=True
        )
        fold.await_owner(task)
    return None


def on_merge(fold: Fold, event: PactEvent) -> SkipReason:
    """Ship a feature, once, if all its tasks are accepted."""
    if not (feature := fold.features.get(event.feature)):
        return "unknown", f"There is no feature {event.feature}"
    if feature.shipped:
        return "state", f"{feature.id} is already shipped"
    if not fold.task_ids[feature.id] or fold.open_counts[feature.id]:
        return "rule2", f"{feature.id} has tasks that are not accepted"
    fold.features[feature.id] = Feature(feature.id, feature.branch, shipped=True)
    return None


APPLIERS: Appliers = {
    EventKind.INIT: on_init,
    EventKind.ASSIGN: on_assign,
    EventKind.JOIN: on_join,
    EventKind.CHECKPOINT: on_checkpoint,
    EventKind.ACCEPT: on_verdict,
    EventKind.CHANGES: on_verdict,
    EventKind.MERGE: on_merge,
}


def fold(entries: Sequence[LogEntry]) -> Work:
    """The state described by a log's entries in order."""
    return Fold().add(entries).work()


def unknown_task(event: PactEvent) -> SkipReason:
    """The reason to skip an event about a task that was never assigned."""
    return "unknown", f"There is no task {event.task_id}"


# Lenient parsing of untrusted fields


def parse_version(value: Any) -> int:
    """A protocol version; anything but a number counts as 0, as in other tools."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:10])
    return int(min(max(value, 0), MAX_VERSION)) if isinstance(value, int | float) else 0


def seats_in_payload(value: Any) -> Iterable[Seat]:
    """The seats in an `init` payload; invalid entries are ignored."""
    for item in value if isinstance(value, list) else ():
        match item:
            case {"id": str(id)}:
                entry, key = item.get("entry"), item.get("key")
                yield Seat(
                    *(id, tuple(strings_in(item.get("roles")))),
                    entry if isinstance(entry, str) else "",
                    key if isinstance(key, str) else "",
                )
            case _:
                pass


def commit_or_empty(value: str) -> str:
    """The commit id, or empty if it is not valid."""
    return value if value and is_commit_id(value) else ""


def strings_in(value: Any) -> Iterable[str]:
    """The strings in a list; empty if it is not a list."""
    return (item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
