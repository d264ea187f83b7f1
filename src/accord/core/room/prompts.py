"""Prompts: what a person asks of an agent."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May, Role
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Lifetime, Record, Say
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.fields import Id, Ids, Number, Short, Text
from accord.core.room.places import check_place, open_for, scope_of
from accord.core.room.state import Member, Room, sees, without


class PromptConfig(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How the agent is asked to answer (PVP 11.2)."""

    temperature: float | None = None
    max_tokens: Number | None = None
    tools_allowed: tuple[Short, ...] | None = None
    model: Short | None = None
    provider_params: dict[str, Any] | None = None


class PromptSubmit(Body, frozen=True, omit_defaults=True, gc=False):
    """Ask an agent."""

    type = "prompt.submit"
    needs = May.PROMPT
    scoped = True

    content: Text
    target_agent: Id
    contributors: Ids
    context_keys: tuple[Short, ...]
    config: PromptConfig | None = None

    def repeats(self, said: Body) -> bool:
        """Keys may have been taken out by the server, so they do not tell two asks apart."""
        if not isinstance(said, PromptSubmit) or not {*said.context_keys} <= {*self.context_keys}:
            return False
        return self == replace(said, context_keys=self.context_keys)


class PromptDraft(Body, frozen=True, omit_defaults=True, gc=False):
    """A prompt in the making; later drafts of it refer to the first (OPEN-43)."""

    type = "prompt.draft"
    needs = May.PROMPT
    lifetime = Lifetime.SIGNAL
    scoped = True

    content: Text
    contributors: Ids
    target_agent: Id | None = None


class PromptAmend(Body, frozen=True, omit_defaults=True, gc=False):
    """Change a prompt that is not answered yet."""

    type = "prompt.amend"
    needs = May.PROMPT
    scoped = True
    names_others = True

    original_prompt: Id
    amendment: Text
    reason: Short

    def cites(self) -> Iterator[str]:
        """The prompt."""
        yield self.original_prompt


class PromptSubmitted(Event, frozen=True, kw_only=True, gc=False):
    """An agent was asked."""

    name = "prompt.submitted"

    said: PromptSubmit


class PromptAmended(Event, frozen=True, kw_only=True, gc=False):
    """What it was asked has changed."""

    name = "prompt.amended"

    said: PromptAmend
    agent: str


def agent(room: Room, seat: str, fork: str | None = None) -> Member:
    """The member of that id, if it is an agent and in the fork (OPEN-43)."""
    member = room.members.get(seat)
    here = fork is None or seat in room.seats(fork)
    if member is None or member.kind is not Kind.AGENT or not here:
        where = f"the fork {fork}" if fork else "this session"
        raise Refused(Why.NO_MEMBER, f"{seat} is not an agent in {where}")
    return member


def submit(room: Room, ask: Ask, body: PromptSubmit) -> Iterable[Event]:
    """Any prompt to an agent that is here; keys nobody has are ignored (OPEN-39)."""
    agent(room, body.target_agent, ask.message.fork)
    if body.context_keys and room.shelf:
        body = replace(body, context_keys=deliverable(room, ask, body))
    return (PromptSubmitted(said=body),)


def deliverable(room: Room, ask: Ask, body: PromptSubmit) -> tuple[str, ...]:
    """The keys its sender may name, less those that are not for the agent."""
    shelf = room.shelf.get(scope_of(ask.message.fork), {})
    for key in body.context_keys:
        if key in shelf and not sees(shelf[key], ask.actor.seat):
            raise Refused(Why.FORBIDDEN, f"You cannot see the context {key}")
    return tuple(
        k for k in body.context_keys if k not in shelf or sees(shelf[k], body.target_agent)
    )


def draft(room: Room, ask: Ask, body: PromptDraft) -> Iterator[Fact]:
    """Relayed to those who are there; its sender is one of its contributors."""
    if ask.actor.seat not in body.contributors:
        raise Refused(Why.MALFORMED, "Whoever sends a draft is one of its contributors")
    if strangers := sorted(set(body.contributors) - room.seats(ask.message.fork)):
        raise Refused(Why.NO_MEMBER, f"Not here: {', '.join(strangers)}")
    if body.target_agent is not None:
        agent(room, body.target_agent, ask.message.fork)
    fork = ask.message.fork
    yield Say(body, None if fork is None else room.seats(fork))


def amend(room: Room, ask: Ask, body: PromptAmend) -> Iterator[Event]:
    """By whoever submitted it, a contributor or an admin, before it is answered."""
    record = ask.known[body.original_prompt]
    prompt = record.said
    if record.fork is not None:
        open_for(room, ask, record.fork)
    check_place(ask, record.id, record.fork)
    if not isinstance(prompt, PromptSubmit):
        raise Refused(Why.MALFORMED, f"{body.original_prompt} is not a prompt.submit")
    seat = ask.actor.seat
    admin = Role.ADMIN in room.members[seat].roles
    if not (admin or seat == record.sender or seat in prompt.contributors):
        raise Refused(Why.FORBIDDEN, "Only its authors or an admin can amend a prompt")
    if answer_key(prompt.target_agent, record.id) in room.answered:
        raise Refused(Why.WRONG_STATE, f"{body.original_prompt} is answered already; ask anew")
    agent(room, prompt.target_agent, record.fork)
    yield PromptAmended(said=body, agent=prompt.target_agent, fork=record.fork)


def answer_key(agent: str, prompt: str) -> str:
    """Under which it is remembered that this agent has answered this prompt."""
    return f"{agent}\n{prompt}"  # no id has a line break


def on_submitted(room: Room, event: PromptSubmitted, record: Record) -> Room:
    """A stopped agent that is prompted may go on."""
    return released(room, event.said.target_agent, record.actor)


def on_amended(room: Room, event: PromptAmended, record: Record) -> Room:
    """An amendment is a prompt, too."""
    return released(room, event.agent, record.actor)


def released(room: Room, seat: str, by: str) -> Room:
    """A person's new prompt sets a stopped agent free (OPEN-45); another agent's does not."""
    sender = room.members.get(by)
    if seat not in room.halted or sender is None or sender.kind is not Kind.HUMAN:
        return room
    return replace(room, halted=without(room.halted, seat))


DECIDE: Deciders = {PromptSubmit: submit, PromptDraft: draft, PromptAmend: amend}
EVOLVE: Evolvers = {PromptSubmitted: on_submitted, PromptAmended: on_amended}
