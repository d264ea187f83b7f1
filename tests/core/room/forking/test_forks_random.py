"""Random conversations over forks: who hears what, and who stays stopped."""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Body, Failure
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.tool_proposals import ToolStarted
from accord.core.room.conversation.interrupts import InterruptRaise
from accord.core.room.conversation.prompts import PromptAmend, PromptDraft, PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.core.room.deadlines import Tick
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.forks import ForkCreate, ForkSwitch
from accord.core.room.forking.merges import MergeExecuted
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import GateResolution, ServerPolicy
from accord.core.room.state import Room, Urgency
from tests.helpers.room.logged_room import (
    START_ID,
    LoggedRoom,
    context_add,
    context_remove,
    context_update,
    fork_create,
    fork_switch,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    CommandOutcome,
    gate_approve,
    gate_reject,
    gate_request,
    join_step,
    prompt_submit,
    seconds_after_start,
    tool_approve,
    tool_execute,
    tool_output,
    tool_propose,
    tool_result,
)
from tests.spec import proves

PEOPLE, AGENTS = [ALICE, BOB, CAROL], [CLAUDE, CODEX]
ANYBODY = [*PEOPLE, *AGENTS]
ROLES = {
    "bob": Role.ADVERSARY,
    "carol": Role.ADVERSARY,
    "claude": Role.DRIVER,
    "codex": Role.DRIVER,
}
HOUSES = [
    ServerPolicy(gate_seconds=300),
    ServerPolicy(gate_seconds=300, on_gate_timeout=GateResolution.AUTO_APPROVED),
]

Move = tuple[Actor, Body]


class Step(NamedTuple):
    """What somebody said, where, and what came of it."""

    actor: Actor
    body: Body
    fork: str | None
    facts: CommandOutcome


@dataclass
class Scene:
    """A talk, and beside it who may know what, kept by what was done alone."""

    talk: LoggedRoom
    inside: dict[str, set[str]] = field(default_factory=dict)
    merged: dict[str, str | None] = field(default_factory=dict)

    def may_hear(self, fork: str | None) -> set[str]:
        """Everybody who may know what is said in this fork."""
        here = set(self.talk.room.members)
        if fork is None:
            return here
        beyond = self.may_hear(self.merged[fork]) if fork in self.merged else set()
        return self.inside[fork] | beyond

    def notes(self, step: Step) -> None:
        actor, body, _, facts = step
        match body:
            case ForkCreate(participants=who):
                self.inside[facts.records[0].fork or ""] = {actor.principal, *who}
            case ForkSwitch(target_fork=fork) if fork in self.inside:
                self.inside[fork].add(actor.principal)
            case _:
                pass
        for record in facts.records:
            if isinstance(record.event, MergeExecuted):
                merge = self.talk.record(record.event.said.merge_proposal).said
                self.merged[merge.source_fork] = record.fork  # type: ignore[union-attr]


def leaks(scene: Scene, step: Step) -> bool:
    """Whether anybody hears of it who must not."""
    told = [fact for fact in step.facts if isinstance(fact, Relay)]
    return any(tells(scene, say, step.fork) for say in told) or any(
        shows(scene, record) for record in step.facts.records
    )


def tells(scene: Scene, say: Relay, fork: str | None) -> bool:
    if isinstance(say.body, Failure):
        fork = scene.talk.record(say.body.related_to).fork
    return not scene.talk.relay_recipients(say) <= scene.may_hear(fork)


def shows(scene: Scene, record: Record) -> bool:
    if record.event.room_wide:
        return False
    return not scene.talk.audience(record) <= scene.may_hear(record.fork)


def one_of(dice: Random, room: Room, fork: str) -> Actor:
    return dice.choice([actor for actor in ANYBODY if actor.principal in room.forks[fork].members])


