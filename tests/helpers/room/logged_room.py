"""A room with its log, for tests about forks, visibility and citations.

    room = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = room.fork("Try it", CLAUDE)
    room.send(CLAUDE, tool_propose(), fork=fork, id="p")
    assert room.readers("p") == {"alice", "claude"}

Unlike `given`, it counts versions as the log does and keeps every record, so that later messages
can cite any message their sender may see.
"""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from accord.core.dialects.stored_records import decode_record, encode_record
from accord.core.kernel.actor import TIMER_ACTOR, Actor
from accord.core.kernel.context import EventOrEffect, fold
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Body, Failure, MemberIds
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room import CONTEXT
from accord.core.room.deadlines import Tick
from accord.core.room.forking.conflicts import MergeResolution
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.forks import ForkCreate, ForkSwitch
from accord.core.room.forking.merges import MergeExecute, MergePropose
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import ContextItem, Room
from accord.core.room.visibility import scope_of
from tests.helpers.room.scenario import (
    ALICE,
    DEFAULT_POLICY,
    STREAM,
    T0,
    CommandOutcome,
    create_step,
    given,
    join_step,
    prompt_submit,
    when,
)

START_ID = "start"


class LoggedRoom:
    """A room whose messages are decided, stored, read back and folded one by one."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.version = 100  # as if the stream had earlier records
        self.log: list[Record] = []

    @classmethod
    def with_members(cls, *who: tuple[Actor, Role], **config: Any) -> "LoggedRoom":
        """A room with Alice as admin, these members, and a first prompt."""
        talk = cls(given(create_step(by=ALICE, **config), *(join_step(*each) for each in who)))
        agent = next((actor for actor, _ in who if actor.kind == "agent"), None)
        if agent is not None:
            talk.send(ALICE, prompt_submit(agent), id=START_ID)
        return talk

    def decide(self, actor: Actor, body: Body, *, at: int = T0, **envelope: Any) -> CommandOutcome:
        """The outcome of a message without storing it."""
        seen = [record for record in self.log if self.can_see(actor.principal, record)]
        house: ServerPolicy = envelope.pop("house", DEFAULT_POLICY)
        facts = when(self.room, actor, body, at=at, known=seen, policy=house, **envelope)
        fork = envelope.get("fork")
        facts.records = tuple(
            self._with_version(record, fork, n) for n, record in enumerate(facts.records)
        )
        return facts

    def _with_version(self, record: Record, fork: str | None, place: int) -> Record:
        """The record with the version and seq that the engine would assign."""
        return replace(record, version=self.version + place + 1, fork=record.event.fork or fork)

    def send(self, actor: Actor, body: Body, **envelope: Any) -> CommandOutcome:
        """Decide, store, read back and fold a message."""
        facts = self.decide(actor, body, **envelope)
        stored = [
            decode_record(STREAM, r.version, encode_record(r).body).record for r in facts.records
        ]
        after = fold(CONTEXT, self.room, facts.records)
        assert fold(CONTEXT, self.room, stored) == after
        self.room, self.version = after, self.version + len(facts.records)
        self.log += facts.records
        return facts

    def allows(self, actor: Actor, body: Body, **envelope: Any) -> bool:
        """Whether the message would be accepted."""
        try:
            self.decide(actor, body, **envelope)
        except Refused:
            return False
        return True

    def tick(self, at: int, **tick: Any) -> CommandOutcome:
        """Let time pass."""
        return self.send(TIMER_ACTOR, Tick(**tick), at=at)

    # Visibility

    def audience(self, record: Record) -> MemberIds:
        """The members who may see the record now."""
        to = CONTEXT.presence.audience(self.room, record)
        here = frozenset(self.room.members)
        return here if to is None else here & to

    def can_see(self, seat: str, record: Record) -> bool:
        to = CONTEXT.presence.audience(self.room, record)
        return to is None or seat in to

    def record(self, id: str) -> Record:
        return next(record for record in self.log if record.id == id)

    def readers(self, id: str) -> MemberIds:
        """The members who may see the message with this id now."""
        return self.audience(self.record(id))

    def recipients_of(self, facts: CommandOutcome) -> MemberIds:
        """All members who receive any of these events or effects."""
        stored = [self.audience(record) for record in facts.records if record.said is not None]
        relayed = [self.relay_recipients(say) for say in facts if isinstance(say, Relay)]
        return frozenset().union(*stored, *relayed)

    def relay_recipients(self, say: Relay) -> MemberIds:
        here = frozenset(self.room.members)
        return here if say.to is None else here & say.to

    # Forks, context and merges

    def fork(self, name: str, *who: Actor, by: Actor = ALICE, **how: Any) -> str:
        """Create a fork; returns its id."""
        inside = how.pop("fork", None)
        facts = self.send(by, fork_create(name, *who, **how), fork=inside)
        return facts.records[0].fork or ""

    def context(self, fork: str | None = None) -> dict[str, Any]:
        """The contents of a fork's context items by key."""
        return {key: item.content for key, item in self.context_items(fork).items()}

    def context_items(self, fork: str | None = None) -> dict[str, ContextItem]:
        return dict(self.room.shelf.get(scope_of(fork), {}))

    def propose_merge(self, source: str, target: str = "main", **how: Any) -> str:
        """Propose a merge; returns its id."""
        by = how.pop("by", ALICE)
        return self.send(by, merge_propose(source, target, **how)).records[0].id

    def merge(self, source: str, target: str = "main", **how: Any) -> CommandOutcome:
        """Propose and execute a merge."""
        answers = how.pop("answers", {})
        merge = self.propose_merge(source, target, **how)
        return self.send(how.get("by", ALICE), merge_execute(merge, answers))


