"""The state of the work according to a mirror, folded from its lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from accord.core.views import session_tasks
from accord.core.views.pact_board import TaskEvent
from accord.core.views.session_tasks import TaskTimes, truncate
from accord.core.work.event import LogEntry
from accord.core.work.fold import Fold
from accord.core.work.format import log_lines
from accord.core.work.mirror import event_key
from accord.core.work.state import Feature, Task, Work
from accord.core.work.vocabulary import EventKind, TaskStatus

MAX_TASK_EVENTS = 8  # kept of each task, the newest
MAX_WORDS_LENGTH = 400


class MirroredWork:
    """The work's state and the times at which tasks changed."""

    def __init__(self) -> None:
        self.times: dict[str, TaskTimes] = {}
        self.history: dict[str, tuple[TaskEvent, ...]] = {}
        self.checkpoints: dict[str, str] = {}  # the last of each task that waits for review
        self._at = ""
        self._fold = Fold()

    def add_lines(self, lines: Sequence[str]) -> bool:
        """Add lines; False, adding none, if one of them is older than what is known."""
        reading = log_lines.parse_log("\n".join(lines).encode())
        if reading.entries and reading.entries[0].at < self._at:
            return False
        fold, already_skipped = self._fold, len(self._fold.skipped)
        fold.add(reading.entries)
        skipped_lines = {skipped.line for skipped in fold.skipped[already_skipped:]}
        for entry in reading.entries:
            if entry.event.task_id and entry.line not in skipped_lines:
                self._note_task(entry)
        self._at = reading.latest or self._at
        return True

    def _note_task(self, entry: LogEntry) -> None:
        task, kind = entry.event.task_id, entry.event.event_type
        self.times[task] = _task_times(self.times.get(task), entry)
        self.history[task] = (*self.history.get(task, ()), _task_event(entry))[-MAX_TASK_EVENTS:]
        if kind == EventKind.CHECKPOINT:
            self.checkpoints[task] = event_key(entry.event.event_id or entry.at)
        elif kind == EventKind.ACCEPT:
            self.checkpoints.pop(task, None)

    # Results

    @property
    def head(self) -> Work:
        """The project and its seats, without features and tasks."""
        return self._fold.head

    @property
    def tasks(self) -> Mapping[str, Task]:
        """All tasks in their current state."""
        return self._fold.tasks

    @property
    def features(self) -> Mapping[str, Feature]:
        """All features, without their task lists."""
        return self._fold.features

    def work(self) -> Work:
        """The complete state."""
        return self._fold.work()

    def open_tasks(self) -> list[str]:
        """The tasks that are not accepted."""
        return [task.id for task in self.tasks.values() if task.status is not TaskStatus.ACCEPTED]

    def open_by_feature(self) -> dict[str, list[str]]:
        """The features that are not merged, each with its tasks that are not accepted."""
        by_feature: dict[str, list[str]] = {
            feature.id: [] for feature in self.features.values() if not feature.shipped
        }
        for task in self.open_tasks():
            by_feature[self.tasks[task].feature].append(task)
        return by_feature

    def waiting_by_reviewer(self) -> dict[str, list[str]]:
        """The tasks that wait for each reviewer."""
        waiting: dict[str, list[str]] = {}
        for task in self.tasks.values():
            if task.status is TaskStatus.AWAITING_REVIEW:
                waiting.setdefault(task.reviewer, []).append(task.id)
        return waiting

    def content(self, repo: str) -> dict[str, Any]:
        """The tasks as shown in a session."""
        work = replace(self.head, tasks=self._fold.tasks)
        unfinished = dict.fromkeys(self.open_tasks())
        return session_tasks.tasks_content(work, unfinished, self.times, repo)


def fold_lines(lines: Sequence[str]) -> MirroredWork:
    """Fold lines in any order."""
    work = MirroredWork()
    work.add_lines(lines)
    return work


def _task_times(before: TaskTimes | None, entry: LogEntry) -> TaskTimes:
    at = f"{entry.at}Z" if entry.at else ""
    done = at if entry.event.event_type == EventKind.ACCEPT else ""
    return TaskTimes(before.created if before else at, at, done)


def _task_event(entry: LogEntry) -> TaskEvent:
    event = entry.event
    words = truncate(event.payload.reason or event.payload.evidence, MAX_WORDS_LENGTH)
    at = f"{entry.at}Z" if entry.at else ""
    return TaskEvent(at, event.agent_id, event.event_type, words, event.payload.commit)
