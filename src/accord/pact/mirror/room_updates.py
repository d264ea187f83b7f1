"""Updates from a pact to the sessions that are bound to its repository."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from accord.core.kernel.ids import SYSTEM, ids_by_slug
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.provenance.commit_message.trailer_values import AGENT, Participant, participant_for
from accord.core.room.forking import pact_tasks as rooms
from accord.core.room.forking.fork_state import PactFeature, PactSummary
from accord.core.room.forking.pact_merge_rule import MAX_FEATURES
from accord.core.room.shared_context.context_items import REVIEW_PREFIX
from accord.core.room.state import Member, Room
from accord.core.views.session_tasks import ELLIPSIS, truncate
from accord.core.work.state import Task
from accord.core.work.vocabulary import TaskStatus, is_work_id
from accord.engine.engine import Engine
from accord.pact.mirror.mirrored_work import MirroredWork
from accord.pact.mirror.recorder import PACT_ACTOR

MAX_WORDS_LENGTH = 2000
MAX_OPEN_TASKS = 8  # named per feature
MAX_TASK_LENGTH = 64
MAX_LANES_BYTES = 128 << 10
MAX_REVIEWS = 100  # pending in a room at once; others follow as these are decided
MAX_BRANCH_LENGTH = 300  # fork names are shorter
TOO_MANY_FEATURES_NOTICE = (
    "The pact has more unmerged features than a session can track; merge some of them"
)


class RoomSummary(NamedTuple):
    """What every session receives; `trouble` is why there may be unknown work."""

    content: dict[str, Any]
    open: tuple[PactFeature, ...] = ()
    trouble: str = ""


def summarize(work: MirroredWork, repo: str, blind: str = "") -> RoomSummary:
    """A summary of bounded size, however large the pact is."""
    lanes, is_complete = limit_lanes(open_lanes(work))
    trouble = blind or ("" if is_complete else TOO_MANY_FEATURES_NOTICE)
    content = work.content(repo)
    return RoomSummary({**content, "trouble": trouble} if trouble else content, lanes, trouble)


def is_reportable(book: MirroredWork, now: RoomSummary) -> bool:
    """Whether there is a pact that this server can read, or a reason to fear one."""
    return (book.head.started and not book.head.too_new) or bool(now.trouble)


def open_lanes(work: MirroredWork) -> Iterator[PactFeature]:
    """Unmerged features, each with the first few open tasks."""
    for feature, open_tasks in work.open_by_feature().items():
        branch = work.features[feature].branch
        tasks = tuple(
            truncate(task, MAX_TASK_LENGTH) for task in islice(open_tasks, MAX_OPEN_TASKS)
        )
        if len(branch) <= MAX_BRANCH_LENGTH:
            yield PactFeature(truncate(feature), branch, tasks)


def merged_lanes(work: MirroredWork, held: PactSummary | None) -> Iterator[PactFeature]:
    """Features known to a room that are now merged, newly merged ones first."""
    for lane in sorted(held.lanes if held else (), key=lambda lane_: lane_.shipped):
        if is_merged(work, lane):
            yield PactFeature(lane.feature, lane.branch, shipped=True)


def is_merged(work: MirroredWork, lane: PactFeature) -> bool:
    """Whether the feature is shipped; a truncated name is compared with all features."""
    feature = work.features.get(lane.feature)
    if feature is None and lane.feature.endswith(ELLIPSIS):
        features = work.features.values()
        feature = next(
            (candidate for candidate in features if truncate(candidate.id) == lane.feature), None
        )
    return feature is not None and feature.shipped and feature.branch == lane.branch


def limit_lanes(lanes: Iterable[PactFeature]) -> tuple[tuple[PactFeature, ...], bool]:
    """As many lanes as a room can hold, and whether these are all."""
    kept, size = list[PactFeature](), 0
    for lane in lanes:
        size += len(msgspec.json.encode(lane))
        if size > MAX_LANES_BYTES or len(kept) == MAX_FEATURES:
            return tuple(kept), False
        kept.append(lane)
    return tuple(kept), True


def review_request_text(task: Task) -> str:
    """The text of a review request, shown in the reviewer's session."""
    shown = truncate(task.evidence, MAX_WORDS_LENGTH)
    return truncate(
        f"{task.owner} submits {task.id} ({task.feature}) for review by {task.reviewer}: {shown}\n"
        f"`accord pact accept {task.id}` accepts it, and "
        f"`accord pact changes {task.id} --reason …` requests changes.",
        2 * MAX_WORDS_LENGTH,
    )


def review_end_reason(task: Task | None) -> str:
    """Why a review is no longer pending."""
    if task is None:
        return "The task is no longer in the pact"
    if task.status is TaskStatus.ACCEPTED:
        return f"{task.reviewer} accepted it"
    if task.returned:
        return truncate(f"{task.reviewer} requested changes: {task.reason}", MAX_WORDS_LENGTH)
    return f"It is {task.status} again"


