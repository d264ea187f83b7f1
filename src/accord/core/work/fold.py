"""Any log of any tool, folded to one state. What breaks a rule is passed by and told of.

Nothing here refuses: a log may have been merged by git, or written by a tool that checks less.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.core.work.event import Entry, Event
from accord.core.work.state import Feature, Seat, Task, Work
from accord.core.work.words import LIFTED, Kind, Status, is_commit, is_digest, is_slug

HIGHEST = 10**9
# Under names of their own: looking a member up takes as long as an event does.
ACCEPTED, AWAITING, IN_PROGRESS = Status.ACCEPTED, Status.AWAITING_REVIEW, Status.IN_PROGRESS
ASKED = Status.CHANGES_REQUESTED
ACCEPT = str(Kind.ACCEPT)


class Skipped(NamedTuple):
    """An event that changed nothing, because it could not have been said."""

    line: int
    check: str
    sentence: str


class Fold:
    """A state that takes events one after the other, in order."""

    def __init__(self, work: Work | None = None, seen: Iterable[str] = (), at: str = "") -> None:
        work = work or Work()
        self.head = Work(
            work.project, work.base_branch, work.protocol, work.started, work.seats, {}, {}
        )
        self.seen = dict.fromkeys(seen)
        self.at = at
        self.skipped: list[Skipped] = []
        self.tasks = dict(work.tasks)
        self.features = {each.id: each for each in work.features.values()}
        self.members = {each.id: list(each.tasks) for each in work.features.values()}
        # Kept beside the tasks, so that no event looks through all of them.
        self.open = {each.id: len(work.open_tasks(each)) for each in work.features.values()}
        self.waiting: dict[str, dict[str, None]] = {}
        for task in work.tasks.values():
            if task.status in LIFTED:
                self.wait(task)

    def take(self, entries: Sequence[Entry]) -> "Fold":
        """Fold events; one that was seen before, or is of a kind we do not know, passes by."""
        kinds, at = self.table().get, self.at
        for entry in self._unseen(entries):
            event, at = entry.event, entry.at
            if (apply := kinds(event.event_type)) and (no := apply(self, event)):
                self.skipped.append(Skipped(entry.line, *no))
        self.at = at
        return self

    def _unseen(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Those that come for the first time; most often all, which is quicker to see at once."""
        seen = self.seen
        ids = [id for entry in entries if (id := entry.event.event_id)]
        named = dict.fromkeys(ids)
        if len(named) == len(ids) and seen.keys().isdisjoint(named):
            seen |= named
            return entries
        new: list[Entry] = []
        for entry in entries:
            if id := entry.event.event_id:
                if id in seen:
                    continue
                seen[id] = None
            new.append(entry)
        return new

    def table(self) -> "Appliers":
        """What each kind of event does."""
        return APPLY

    def work(self) -> Work:
        """The state as it is now."""
        features = {
            id: Feature(id, each.branch, tuple(self.members[id]), each.shipped)
            for id, each in self.features.items()
        }
        head = self.head
        return Work(
            *(head.project, head.base_branch, head.protocol, head.started, head.seats),
            features,
            dict(self.tasks),
        )

    def wait(self, task: Task) -> None:
        """The next `join` of its owner takes this task up."""
        self.waiting.setdefault(task.owner, {})[task.id] = None

    def busy(self, task: Task) -> None:
        """It waits for its owner no longer."""
        if waits := self.waiting.get(task.owner):
            waits.pop(task.id, None)


No = tuple[str, str] | None
Applier = Callable[[Fold, Event], No]
Appliers = dict[str, Applier]


def on_init(fold: Fold, event: Event) -> No:
    """The first gives the roster; the highest version of any decides (OPEN-101)."""
    payload, head = event.payload, fold.head
    protocol = max(head.protocol, version(payload.protocol_version))
    if head.started:
        fold.head = Work(head.project, head.base_branch, protocol, started=True, seats=head.seats)
        same = (head.project, head.seats) == (payload.project, tuple(seats_in(payload.seats)))
        if same:
            return "init", "The project was started before; the first roster counts"
        return "roster", "The project was started before, with other seats; the first by time count"
    seats = tuple(seats_in(payload.seats))
    fold.head = Work(payload.project, payload.base_branch, protocol, started=True, seats=seats)
    return None


def on_assign(fold: Fold, event: Event) -> No:
    """A new task; a feature begins with its first, and keeps that one's branch."""
    payload, id, name = event.payload, event.task_id, event.feature
    if id in fold.tasks:
        return "e", f"Task {id} exists already, in feature {fold.tasks[id].feature}"
    if (feature := fold.features.get(name)) and feature.shipped:
        return "state", f"Feature {name} is shipped; it takes no task {id}"
    if feature is None:
        fold.features[name] = Feature(name, payload.branch)
        fold.members[name] = []
        fold.open[name] = 0
    fold.members[name].append(id)
    fold.open[name] += 1
    deps = tuple(words_in(payload.deps)) if payload.deps else ()
    fold.tasks[id] = task = Task(id, name, payload.owner, payload.reviewer, payload.spec, deps)
    fold.wait(task)
    return None


