"""Prompts to agents: drafted, submitted, amended."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Body, Failure, Lifetime
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission, Role
from accord.core.room.field_types import Id, Ids, SafeInt, ShortText, Text
from accord.core.room.state import ABSENT_PRESENCES, Member, Room, can_see, without_keys
from accord.core.room.visibility import check_fork_open, check_same_fork, scope_of


class PromptConfig(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How the agent should answer (PVP 11.2)."""

    temperature: float | None = None
    max_tokens: SafeInt | None = None
    tools_allowed: tuple[ShortText, ...] | None = None
    model: ShortText | None = None
    provider_params: dict[str, Any] | None = None


class PromptSubmit(Body, frozen=True, omit_defaults=True, gc=False):
    """Prompt an agent."""

    type = "prompt.submit"
    needs = Permission.PROMPT
    forkable = True

    content: Text
    target_agent: Id
    contributors: Ids
    context_keys: tuple[ShortText, ...]
    config: PromptConfig | None = None

    def is_retry_of(self, said: Body) -> bool:
        """Ignores context keys that the server removed."""
        if not isinstance(said, PromptSubmit) or not {*said.context_keys} <= {*self.context_keys}:
            return False
        return self == replace(said, context_keys=self.context_keys)


class PromptDraft(Body, frozen=True, omit_defaults=True, gc=False):
    """A prompt being written; later drafts refer to the first (OPEN-43)."""

    type = "prompt.draft"
    needs = Permission.PROMPT
    lifetime = Lifetime.SIGNAL
    forkable = True

    content: Text
    contributors: Ids
    target_agent: Id | None = None


class PromptAmend(Body, frozen=True, omit_defaults=True, gc=False):
    """Amend a prompt that is not answered yet."""

    type = "prompt.amend"
    needs = Permission.PROMPT
    forkable = True
    cites_others = True

    original_prompt: Id
    amendment: Text
    reason: ShortText

    def cited_ids(self) -> Iterator[str]:
        yield self.original_prompt


class PromptSubmitted(Event, frozen=True, kw_only=True, gc=False):
    """An agent was prompted."""

    name = "prompt.submitted"

    said: PromptSubmit


class PromptAmended(Event, frozen=True, kw_only=True, gc=False):
    """A prompt was amended."""

    name = "prompt.amended"

    said: PromptAmend
    agent: str


def find_agent(room: Room, agent: str, fork: str | None = None) -> Member:
    """The agent with this id, if it is in the session and in the fork (OPEN-43)."""
    member = room.members.get(agent)
    in_fork = fork is None or agent in room.members_in(fork)
    if member is None or member.kind is not Kind.AGENT or not in_fork:
        where = f"the fork {fork}" if fork else "this session"
        raise Refused(Reason.NO_MEMBER, f"{agent} is not an agent in {where}")
    return member


def submit_prompt(room: Room, command: Command, body: PromptSubmit) -> Iterable[EventOrEffect]:
    """Submit a prompt to an agent of the session; unknown context keys are allowed (OPEN-39)."""
    agent = find_agent(room, body.target_agent, command.message.fork)
    if body.context_keys and room.shelf:
        body = replace(body, context_keys=visible_context_keys(room, command, body))
    submitted = PromptSubmitted(said=body)
    if agent.presence not in ABSENT_PRESENCES:
        return (submitted,)
    return (submitted, absence_notice(command, agent))


def absence_notice(command: Command, agent: Member) -> Relay:
    """Tell the sender that the agent reads the prompt later: a membership survives an absence."""
    detail = f"{agent.id} is {agent.presence} and reads the prompt when it returns"
    failure = Failure(Reason.AGENT, detail, command.message.id)
    return Relay(failure, frozenset({command.actor.principal}))


def visible_context_keys(room: Room, command: Command, body: PromptSubmit) -> tuple[str, ...]:
    """The keys that the agent may read; keys that the sender cannot read are refused."""
    shelf = room.shelf.get(scope_of(command.message.fork), {})
    for key in body.context_keys:
        if key in shelf and not can_see(shelf[key], command.actor.principal):
            raise Refused(Reason.FORBIDDEN, f"You cannot read the context item {key}")
    return tuple(
        k for k in body.context_keys if k not in shelf or can_see(shelf[k], body.target_agent)
    )


def relay_draft(room: Room, command: Command, body: PromptDraft) -> Iterator[EventOrEffect]:
    """Relay a draft; its sender must be one of its contributors."""
    if command.actor.principal not in body.contributors:
        raise Refused(Reason.MALFORMED, "The sender of a draft must be one of its contributors")
    if strangers := sorted(set(body.contributors) - room.members_in(command.message.fork)):
        raise Refused(Reason.NO_MEMBER, f"Contributors that are not here: {', '.join(strangers)}")
    if body.target_agent is not None:
        find_agent(room, body.target_agent, command.message.fork)
    fork = command.message.fork
    yield Relay(body, None if fork is None else room.members_in(fork))


def amend_prompt(room: Room, command: Command, body: PromptAmend) -> Iterator[Event]:
    """Amend a prompt before it is answered: its sender, a contributor or an admin may."""
    record = command.cited_records[body.original_prompt]
    prompt = record.said
    if record.fork is not None:
        check_fork_open(room, command, record.fork)
    check_same_fork(command, record.id, record.fork)
    if not isinstance(prompt, PromptSubmit):
        raise Refused(Reason.MALFORMED, f"{body.original_prompt} is not a prompt.submit")
    member_id = command.actor.principal
    admin = Role.ADMIN in room.members[member_id].roles
    if not (admin or member_id == record.sender or member_id in prompt.contributors):
        detail = "Only its sender, its contributors and admins can amend a prompt"
        raise Refused(Reason.FORBIDDEN, detail)
    if answer_key(prompt.target_agent, record.id) in room.answered:
        detail = f"{body.original_prompt} is already answered; submit a new prompt"
        raise Refused(Reason.WRONG_STATE, detail)
    find_agent(room, prompt.target_agent, record.fork)
    yield PromptAmended(said=body, agent=prompt.target_agent, fork=record.fork)


def answer_key(agent: str, prompt: str) -> str:
    """Key of the note that this agent has answered this prompt."""
    return f"{agent}\n{prompt}"  # no id contains a line break


def on_submitted(room: Room, event: PromptSubmitted, record: Record) -> Room:
    return release_halted_agent(room, event.said.target_agent, record.actor)


def on_amended(room: Room, event: PromptAmended, record: Record) -> Room:
    return release_halted_agent(room, event.agent, record.actor)


def release_halted_agent(room: Room, agent: str, sender_id: str) -> Room:
    """A human's new prompt lets a stopped agent continue (OPEN-45); another agent's does not."""
    sender = room.members.get(sender_id)
    if agent not in room.halted or sender is None or sender.kind is not Kind.HUMAN:
        return room
    return replace(room, halted=without_keys(room.halted, agent))


DECIDE: Deciders = {
    PromptSubmit: submit_prompt,
    PromptDraft: relay_draft,
    PromptAmend: amend_prompt,
}
EVOLVE: Evolvers = {PromptSubmitted: on_submitted, PromptAmended: on_amended}
