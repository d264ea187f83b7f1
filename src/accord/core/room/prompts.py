"""Prompts: what a person asks of an agent."""

from collections.abc import Iterator
from typing import Any

import msgspec

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, stay
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.state import Id, Ids, Member, Number, Room, Short, Text


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

    content: Text
    target_agent: Id
    contributors: Ids
    context_keys: tuple[Short, ...]
    config: PromptConfig | None = None


class PromptSubmitted(Event, frozen=True, kw_only=True, gc=False):
    """An agent was asked."""

    name = "prompt.submitted"

    said: PromptSubmit


def agent(room: Room, seat: str) -> Member:
    """The member of that id, if it is an agent (OPEN-43)."""
    member = room.members.get(seat)
    if member is None or member.kind is not Kind.AGENT:
        raise Refused(Why.NO_MEMBER, f"{seat} is not an agent in this session")
    return member


def submit(room: Room, ask: Ask, body: PromptSubmit) -> Iterator[Event]:
    """Any prompt to an agent that is here; keys nobody has are ignored (OPEN-39)."""
    agent(room, body.target_agent)
    yield PromptSubmitted(said=body)


DECIDE: Deciders = {PromptSubmit: submit}
EVOLVE: Evolvers = {PromptSubmitted: stay}