def fork_create(
    name: str, *who: Actor, copy: bool = False, point: str = START_ID, reason: str = "To see"
) -> ForkCreate:
    """A `fork.create` with these members."""
    seats = tuple(actor.principal for actor in who)
    return ForkCreate(
        name=name, from_point=point, reason=reason, participants=seats, copy_context=copy
    )


def fork_switch(fork: str) -> ForkSwitch:
    """A `fork.switch` to this fork."""
    return ForkSwitch(target_fork=fork)


def merge_propose(
    source: str, target: str = "main", *, strategy: MergeStrategy = MergeStrategy.APPEND
) -> MergePropose:
    """A `merge.propose`."""
    return MergePropose(
        source_fork=source, target_fork=target, strategy=strategy, summary="It works"
    )


def merge_execute(merge: str, answers: dict[str, Any] | None = None) -> MergeExecute:
    """A merge with resolutions by key: `use_source`, `use_target`, or a list with a value."""
    settled = tuple(
        MergeResolution(key, "custom", answer[0])
        if isinstance(answer, list)
        else MergeResolution(key, answer)
        for key, answer in (answers or {}).items()
    )
    return MergeExecute(merge_proposal=merge, resolved_conflicts=settled or None)


def context_add(key: str, content: str = "text", *, to: Iterable[str] | None = None) -> ContextAdd:
    """A `context.add` of text, visible to all or to these members."""
    named = None if to is None else tuple(to)
    return ContextAdd(key=key, content_type="text", content=content, visible_to=named)


def context_update(key: str, content: str) -> ContextUpdate:
    """A `context.update` with new text."""
    return ContextUpdate(key=key, reason="Better", new_content=content)


def context_remove(key: str) -> ContextRemove:
    """A `context.remove`."""
    return ContextRemove(key=key, reason="Not needed")


def member_ids(*names: str) -> MemberIds:
    """A set of member ids, to compare with recipients."""
    return frozenset(names)


def failures_of(facts: Iterable[EventOrEffect]) -> list[tuple[Failure, MemberIds | None]]:
    """The failures among these effects, with their recipients."""
    return [
        (say.body, say.to)
        for say in facts
        if isinstance(say, Relay) and isinstance(say.body, Failure)
    ]