def say(dice: Random, talk: LoggedRoom) -> Move:
    """Somebody says something."""
    room = talk.room
    agent, person, anybody = (dice.choice(who) for who in (AGENTS, PEOPLE, ANYBODY))
    id = dice.choice([START_ID, *room.gates, *room.tools])
    merge = dice.choice([START_ID, *room.merges])
    prompt = dice.choice([r.id for r in talk.log if isinstance(r.said, PromptSubmit)])
    fork, other = dice.choice([*room.forks]), dice.choice([*room.forks])
    pending = room.merges.get(merge)
    source = pending.source if pending else fork
    insider, merger = (one_of(dice, room, name) for name in (fork, source))
    some = tuple(each.principal for each in dice.sample(ANYBODY, dice.randrange(4)))
    rejoin = join_step(agent, ROLES[agent.principal])
    strategy, urgency = dice.choice([*MergeStrategy]), dice.choice([*Urgency])
    moves: list[Move] = [
        (person, prompt_submit(agent)),
        (agent, prompt_submit(agent)),
        (anybody, PromptDraft("…", (anybody.principal,))),
        (anybody, PromptAmend(prompt, "more", "because")),
        (agent, tool_propose(agent)),
        (agent, tool_propose(agent)),
        (person, gate_approve(person, id)),
        (person, tool_approve(person, id)),
        (person, gate_reject(person, id)),
        (agent, tool_execute(id)),
        (agent, tool_output(id)),
        (agent, tool_result(id)),
        (anybody, gate_request(prompt)),
        (agent, ResponseStart(agent.principal, START_ID)),
        (agent, ResponseChunk("…")),
        (agent, ResponseEnd("complete")),
        (agent, ThinkingStart(agent.principal, START_ID, some)),
        (agent, ThinkingChunk("…")),
        (agent, ThinkingEnd()),
        (anybody, context_add("k", to=some or None)),
        (anybody, context_update("k", id)),
        (anybody, context_remove("k")),
        (person, InterruptRaise(urgency, "Wait", agent.principal)),
        (agent, SessionLeave()),
        (rejoin.actor, rejoin.body),
        (person, fork_create("new", *(a for a in ANYBODY if a.principal in some), copy=True)),
        (person, fork_create("all", *ANYBODY[1:])),
        (anybody, fork_switch(fork)),
        (insider, merge_propose(fork, dice.choice(["main", other]), strategy=strategy)),
        (merger, merge_execute(merge, dice.choice([{}, {"k": "use_source"}]))),
    ]
    return dice.choice([*moves, *moves[4:12], *moves[4:12], *moves[-2:]])


def beginning() -> Scene:
    """Two forks are there from the start: one with half of the room, one with the other half."""
    scene = Scene(
        LoggedRoom.with_members(*((actor, ROLES[actor.principal]) for actor in ANYBODY[1:]))
    )
    for name, by, agent in (("one", BOB, CLAUDE), ("two", CAROL, CODEX)):
        body = fork_create(name, agent)
        scene.notes(Step(by, body, None, scene.talk.send(by, body)))
    return scene


def happens(scene: Scene, dice: Random, clock: int) -> Step | None:
    """One thing that somebody says, somewhere; None if it is refused."""
    talk = scene.talk
    actor, body = say(dice, talk)
    fork = dice.choice([None, *talk.room.forks]) if body.forkable else None
    house = dice.choice(HOUSES)
    try:
        facts = talk.send(actor, body, at=seconds_after_start(clock), fork=fork, house=house)
    except Refused:
        return None
    return Step(actor, body, fork, facts)


@proves("PVP-16.1-3", "OPEN-47", "UNI-12", "OPEN-48")
@drawn(st.randoms(use_true_random=True))
@settings(max_examples=60, deadline=None)
def test_nobody_outside_hears_what_is_said_in_a_fork_before_it_is_merged(
    dice: Random,
) -> None:
    scene = beginning()
    for clock in range(100):
        if step := happens(scene, dice, clock):
            scene.notes(step)
            assert not leaks(scene, step), step
        assert not any(shows(scene, record) for record in scene.talk.log)
    due = scene.talk.tick(seconds_after_start(400))
    assert not leaks(scene, Step(ALICE, Tick(), None, due))


@proves("OPEN-45", "PVP-15.1-3")
@drawn(st.randoms(use_true_random=True))
@settings(max_examples=60, deadline=None)
def test_a_stopped_agent_never_gets_a_cleared_tool_nor_begins_one(dice: Random) -> None:
    scene = beginning()
    talk, stopped = scene.talk, set[str]()
    for clock in range(100):
        step = happens(scene, dice, clock)
        if step is None:
            continue
        actor, body, _, facts = step
        began = [f.said.tool_proposal for f in facts if isinstance(f, ToolCleared | ToolStarted)]
        assert not stopped & {talk.room.tools[id].agent for id in began}
        match body:
            case InterruptRaise(urgency=Urgency.STOP | Urgency.EMERGENCY, target=str(agent)):
                stopped.add(agent)
            case PromptSubmit(target_agent=agent) if actor.principal not in stopped:
                stopped.discard(agent)
            case PromptAmend(original_prompt=prompt) if actor.principal not in stopped:
                stopped.discard(talk.record(prompt).said.target_agent)  # type: ignore[union-attr]
            case _:
                pass
        assert stopped == set(talk.room.halted)
    due = talk.tick(seconds_after_start(400))
    cleared = [fact.said.tool_proposal for fact in due if isinstance(fact, ToolCleared)]
    assert not stopped & {talk.room.tools[id].agent for id in cleared}