def on_join(fold: Fold, event: Event) -> No:
    """Whoever comes takes up all that was given to it."""
    for id in fold.waiting.pop(event.agent_id, ()):
        fold.tasks[id] = replace(fold.tasks[id], status=IN_PROGRESS)
    return None


def on_checkpoint(fold: Fold, event: Event) -> No:
    """The owner shows what was done."""
    if not (task := fold.tasks.get(event.task_id)):
        return unknown(event)
    if event.agent_id != task.owner:
        return "rule1", f"{event.agent_id} is not the owner of {task.id} ({task.owner})"
    if task.status is ACCEPTED:
        return "state", f"{task.id} is accepted, which no checkpoint takes back"
    fold.busy(task)
    said = event.payload
    shown = commit_in(said.commit)
    files = said.files if shown and is_digest(said.files) else ""
    fold.tasks[task.id] = replace(
        task, status=AWAITING, evidence=said.evidence, returned=False, commit=shown, files=files
    )
    return None


def on_verdict(fold: Fold, event: Event) -> No:
    """Only the reviewer, never the owner, and only while there is something to review."""
    if not (task := fold.tasks.get(event.task_id)):
        return unknown(event)
    if event.agent_id != task.reviewer or event.agent_id == task.owner:
        return "rule1", f"{event.agent_id} may not judge {task.id}; its reviewer is {task.reviewer}"
    # `Bob`, `bob ` and a Cyrillic bob are no seats: one person under two such names is not two.
    if not (is_slug(task.owner) and is_slug(task.reviewer)):
        return "rule1", f"{task.id}: {task.owner!r} and {task.reviewer!r} are not both seats"
    if task.status is not AWAITING:
        return "state", f"{task.id} is {task.status}; it can be judged while awaiting_review"
    if event.event_type == ACCEPT:
        seen = commit_in(event.payload.commit) or task.commit
        fold.tasks[task.id] = replace(task, status=ACCEPTED, reason="", returned=False, commit=seen)
        fold.open[task.feature] -= 1
    else:
        fold.tasks[task.id] = replace(
            task, status=ASKED, reason=event.payload.reason, returned=True
        )
        fold.wait(task)
    return None


def on_merge(fold: Fold, event: Event) -> No:
    """A feature ships when each of its tasks is accepted, and once."""
    if not (feature := fold.features.get(event.feature)):
        return "unknown", f"There is no feature {event.feature}"
    if feature.shipped:
        return "state", f"{feature.id} is shipped already"
    if not fold.members[feature.id] or fold.open[feature.id]:
        return "rule2", f"{feature.id} has tasks that are not accepted"
    fold.features[feature.id] = Feature(feature.id, feature.branch, shipped=True)
    return None


APPLY: Appliers = {
    Kind.INIT: on_init,
    Kind.ASSIGN: on_assign,
    Kind.JOIN: on_join,
    Kind.CHECKPOINT: on_checkpoint,
    Kind.ACCEPT: on_verdict,
    Kind.CHANGES: on_verdict,
    Kind.MERGE: on_merge,
}


def fold(entries: Sequence[Entry]) -> Work:
    """The state that a log in order describes."""
    return Fold().take(entries).work()


def unknown(event: Event) -> No:
    """Nobody assigned it."""
    return "unknown", f"There is no task {event.task_id}"


# What came from outside, as far as it can be read


def version(given: Any) -> int:
    """A protocol version; what is no number counts as none, as other tools have it."""
    if isinstance(given, str) and given.isascii() and given.isdigit():
        return int(given[:10])
    return int(min(max(given, 0), HIGHEST)) if isinstance(given, int | float) else 0


def seats_in(given: Any) -> Iterable[Seat]:
    """The seats in an `init`; what is none is passed by."""
    for each in given if isinstance(given, list) else ():
        match each:
            case {"id": str(id)}:
                entry, key = each.get("entry"), each.get("key")
                yield Seat(
                    *(id, tuple(words_in(each.get("roles")))),
                    entry if isinstance(entry, str) else "",
                    key if isinstance(key, str) else "",
                )
            case _:
                pass


def commit_in(given: str) -> str:
    """The id of a commit; what is none names nothing."""
    return given if given and is_commit(given) else ""


def words_in(given: Any) -> Iterable[str]:
    """The texts in a list."""
    return (each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
