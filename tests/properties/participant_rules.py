"""What people and agents do together: they ask, answer, propose, vote and run."""

from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import Quorum
from accord.core.kernel.messages import Body
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk
from tests.helpers.log_audit.approval_audit import PROMPTING_ROLES, TOOL_CATEGORIES
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    gate_approve,
    gate_reject,
    gate_request,
    participant_announce,
    prompt_submit,
    tool_approve,
    tool_execute,
    tool_output,
    tool_propose,
    tool_reject,
    tool_result,
)
from tests.properties.observed_rooms import ObservedRooms
from tests.properties.strategies import AGENTS, EVERYBODY, indexes, misbehaves, quorums, rooms


class ParticipantRules(ObservedRooms):
    """Work that waits for approval, and some that does not."""

    # Talking

    @rule(
        room=rooms,
        index=indexes,
        sly=misbehaves,
        agent=st.sampled_from((CLAUDE, CLAUDE, CODEX, BOB)),
    )
    def prompt(self, room: str, index: int, sly: bool, agent: Actor) -> None:
        room = self._room(room, sly=sly)
        who = self._pick_actor(
            room, index, sly, lambda _, person: person.has_right("prompt", PROMPTING_ROLES)
        )
        self._run_steps(lambda: self._send(who, room, prompt_submit(agent)))

    def _prompts(self, room: str) -> list[tuple[Actor, str]]:
        ids = self.audits[room].ids
        said = [each for each in self.sent if each.room == room and each.id in ids]
        return [(each.who, each.id) for each in said if isinstance(each.body, PromptSubmit)][-3:]

    @rule(
        room=rooms, index=indexes, sly=misbehaves, what=st.sampled_from(["start", "chunk", "end"])
    )
    def respond(self, room: str, index: int, sly: bool, what: str) -> None:
        room = self._room(room, sly=sly)
        streams = self.audits[room].streams
        answer = self._pick_id(streams, index, sly=sly)
        prompt = self._pick_id([id for _, id in self._prompts(room)], index, sly=sly)
        who = self._pick_actor(
            room, index, sly, lambda seat, _: seat == streams.get(answer, "claude")
        )
        body, ref = {
            "start": (ResponseStart(who.principal, prompt), None),
            "chunk": (ResponseChunk("Hello"), answer),
            "end": (ResponseEnd("complete"), answer),
        }[what]
        self._run_steps(lambda: self._send(who, room, body, ref))

    @rule(room=rooms, index=indexes, sly=misbehaves)
    def announce(self, room: str, index: int, sly: bool) -> None:
        room = self._room(room, sly=sly)
        who = self._pick_actor(room, index, sly, lambda *_: True)
        self._run_steps(
            lambda: self._send(who, room, participant_announce(who, Role.ADMIN, name="Me"))
        )

    @rule(room=rooms, index=indexes, chunks=st.integers(0, 2), ends=st.booleans(), agent=indexes)
    def answer(self, room: str, index: int, chunks: int, ends: bool, agent: int) -> None:
        """Somebody asks and an agent answers, or begins to."""
        room = self._room(room, sly=False)
        whom = self._pick_actor(room, agent, False, lambda _, person: person.kind == "agent")
        self.prompt(room, index, False, whom)
        asked, start = self.sent[-1].id, f"start-{self.count}"
        self._run_steps(
            lambda: self._send(whom, room, ResponseStart(whom.principal, asked), None, start)
        )
        for _ in range(chunks):
            self._run_steps(lambda: self._send(whom, room, ResponseChunk("Hello"), start))
        if ends:
            self._run_steps(lambda: self._send(whom, room, ResponseEnd("complete"), start))

    # Asking for approval

    @rule(
        room=rooms,
        index=indexes,
        sly=misbehaves,
        category=st.sampled_from((Category.FILE_READ, *Category)),
        risk=st.sampled_from(Risk),
        name=st.sampled_from((*TOOL_CATEGORIES, "run_tests", "run_tests")),
        wants=st.booleans(),
    )
    def propose(
        self,
        room: str,
        index: int,
        sly: bool,
        category: Category,
        risk: Risk,
        name: str,
        wants: bool,
    ) -> None:
        room = self._room(room, sly=sly)
        who = self._pick_actor(room, index, sly, lambda _, person: person.kind == "agent")
        body = tool_propose(
            who, tool_name=name, category=category, risk=risk, requires_approval=wants
        )
        self._run_steps(lambda: self._send(who, room, body))

    @rule(
        room=rooms,
        index=indexes,
        sly=misbehaves,
        quorum=quorums,
        timeout=st.sampled_from([0, 60]),
        kind=st.sampled_from(["prompt", "merge"]),
    )
    def request(
        self, room: str, index: int, sly: bool, quorum: Quorum, timeout: int, kind: Any
    ) -> None:
        room = self._room(room, sly=sly)
        own = self._prompts(room) or [(ALICE, "never said")]
        who, action = own[index % len(own)]
        if sly:
            who = EVERYBODY[index % len(EVERYBODY)]
        body = gate_request(action, quorum=quorum, timeout=timeout, action_type=kind)
        self._run_steps(lambda: self._send(who, room, body))

    # Voting

    @rule(
        room=rooms,
        index=indexes,
        sly=misbehaves,
        yes=st.sampled_from([True, True, True, False]),
        by_tool=st.booleans(),
        times=st.integers(1, 2),
    )
    def vote(self, room: str, index: int, sly: bool, yes: bool, by_tool: bool, times: int) -> None:
        """Somebody votes, perhaps twice, perhaps without the right to."""
        room = self._room(room, sly=sly)
        who = self._pick_actor(room, index, sly, lambda _, person: person.can_approve)
        body = self._ballot(who, room, index, yes=yes, by_tool=by_tool)
        for _ in range(times):
            self._run_steps(lambda: self._send(who, room, body))

    @rule(
        room=rooms,
        order=st.permutations(EVERYBODY),
        index=st.integers(0, 2),
        at_once=st.booleans(),
        veto=st.sampled_from([None, None, None, BOB]),
    )
    def poll(
        self,
        room: str,
        order: list[Actor],
        index: int,
        at_once: bool,
        veto: Actor | None,
    ) -> None:
        """Everybody votes on the same gate, agents and strangers too."""
        busy = [each for each, audit in self.audits.items() if audit.gates]
        if not busy:
            return
        room = room if room in busy else busy[0]
        gate = self._pick_id(self.audits[room].gates, index, sly=False)
        votes = [
            (who, gate_reject(who, gate) if who is veto else gate_approve(who, gate))
            for who in order
        ]
        steps = [partial(self._send, who, room, body) for who, body in votes]
        if at_once:
            self._run_steps(*steps)
        else:
            for step in steps:
                self._run_steps(step)

    def _ballot(self, who: Actor, room: str, index: int, *, yes: bool, by_tool: bool) -> Body:
        audit = self.audits[room]
        if by_tool:
            actions = {gate.action for gate in audit.gates.values()} or audit.closed_ids
            name = self._pick_id(actions, index, sly=False)
            return tool_approve(who, name) if yes else tool_reject(who, name)
        name = self._pick_id(audit.gates, index, sly=False)
        return gate_approve(who, name) if yes else gate_reject(who, name)

    # Running

    @rule(
        room=rooms,
        index=indexes,
        sly=misbehaves,
        what=st.sampled_from(["execute", "output", "result"]),
        shown=st.sampled_from(["none", "right", "wrong"]),
        dead=misbehaves,
    )
    def use(self, room: str, index: int, sly: bool, what: str, shown: str, dead: bool) -> None:
        """An agent runs what it was granted, or something else, or somebody else's."""
        room = self._room(room, sly=sly)
        audit = self.audits[room]
        name = self._pick_id(audit.closed_ids if dead else audit.tools, index, sly=False)
        tool = audit.tools.get(name)
        who = self._pick_actor(
            room, index, False, lambda seat, _: tool is None or tool.agent == seat
        )
        if sly:
            who = (*AGENTS, BOB)[index % 3]
        grant = {"none": None, "wrong": "another"}.get(shown, tool.grant if tool else None)
        self._run_steps(lambda: self._send(who, room, execution_body(what, name, grant)))


def execution_body(what: str, proposal: str, grant: str | None = None) -> Body:
    """What an agent says of a tool that it runs."""
    if what == "execute":
        return tool_execute(proposal)
    if what == "result":
        return tool_result(proposal, grant=grant)
    return tool_output(proposal, grant=grant)