def ended_reviews(work: MirroredWork, room: Room) -> Iterator[rooms.ReviewEnd]:
    """Reviews pending in the room that have ended."""
    for key in rooms.pending_reviews(room):
        id = key.removeprefix(REVIEW_PREFIX)
        task = work.tasks.get(id)
        if task is None or task.status is not TaskStatus.AWAITING_REVIEW:
            yield rooms.ReviewEnd(task=id, reason=review_end_reason(task))


def requested_reviews(work: MirroredWork, room: Room) -> Iterator[rooms.ReviewAsk]:
    """Reviews that wait for a member of the room and were not requested there yet."""
    members, pending = ids_by_slug(room.members), rooms.pending_reviews(room)
    left = MAX_REVIEWS - len(pending)
    waiting = chain.from_iterable(
        tasks for reviewer, tasks in work.waiting_by_reviewer().items() if reviewer in members
    )
    for id in filter(is_work_id, waiting):
        key, checkpoint = rooms.review_key(id), work.checkpoints[id]
        if pending.get(key) != checkpoint and (key in pending or left > 0):
            left -= key not in pending
            yield rooms.ReviewAsk(
                task=id, checkpoint=checkpoint, words=review_request_text(work.tasks[id])
            )


class RoomUpdater:
    """Updates rooms; repeating an update changes nothing."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self._closed_sessions: set[str] = set()  # sessions that were closed, which is final

    async def update(self, session: str, work: MirroredWork, now: RoomSummary) -> None:
        """Send the current tasks, and start or end review requests."""
        if (room := await self._open_room(session, work, now)) is None:
            return
        if not is_reportable(work, now):
            await self._submit_guard(session, (), now)  # clears an earlier trouble
            return
        lanes = self._lanes_of(room, work, now)
        body = rooms.TasksMirror(self.repo, now.content, lanes, now.trouble)
        try:
            await self._submit(session, self.engine.new_id(), body)
        except Refused:
            # Another pact's tasks are shown, but this one's rules apply all the same.
            await self._submit_guard(session, lanes, now)
            raise
        if (held := room.pacts.get(self.repo)) is not None and held.trouble != now.trouble:
            # The shown tasks may be unchanged, in which case nothing was recorded above.
            await self._submit_guard(session, lanes, now)
        for ended in ended_reviews(work, room):
            await self._submit(session, self.engine.new_id(), ended)
        room = await self.engine.state(f"room/{session}")
        for requested in requested_reviews(work, room):
            await self._submit(session, self.engine.new_id(), requested)

    async def guard_former_session(
        self, session: str, work: MirroredWork, now: RoomSummary
    ) -> None:
        """Keep the merge rules of a session that left the repository; hide its tasks."""
        if await self._open_room(session, work, now) is not None:
            await self.release(session)
            await self.guard_merges(session, work, now)

    async def guard_merges(self, session: str, work: MirroredWork, now: RoomSummary) -> None:
        """Update the features that the session's merges are checked against."""
        if (room := await self._open_room(session, work, now)) is not None:
            await self._submit_guard(session, self._lanes_of(room, work, now), now)

    async def _submit_guard(
        self, session: str, lanes: tuple[PactFeature, ...], now: RoomSummary
    ) -> None:
        body = rooms.TasksGuard(self.repo, lanes, now.trouble)
        await self._submit(session, self.engine.new_id(), body)

    def _lanes_of(
        self, room: Room, work: MirroredWork, now: RoomSummary
    ) -> tuple[PactFeature, ...]:
        """All unmerged features, and those known to the room that are now merged."""
        merged = merged_lanes(work, room.pacts.get(self.repo))
        return limit_lanes((*now.open, *merged))[0]

    async def _open_room(self, session: str, work: MirroredWork, now: RoomSummary) -> Room | None:
        """The room, if it is open and there is something to report."""
        if session in self._closed_sessions:
            return None
        room: Room = await self.engine.state(f"room/{session}")
        if not rooms.is_open(room):
            self._closed_sessions.add(session)
            return None
        held = room.pacts.get(self.repo)
        had_trouble = held is not None and bool(held.trouble)
        return room if had_trouble or is_reportable(work, now) else None

    async def release(self, session: str) -> None:
        """Hide the tasks from a session that is no longer bound to the repository."""
        room: Room = await self.engine.state(f"room/{session}")
        if room.pact is not None:
            await self._submit(session, self.engine.new_id(), rooms.TasksRelease(self.repo))

    async def participant_name(self, seat: str, sessions: tuple[str, ...]) -> str:
        """A seat as trailers name it; an agent, unless a session knows the seat as a person."""
        for session in sessions:
            room: Room = await self.engine.state(f"room/{session}")
            everybody = {**room.former, **room.members}
            if id := ids_by_slug(everybody).get(seat):
                return str(participant_of(everybody[id], seat))
        return str(Participant(AGENT, seat))

    async def _submit(self, session: str, id: str, body: Body) -> None:
        message = Message(id, to_iso(self.engine.clock.now()), session, SYSTEM, body)
        await self.engine.handle(message, PACT_ACTOR)


def participant_of(member: Member, seat: str) -> Participant:
    """A member as a participant in trailers (OPEN-64)."""
    model = bool(member.metadata.get("model") or member.metadata.get("provider"))
    return participant_for(seat, human=member.kind is Kind.HUMAN, model=model)
