"""What a pact says to the sessions that work in its repository."""

from collections.abc import Iterator
from itertools import islice

from accord.core.dialects.pactmirror import Told
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM, aliases
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.times import iso
from accord.core.provenance.participants import AGENT, Participant, participant
from accord.core.room import pact as rooms
from accord.core.room.shelf import REVIEW
from accord.core.room.state import Lane, Member, Room
from accord.core.views.tasks import content, short
from accord.core.work.review import lanes
from accord.core.work.state import Task
from accord.core.work.words import Status, is_id
from accord.engine.engine import Engine

from .copy import PACT

LONGEST_WORDS = 2000
MOST_OPEN = 64
MOST_REVIEWS = 100  # that lie in a room at once; the others are told as these are judged
LONGEST_BRANCH = 300  # no fork has a longer name


def lanes_of(told: Told) -> tuple[Lane, ...]:
    """What merges go by; of very many features those that are not shipped."""
    found = (
        Lane(
            short(feature.id),
            feature.branch,
            tuple(short(task) for task in left[:MOST_OPEN]),
            feature.shipped,
        )
        for feature, left in lanes(told.work)
        if len(feature.branch) <= LONGEST_BRANCH
    )
    return tuple(islice(found, rooms.MOST_LANES))


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


def ended(told: Told, room: Room) -> Iterator[rooms.ReviewEnd]:
    """Reviews that wait here no longer."""
    for key in rooms.reviews(room):
        id = key.removeprefix(REVIEW)
        task = told.work.tasks.get(id)
        if task is None or task.status is not Status.AWAITING_REVIEW:
            yield rooms.ReviewEnd(task=id, reason=verdict(task))


def asked(told: Told, room: Room) -> Iterator[rooms.ReviewAsk]:
    """What waits for somebody who is here, and the room was not told."""
    here, lying = aliases(room.members), rooms.reviews(room)
    left = MOST_REVIEWS - len(lying)
    for task in told.work.tasks.values():
        key, checkpoint = rooms.review_key(task.id), told.checkpoints.get(task.id, "")
        waits = task.status is Status.AWAITING_REVIEW and task.reviewer in here and is_id(task.id)
        if waits and lying.get(key) != checkpoint and (key in lying or left > 0):
            left -= key not in lying
            yield rooms.ReviewAsk(task=task.id, checkpoint=checkpoint, words=words(task))


class Teller:
    """Tells rooms; each thing once, however often it is asked to."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self._over: set[str] = set()  # sessions whose end is final

    async def tell(self, session: str, told: Told) -> None:
        """The tasks as they are, and what waits for review."""
        if (room := await self._open(session, told)) is None:
            return
        shown = content(told.work, told.times, self.repo)
        tasks = rooms.TasksMirror(self.repo, shown, lanes_of(told))
        try:
            await self._say(session, self.engine.ids(), tasks)
        except Refused:
            await self._guard(session, told)  # it is heeded, though another one is shown
            raise
        for over in ended(told, room):
            await self._say(session, self.engine.ids(), over)
        room = await self.engine.state(f"room/{session}")
        for wish in asked(told, room):
            await self._say(session, self.engine.ids(), wish)

    async def guard(self, session: str, told: Told) -> None:
        """What merges go by in a session that left."""
        if await self._open(session, told) is not None:
            await self._guard(session, told)

    async def _guard(self, session: str, told: Told) -> None:
        body = rooms.TasksGuard(self.repo, lanes_of(told))
        await self._say(session, self.engine.ids(), body)

    async def _open(self, session: str, told: Told) -> Room | None:
        """The room, if it can be told and there is something to tell."""
        readable = told.work.started and not told.work.too_new
        if not readable or session in self._over:
            return None
        room: Room = await self.engine.state(f"room/{session}")
        if rooms.is_open(room):
            return room
        self._over.add(session)
        return None

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
