"""Random conversations over a real engine, read against an independent model after every step.

`ACCORD_LONG=1` tries many more of them, and others each time.
"""

import os
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import Quorum
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import Category
from tests.helpers.room.scenario import (
    ALICE,
    CLAUDE,
    prompt_submit,
    role_change,
    session_config_update,
    session_create,
    session_end,
    session_join,
    tool_approve,
    tool_propose,
)
from tests.properties.participant_rules import ParticipantRules, execution_body
from tests.properties.strategies import (
    AGENTS,
    EVERYBODY,
    HUMANS,
    ROOMS,
    config_changes,
    indexes,
    misbehaves,
    people,
    quorums,
    roles,
    rooms,
)
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
pytestmark = [
    pytest.mark.timeout(7200 if LONG else 600),
    proves(
        "PVP-1.2-2",
        "PVP-3.2-1",
        "PVP-3.2-2",
        "PVP-4.2-5",
        "PVP-4.2-8",
        "PVP-6.2-11",
        "PVP-14-1",
        "PVP-14.2-1",
        "PVP-14.2-2",
        "PVP-14.2-3",
        "PVP-14.2-4",
        "PVP-14.2-5",
        "PVP-14.3-1",
        "PVP-14.3-2",
        "PVP-19.5-2",
        "OPEN-12",
        "OPEN-14",
        "OPEN-16",
        "OPEN-17",
        "OPEN-18",
        "OPEN-20",
        "OPEN-21",
        "OPEN-22",
        "OPEN-23",
        "OPEN-24",
        "OPEN-31",
        "OPEN-35",
        "OPEN-36",
        "OPEN-37",
        "UNI-9",
        "UNI-11",
        "UNI-12",
        "UNI-15",
    ),
]


