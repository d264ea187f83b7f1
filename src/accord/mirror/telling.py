"""What a pact says to the sessions that work in its repository."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from accord.core.dialects.pactbook import Book
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM, aliases
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.times import iso
from accord.core.provenance.participants import AGENT, Participant, participant
from accord.core.room import pact as rooms
from accord.core.room.lanes import MOST_LANES
from accord.core.room.shelf import REVIEW
from accord.core.room.state import Lane, Member, Pact, Room
from accord.core.views.tasks import CUT, short
from accord.core.work.state import Task
from accord.core.work.words import Status, is_id
from accord.engine.engine import Engine

from .record import PACT

LONGEST_WORDS = 2000
MOST_OPEN = 8  # of the tasks that keep a feature from being merged
LONGEST_TASK = 64
LARGEST_LANES = 128 << 10  # bytes
MOST_REVIEWS = 100  # that lie in a room at once; the others are told as these are judged
LONGEST_BRANCH = 300  # no fork has a longer name
TOO_MANY = "The pact has more features that are not merged than a session keeps; merge some of them"


class Summary(NamedTuple):
    """What every session is told. `trouble`: why there may be work that nobody here knows of."""

    content: dict[str, Any]
    open: tuple[Lane, ...] = ()
    trouble: str = ""


def summary(book: Book, repo: str, blind: str = "") -> Summary:
    """A pact in so many bytes, however long it is."""
    lanes, whole = fitting(open_lanes(book))
    trouble = blind or ("" if whole else TOO_MANY)
    content = book.content(repo)
    return Summary({**content, "trouble": trouble} if trouble else content, lanes, trouble)


def says(book: Book, now: Summary) -> bool:
    """Whether there is a pact that this server can read, or a reason to fear one."""
    return (book.head.started and not book.head.too_new) or bool(now.trouble)


def open_lanes(book: Book) -> Iterator[Lane]:
    """Features that are not merged, with the first of the tasks that nobody accepted."""
    for feature, left in book.standing.left.items():
        branch = book.features[feature].branch
        tasks = tuple(short(task, LONGEST_TASK) for task in islice(left, MOST_OPEN))
        if len(branch) <= LONGEST_BRANCH:
            yield Lane(short(feature), branch, tasks)


def merged_lanes(book: Book, held: Pact | None) -> Iterator[Lane]:
    """Those of the features that a room goes by which are merged by now; news first."""
    for lane in sorted(held.lanes if held else (), key=lambda each: each.shipped):
        if is_merged(book, lane):
            yield Lane(lane.feature, lane.branch, shipped=True)


def is_merged(book: Book, lane: Lane) -> bool:
    """Whether the pact says so by now; a name that was too long is looked for among all."""
    found = book.features.get(lane.feature)
    if found is None and lane.feature.endswith(CUT):
        every = book.features.values()
        found = next((each for each in every if short(each.id) == lane.feature), None)
    return found is not None and found.shipped and found.branch == lane.branch


def fitting(lanes: Iterable[Lane]) -> tuple[tuple[Lane, ...], bool]:
    """As many of them as a room keeps, and whether these are all."""
    found, size = list[Lane](), 0
    for lane in lanes:
        size += len(msgspec.json.encode(lane))
        if size > LARGEST_LANES or len(found) == MOST_LANES:
            return tuple(found), False
        found.append(lane)
    return tuple(found), True


def words(task: Task) -> str:
    """What the reviewer's room reads."""
    shown = short(task.evidence, LONGEST_WORDS)
    return short(
        f"{task.owner} shows {task.id} ({task.feature}) for review by {task.reviewer}: {shown}\n"
        f"`accord pact accept {task.id}` accepts it, and "
        f"`accord pact changes {task.id} --reason …` says what it lacks.",
        2 * LONGEST_WORDS,
    )


def verdict(task: Task | None) -> str:
    """Why something waits no longer."""
    if task is None:
        return "The task is gone from the pact"
    if task.status is Status.ACCEPTED:
        return f"{task.reviewer} accepted it"
    if task.returned:
        return short(f"{task.reviewer} asks for changes: {task.reason}", LONGEST_WORDS)
    return f"It is {task.status} again"


def ended(book: Book, room: Room) -> Iterator[rooms.ReviewEnd]:
    """Reviews that wait here no longer."""
    for key in rooms.reviews(room):
        id = key.removeprefix(REVIEW)
        task = book.tasks.get(id)
        if task is None or task.status is not Status.AWAITING_REVIEW:
            yield rooms.ReviewEnd(task=id, reason=verdict(task))


