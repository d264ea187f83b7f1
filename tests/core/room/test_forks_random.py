"""Random conversations over forks: who hears what, and who stays stopped."""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Body, Failure, Record, Say
from accord.core.kernel.refusal import Refused
from accord.core.room import Tick
from accord.core.room.forks import ForkCreate, ForkSwitch
from accord.core.room.grants import ToolCleared
from accord.core.room.interrupts import InterruptRaise
from accord.core.room.members import SessionLeave
from accord.core.room.merges import MergeExecuted
from accord.core.room.prompts import PromptAmend, PromptDraft, PromptSubmit
from accord.core.room.state import House, Resolution, Room, Strategy, Urgency
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.core.room.tools import ToolStarted
from tests.helpers.forks import (
    START,
    Talk,
    adds,
    executes_merge,
    forks,
    merges,
    removes,
    switches,
    updates,
)
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    Facts,
    after_seconds,
    approves,
    approves_tool,
    executes,
    finishes,
    joined,
    prints,
    prompts,
    proposes,
    rejects,
    requests,
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
HOUSES = [House(), House(on_gate_timeout=Resolution.AUTO_APPROVED)]

Move = tuple[Actor, Body]


class Step(NamedTuple):
    """What somebody said, where, and what came of it."""

    actor: Actor
    body: Body
    fork: str | None
    facts: Facts


@dataclass
class Scene:
    """A talk, and beside it who may know what, kept by what was done alone."""

    talk: Talk
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
                self.inside[facts.records[0].fork or ""] = {actor.seat, *who}
            case ForkSwitch(target_fork=fork) if fork in self.inside:
                self.inside[fork].add(actor.seat)
            case _:
                pass
        for record in facts.records:
            if isinstance(record.event, MergeExecuted):
                merge = self.talk.record(record.event.said.merge_proposal).said
                self.merged[merge.source_fork] = record.fork  # type: ignore[union-attr]


def leaks(scene: Scene, step: Step) -> bool:
    """Whether anybody hears of it who must not."""
    told = [fact for fact in step.facts if isinstance(fact, Say)]
    return any(tells(scene, say, step.fork) for say in told) or any(
        shows(scene, record) for record in step.facts.records
    )


def tells(scene: Scene, say: Say, fork: str | None) -> bool:
    if isinstance(say.body, Failure):
        fork = scene.talk.record(say.body.related_to).fork
    return not scene.talk.told(say) <= scene.may_hear(fork)


def shows(scene: Scene, record: Record) -> bool:
    if record.event.announced:
        return False
    return not scene.talk.audience(record) <= scene.may_hear(record.fork)


def one_of(dice: Random, room: Room, fork: str) -> Actor:
    return dice.choice([actor for actor in ANYBODY if actor.seat in room.forks[fork].members])


def say(dice: Random, talk: Talk) -> Move:
    """Somebody says something."""
    room = talk.room
    agent, person, anybody = (dice.choice(who) for who in (AGENTS, PEOPLE, ANYBODY))
    id = dice.choice([START, *room.gates, *room.tools])
    merge = dice.choice([START, *room.merges])
    prompt = dice.choice([r.id for r in talk.log if isinstance(r.said, PromptSubmit)])
    fork, other = dice.choice([*room.forks]), dice.choice([*room.forks])
    pending = room.merges.get(merge)
    source = pending.source if pending else fork
    insider, merger = (one_of(dice, room, name) for name in (fork, source))
    some = tuple(each.seat for each in dice.sample(ANYBODY, dice.randrange(4)))
    rejoin = joined(agent, ROLES[agent.seat])
    strategy, urgency = dice.choice([*Strategy]), dice.choice([*Urgency])
    moves: list[Move] = [
        (person, prompts(agent)),
        (agent, prompts(agent)),
        (anybody, PromptDraft("…", (anybody.seat,))),
        (anybody, PromptAmend(prompt, "more", "because")),
        (agent, proposes(agent)),
        (agent, proposes(agent)),
        (person, approves(person, id)),
        (person, approves_tool(person, id)),
        (person, rejects(person, id)),
        (agent, executes(id)),
        (agent, prints(id)),
        (agent, finishes(id)),
        (anybody, requests(prompt)),
        (agent, ResponseStart(agent.seat, START)),
        (agent, ResponseChunk("…")),
        (agent, ResponseEnd("complete")),
        (agent, ThinkingStart(agent.seat, START, some)),
        (agent, ThinkingChunk("…")),
        (agent, ThinkingEnd()),
        (anybody, adds("k", to=some or None)),
        (anybody, updates("k", id)),
        (anybody, removes("k")),
        (person, InterruptRaise(urgency, "Wait", agent.seat)),
        (agent, SessionLeave()),
        (rejoin.actor, rejoin.body),
        (person, forks("new", *(a for a in ANYBODY if a.seat in some), copy=True)),
        (person, forks("all", *ANYBODY[1:])),
        (anybody, switches(fork)),
        (insider, merges(fork, dice.choice(["main", other]), strategy=strategy)),
        (merger, executes_merge(merge, dice.choice([{}, {"k": "use_source"}]))),
    ]
    return dice.choice([*moves, *moves[4:12], *moves[4:12], *moves[-2:]])


def beginning() -> Scene:
    """Two forks are there from the start: one with half of the room, one with the other half."""
    scene = Scene(Talk.of(*((actor, ROLES[actor.seat]) for actor in ANYBODY[1:])))
    for name, by, agent in (("one", BOB, CLAUDE), ("two", CAROL, CODEX)):
        body = forks(name, agent)
        scene.notes(Step(by, body, None, scene.talk.says(by, body)))
    return scene


def happens(scene: Scene, dice: Random, clock: int) -> Step | None:
    """One thing that somebody says, somewhere; None if it is refused."""
    talk = scene.talk
    actor, body = say(dice, talk)
    fork = dice.choice([None, *talk.room.forks]) if body.scoped else None
    house = dice.choice(HOUSES)
    try:
        facts = talk.says(actor, body, at=after_seconds(clock), fork=fork, house=house)
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
    due = scene.talk.passes(after_seconds(400))
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
            case PromptSubmit(target_agent=agent) if actor.seat not in stopped:
                stopped.discard(agent)
            case PromptAmend(original_prompt=prompt) if actor.seat not in stopped:
                stopped.discard(talk.record(prompt).said.target_agent)  # type: ignore[union-attr]
            case _:
                pass
        assert stopped == set(talk.room.halted)
    due = talk.passes(after_seconds(400))
    cleared = [fact.said.tool_proposal for fact in due if isinstance(fact, ToolCleared)]
    assert not stopped & {talk.room.tools[id].agent for id in cleared}
