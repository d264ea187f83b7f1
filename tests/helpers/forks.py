"""Conversations with forks: a room, its log and its ids, told message by message.

    talk = Talk.of(ALICE, (BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = talk.fork("Try it", CLAUDE)
    talk.says(CLAUDE, proposes(), fork=fork, id="p")
    assert talk.readers("p") == {"alice", "claude"}

Unlike `given` it counts versions as the log does, keeps every record so that any message may be
cited by whoever can see it, and asks the room who that is.
"""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from accord.core.dialects.canonical import seal, unseal
from accord.core.kernel.actor import TIMER, Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Body, Fact, Failure, Record, Say, Seats, fold
from accord.core.kernel.refusal import Refused
from accord.core.room import CONTEXT, Tick
from accord.core.room.conflicts import Resolution
from accord.core.room.forks import ForkCreate, ForkSwitch
from accord.core.room.merges import MergeExecute, MergePropose
from accord.core.room.places import scope_of
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import House, Item, Room, Strategy
from tests.helpers.room import ALICE, HOUSE, STREAM, T0, Facts, given, joined, opened, prompts, when

START = "start"


class Talk:
    """A room while people talk in it."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.version = 100  # whatever came before
        self.log: list[Record] = []

    @classmethod
    def of(cls, *who: tuple[Actor, Role], **config: Any) -> "Talk":
        """Alice is admin; these are there, too, and a first prompt has been given."""
        talk = cls(given(opened(by=ALICE, **config), *(joined(*each) for each in who)))
        agent = next((actor for actor, _ in who if actor.kind == "agent"), None)
        if agent is not None:
            talk.says(ALICE, prompts(agent), id=START)
        return talk

    def tries(self, actor: Actor, body: Body, *, at: int = T0, **envelope: Any) -> Facts:
        """What it would lead to; the log is not written."""
        seen = [record for record in self.log if self.sees(actor.seat, record)]
        house: House = envelope.pop("house", HOUSE)
        facts = when(self.room, actor, body, at=at, known=seen, house=house, **envelope)
        fork = envelope.get("fork")
        facts.records = tuple(
            self._placed(record, fork, n) for n, record in enumerate(facts.records)
        )
        return facts

    def _placed(self, record: Record, fork: str | None, place: int) -> Record:
        """The record where the engine would put it."""
        return replace(record, version=self.version + place + 1, fork=record.event.fork or fork)

    def says(self, actor: Actor, body: Body, **envelope: Any) -> Facts:
        """It is said, decided, stored, read again and folded."""
        facts = self.tries(actor, body, **envelope)
        stored = [unseal(STREAM, r.version, seal(r).body).record for r in facts.records]
        after = fold(CONTEXT, self.room, facts.records)
        assert fold(CONTEXT, self.room, stored) == after
        self.room, self.version = after, self.version + len(facts.records)
        self.log += facts.records
        return facts

    def allows(self, actor: Actor, body: Body, **envelope: Any) -> bool:
        """Whether it is not refused."""
        try:
            self.tries(actor, body, **envelope)
        except Refused:
            return False
        return True

    def passes(self, at: int, **tick: Any) -> Facts:
        """Time has passed."""
        return self.says(TIMER, Tick(**tick), at=at)

    # Who sees what

    def audience(self, record: Record) -> Seats:
        """Everybody in the room who may see the record now."""
        to = CONTEXT.audience(self.room, record)
        here = frozenset(self.room.members)
        return here if to is None else here & to

    def sees(self, seat: str, record: Record) -> bool:
        to = CONTEXT.audience(self.room, record)
        return to is None or seat in to

    def record(self, id: str) -> Record:
        return next(record for record in self.log if record.id == id)

    def readers(self, id: str) -> Seats:
        """Who may see what was said under this id, now."""
        return self.audience(self.record(id))

    def hear(self, facts: Facts) -> Seats:
        """Everybody who hears of any of it."""
        heard = [self.audience(record) for record in facts.records if record.said is not None]
        told = [self.told(say) for say in facts if isinstance(say, Say)]
        return frozenset().union(*heard, *told)

    def told(self, say: Say) -> Seats:
        here = frozenset(self.room.members)
        return here if say.to is None else here & say.to

    # Forks, context and merges

    def fork(self, name: str, *who: Actor, by: Actor = ALICE, **how: Any) -> str:
        """A new fork's id."""
        inside = how.pop("fork", None)
        facts = self.says(by, forks(name, *who, **how), fork=inside)
        return facts.records[0].fork or ""

    def shelf(self, fork: str | None = None) -> dict[str, Any]:
        """What lies on a shelf."""
        return {key: item.content for key, item in self.items(fork).items()}

    def items(self, fork: str | None = None) -> dict[str, Item]:
        return dict(self.room.shelf.get(scope_of(fork), {}))

    def proposes_merge(self, source: str, target: str = "main", **how: Any) -> str:
        """A merge's id."""
        by = how.pop("by", ALICE)
        return self.says(by, merges(source, target, **how)).records[0].id

    def merges(self, source: str, target: str = "main", **how: Any) -> Facts:
        """Propose and do it."""
        answers = how.pop("answers", {})
        merge = self.proposes_merge(source, target, **how)
        return self.says(how.get("by", ALICE), executes_merge(merge, answers))


def forks(
    name: str, *who: Actor, copy: bool = False, point: str = START, reason: str = "To see"
) -> ForkCreate:
    seats = tuple(actor.seat for actor in who)
    return ForkCreate(
        name=name, from_point=point, reason=reason, participants=seats, copy_context=copy
    )


def switches(fork: str) -> ForkSwitch:
    return ForkSwitch(target_fork=fork)


def merges(
    source: str, target: str = "main", *, strategy: Strategy = Strategy.APPEND
) -> MergePropose:
    return MergePropose(
        source_fork=source, target_fork=target, strategy=strategy, summary="It works"
    )


def executes_merge(merge: str, answers: dict[str, Any] | None = None) -> MergeExecute:
    """With answers by key: `use_source`, `use_target`, or a value of one's own in a list."""
    settled = tuple(
        Resolution(key, "custom", answer[0])
        if isinstance(answer, list)
        else Resolution(key, answer)
        for key, answer in (answers or {}).items()
    )
    return MergeExecute(merge_proposal=merge, resolved_conflicts=settled or None)


def adds(key: str, content: str = "text", *, to: Iterable[str] | None = None) -> ContextAdd:
    named = None if to is None else tuple(to)
    return ContextAdd(key=key, content_type="text", content=content, visible_to=named)


def updates(key: str, content: str) -> ContextUpdate:
    return ContextUpdate(key=key, reason="Better", new_content=content)


def removes(key: str) -> ContextRemove:
    return ContextRemove(key=key, reason="Not needed")


def seats(*names: str) -> Seats:
    return frozenset(names)


def failures(facts: Iterable[Fact]) -> list[tuple[Failure, Seats | None]]:
    """Bad news, and for whom."""
    return [
        (say.body, say.to)
        for say in facts
        if isinstance(say, Say) and isinstance(say.body, Failure)
    ]