def asked(book: Book, room: Room) -> Iterator[rooms.ReviewAsk]:
    """What waits for somebody who is here, and the room was not told."""
    here, lying = aliases(room.members), rooms.reviews(room)
    left = MOST_REVIEWS - len(lying)
    waiting = chain.from_iterable(
        tasks for reviewer, tasks in book.standing.waiting.items() if reviewer in here
    )
    for id in filter(is_id, waiting):
        key, checkpoint = rooms.review_key(id), book.checkpoints[id]
        if lying.get(key) != checkpoint and (key in lying or left > 0):
            left -= key not in lying
            yield rooms.ReviewAsk(task=id, checkpoint=checkpoint, words=words(book.tasks[id]))


class Teller:
    """Tells rooms; each thing once, however often it is asked to."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self._over: set[str] = set()  # sessions whose end is final

    async def tell(self, session: str, book: Book, now: Summary) -> None:
        """The tasks as they are, and what waits for review."""
        if (room := await self._open(session, book, now)) is None:
            return
        if not says(book, now):
            await self._guard(session, (), now)  # what was feared before is no more
            return
        lanes = self._lanes(room, book, now)
        told = rooms.TasksMirror(self.repo, now.content, lanes, now.trouble)
        try:
            await self._say(session, self.engine.ids(), told)
        except Refused:
            await self._guard(session, lanes, now)  # it is heeded, though another one is shown
            raise
        if (held := room.pacts.get(self.repo)) is not None and held.trouble != now.trouble:
            await self._guard(session, lanes, now)  # what is shown may be as it was all along
        for over in ended(book, room):
            await self._say(session, self.engine.ids(), over)
        room = await self.engine.state(f"room/{session}")
        for wish in asked(book, room):
            await self._say(session, self.engine.ids(), wish)

    async def guard(self, session: str, book: Book, now: Summary) -> None:
        """What merges go by in a session that left; should it show the tasks still, no longer."""
        if await self._open(session, book, now) is not None:
            await self.release(session)
            await self.heed(session, book, now)

    async def heed(self, session: str, book: Book, now: Summary) -> None:
        """What merges go by, whatever is shown."""
        if (room := await self._open(session, book, now)) is not None:
            await self._guard(session, self._lanes(room, book, now), now)

    async def _guard(self, session: str, lanes: tuple[Lane, ...], now: Summary) -> None:
        body = rooms.TasksGuard(self.repo, lanes, now.trouble)
        await self._say(session, self.engine.ids(), body)

    def _lanes(self, room: Room, book: Book, now: Summary) -> tuple[Lane, ...]:
        """All that is not merged, and what the room goes by that is merged by now."""
        merged = merged_lanes(book, room.pacts.get(self.repo))
        return fitting((*now.open, *merged))[0]

    async def _open(self, session: str, book: Book, now: Summary) -> Room | None:
        """The room, if it can be told and there is something to tell."""
        if session in self._over:
            return None
        room: Room = await self.engine.state(f"room/{session}")
        if not rooms.is_open(room):
            self._over.add(session)
            return None
        held = room.pacts.get(self.repo)
        feared = held is not None and bool(held.trouble)
        return room if feared or says(book, now) else None

    async def release(self, session: str) -> None:
        """The session works here no longer."""
        room: Room = await self.engine.state(f"room/{session}")
        if room.pact is not None:
            await self._say(session, self.engine.ids(), rooms.TasksRelease(self.repo))

    async def called(self, seat: str, sessions: tuple[str, ...]) -> str:
        """A seat as a trailer names it; who was never in a session here is an agent to us."""
        for session in sessions:
            room: Room = await self.engine.state(f"room/{session}")
            everybody = {**room.former, **room.members}
            if found := aliases(everybody).get(seat):
                return str(named(everybody[found], seat))
        return str(Participant(AGENT, seat))

    async def _say(self, session: str, id: str, body: Body) -> None:
        message = Message(id, iso(self.engine.clock.now()), session, SYSTEM, body)
        await self.engine.handle(message, PACT)


def named(member: Member, seat: str) -> Participant:
    """A member as trailers write it (OPEN-64)."""
    model = bool(member.metadata.get("model") or member.metadata.get("provider"))
    return participant(seat, human=member.kind is Kind.HUMAN, model=model)