class Conversations(ParticipantRules):
    """Several people and agents in a few rooms, who come and go while time passes."""

    @rule(
        room=rooms,
        index=indexes,
        category=st.sampled_from(Category),
        order=st.lists(st.sampled_from(HUMANS), max_size=4, unique=True),
        twist=st.sampled_from([None, None, "demote", "rejoin", "leave", "patience", "sleep"]),
        uses=st.lists(st.sampled_from(["execute", "output", "result", "theft"]), max_size=3),
    )
    def story(
        self,
        room: str,
        index: int,
        category: Category,
        order: list[Actor],
        twist: str | None,
        uses: list[str],
    ) -> None:
        """An agent proposes, some approve, the agent runs it; unless something comes between."""
        room = self._room(room, sly=False)
        agent = self._pick_actor(room, index, False, lambda _, person: person.kind == "agent")
        body = tool_propose(agent, category=category, requires_approval=True)
        self._run_steps(partial(self._send, agent, room, body))
        proposal = self.sent[-1].id
        for place, who in enumerate(order):
            self._run_steps(partial(self._send, who, room, tool_approve(who, proposal)))
            if place == 0:
                self._twist(room, twist, who, index)
        for what in uses:
            thief = AGENTS[1 - AGENTS.index(agent)] if agent in AGENTS else CLAUDE
            who = thief if what == "theft" else agent
            self._run_steps(partial(self._send, who, room, execution_body(what, proposal)))

    def _twist(self, room: str, twist: str | None, who: Actor, index: int) -> None:
        member = self.audits[room].members.get(who.principal)
        role = (Role.OBSERVER, Role.DRIVER, Role.NAVIGATOR)[index % 3]
        if twist == "demote" and member:
            held = tuple(map(Role, member.roles))
            self._run_steps(lambda: self._send(ALICE, room, role_change(ALICE, who, held, (role,))))
        elif twist == "rejoin":
            self._run_steps(lambda: self._send(who, room, session_join(who, role)))
        elif twist == "leave":
            self._run_steps(lambda: self._send(who, room, SessionLeave()))
        elif twist in {"patience", "sleep"}:
            self.wait(301 if twist == "patience" else 3601)

    # Coming and going

    @rule(room=rooms, who=people, sly=misbehaves, quorum=quorums, most=st.integers(2, 6))
    def create(self, room: str, who: Actor, sly: bool, quorum: Quorum, most: int) -> None:
        free = [each for each in ROOMS if not self.audits[each].version]
        room = room if sly or not free else free[0]
        body = session_create(default_gate_quorum=quorum, max_participants=most)
        self._run_steps(lambda: self._send(who, room, body))

    @rule(
        who=people,
        room=rooms,
        wanted=roles,
        how=st.sampled_from(["plain", "last", "old", "open", "garbage"]),
        fresh=st.booleans(),
        index=indexes,
    )
    def join(
        self, who: Actor, room: str, wanted: tuple[Role, ...], how: str, fresh: bool, index: int
    ) -> None:
        audit, ref = self.audits[room], None
        seen = [
            each.id
            for n, each in enumerate(audit.wire_records, 1)
            if audit.can_see(n, who.principal)
        ]
        if how == "last":
            ref = self.last.get((who.principal, room))
        elif how == "old" and seen:
            ref = seen[index * 7 % len(seen)]
        elif how == "open" and (audit.tools or audit.gates):
            ref = min({**audit.tools, **audit.gates})
        elif how == "garbage":
            ref = "never said"
        if fresh:
            self.now.pop(who.principal, None)
        self._run_steps(lambda: self._send(who, room, session_join(who, *wanted), ref))

    @rule(
        room=rooms,
        index=indexes,
        sly=misbehaves,
        how=st.sampled_from(["leave", "hang up", "hang up"]),
    )
    def go(self, room: str, index: int, sly: bool, how: str) -> None:
        room = self._room(room, sly=sly)
        who = self._pick_actor(room, index, sly, lambda *_: True)
        ear = self.now.get(who.principal)
        if how == "leave":
            self._run_steps(lambda: self._send(who, room, SessionLeave()))
        elif ear is not None:
            self._run_steps(ear.disconnect)

    @rule(room=rooms, index=indexes, who=people, sly=misbehaves, new=roles, lying=misbehaves)
    def change_roles(
        self,
        room: str,
        index: int,
        who: Actor,
        sly: bool,
        new: tuple[Role, ...],
        lying: bool,
    ) -> None:
        room = self._room(room, sly=sly)
        by = self._pick_actor(room, index, sly, lambda _, person: "admin" in person.roles)
        member = self.audits[room].members.get(who.principal)
        held = (Role.OBSERVER,) if lying or not member else tuple(map(Role, member.roles))
        self._run_steps(lambda: self._send(by, room, role_change(by, who, held, new)))

    @rule(room=rooms, index=indexes, sly=misbehaves, change=config_changes)
    def configure(self, room: str, index: int, sly: bool, change: dict[str, Any]) -> None:
        room = self._room(room, sly=sly)
        who = self._pick_actor(room, index, sly, lambda _, person: "admin" in person.roles)
        self._run_steps(lambda: self._send(who, room, session_config_update(**change)))

    @precondition(lambda self: self.count > 60)
    @rule(room=rooms, index=indexes, sly=misbehaves)
    def end(self, room: str, index: int, sly: bool) -> None:
        room = self._room(room, sly=sly)
        who = self._pick_actor(room, index, sly, lambda _, person: "admin" in person.roles)
        self._run_steps(lambda: self._send(who, room, session_end()))

    # Repeating

    @rule(index=st.integers(0, 30), fresh=st.booleans())
    def retry(self, index: int, fresh: bool) -> None:
        """The same message once more, perhaps on another connection: nothing happens twice."""
        said = self.sent[-1 - index % len(self.sent)]
        known = said.id in self.audits[said.room].ids
        if fresh:
            self.now.pop(said.who.principal, None)
        self._run_steps(lambda: self._send(said.who, said.room, said.body, said.ref, said.id))
        reply, _ = self.answers[0]
        if known:
            assert not reply.refusal, reply.refusal.detail
            assert reply.records[0].record.cause == said.id

    @rule(who=people, index=st.integers(0, 30))
    def reuse(self, who: Actor, index: int) -> None:
        """Another message under an id that is taken."""
        said = self.sent[-1 - index % len(self.sent)]
        if said.id in self.audits[said.room].ids:
            body = prompt_submit(CLAUDE, "Different")
            self._run_steps(lambda: self._send(who, said.room, body, None, said.id))
            assert self.answers[0][0].refusal

    # Time, and what goes wrong

    @rule(seconds=st.sampled_from([1, 1, 61, 299, 301, 3601]))
    def wait(self, seconds: int) -> None:
        """Time passes; what is due by then is done."""
        self.clock.advance(seconds)
        for _ in range(4):
            self._run_steps(self._run_due)
        now = self.clock.now()
        for audit in self.audits.values():
            for gate in audit.gates.values():
                assert audit.paused_at is not None or gate.expires is None or gate.expires > now
            assert all(not tool.grant or tool.expires > now for tool in audit.tools.values())

    @rule(back=st.booleans(), down=st.sampled_from([0, 0, 301]))
    def restart(self, back: bool, down: int) -> None:
        """The process is gone, with every connection; another takes over, and clients resume."""
        self.run(self._stop())
        self.clock.advance(down)
        self.now.clear()
        self.ears.clear()
        self.listening.clear()
        self.segments.clear()
        self.run(self._start())
        self.answers, self.silent = [], False
        for audit in self.audits.values():
            audit.was_restarted = True
        self._read_log()
        for audit in self.audits.values():
            here = {person.presence for person in audit.members.values()}
            assert audit.ended or here <= {"disconnected"}
            audit.was_restarted = False
        for who in EVERYBODY if back else ():
            self.resume(who)

    @rule(who=people)
    def resume(self, who: Actor) -> None:
        """A client connects again, to every room it is in, and says what it heard last."""
        self.now.pop(who.principal, None)
        for room, audit in self.audits.items():
            if who.principal in audit.members:
                ref = self.last.get((who.principal, room))
                role = Role.DRIVER if who.kind is Kind.AGENT else Role.APPROVER
                self._run_steps(partial(self._send, who, room, session_join(who, role), ref))

    @rule(
        room=rooms,
        moves=st.lists(
            st.tuples(
                people, st.sampled_from(["say", "vote", "go", "lose", "race", "come", "due"])
            ),
            min_size=2,
            max_size=5,
        ),
        index=st.integers(0, 1),
        failing=misbehaves,
    )
    def burst(self, room: str, moves: list[tuple[Actor, str]], index: int, failing: bool) -> None:
        """Several things in one breath, decided before any is committed, or lost all together."""
        came: set[str] = set()

        def move(who: Actor, what: str) -> None:
            match what:
                case "say":
                    self._send(who, room, prompt_submit())
                case "vote":
                    self._send(who, room, self._ballot(who, room, index, yes=True, by_tool=False))
                case "go" if who.principal not in came:
                    self._send(who, room, SessionLeave())
                case "lose" if who.principal in self.now and who.principal not in came:
                    self.now[who.principal].disconnect()
                case "come" if who.principal not in came:
                    came.add(who.principal)
                    self.now.pop(who.principal, None)
                    self._send(who, room, session_join(who, Role.DRIVER))
                case "race" if who.principal in self.now and who.principal not in came:
                    came.add(who.principal)
                    old = self.now.pop(who.principal)
                    self._send(who, room, session_join(who, Role.DRIVER))
                    old.disconnect()
                case "due":
                    self._run_due()
                case _:
                    pass

        self._run_steps(*(partial(move, who, what) for who, what in moves), failing=failing)


TestConversations = Conversations.TestCase
TestConversations.settings = settings(
    max_examples=5000 if LONG else 60,
    stateful_step_count=60 if LONG else 40,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=list(HealthCheck),
)
