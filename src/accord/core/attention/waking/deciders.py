"""Waking as a part of the context `attention`: its rules, lifted to the whole state."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from accord.core.attention.state import Attention
from accord.core.attention.waking import wake_lifecycle, wake_messages
from accord.core.attention.waking.state import Waking
from accord.core.attention.waking.wake_limits import SECOND_MS, WakePolicy
from accord.core.kernel.context import Command, Decider, Deciders, Evolver, Evolvers
from accord.core.kernel.messages import Body, Elapsed, Instant
from accord.core.kernel.records import Event, Record


def wake_policy(server: Any) -> WakePolicy:
    """The numbers of waking; the operator may set two of them."""
    return WakePolicy(
        silence_ms=server.silence_seconds * SECOND_MS, wakes_per_hour=server.wakes_per_hour
    )


def deadlines(attention: Attention, server: Any) -> Iterator[Instant]:
    """When the timer has to look at this agent."""
    return attention.waking.deadlines(server.silence_seconds * SECOND_MS)


# What each message leads to, given the state, the command and the message itself.
Rule = Callable[[Waking, Command, Any], Iterator[Event]]
RULES: Mapping[type[Body], Rule] = {
    Elapsed: lambda waking, command, _: wake_lifecycle.tick(
        waking, command.at, wake_policy(command.policy)
    ),
    wake_messages.RuntimeReport: lambda waking, command, body: wake_lifecycle.report_runtime(
        waking, body, command.at
    ),
    wake_messages.RuntimeSilent: lambda waking, command, body: wake_lifecycle.lose_runtime(
        waking, body, command.at
    ),
    wake_messages.AgentPause: lambda waking, _, body: wake_lifecycle.pause_agent(waking, body),
    wake_messages.AgentAddress: lambda waking, _, body: wake_lifecycle.address_agent(waking, body),
    wake_messages.AgentAnswer: lambda waking, _, body: wake_lifecycle.answer_address(waking, body),
    wake_messages.WakeAsk: lambda waking, command, body: wake_lifecycle.ask_wake(
        waking, command.message.id, body, command.at, wake_policy(command.policy)
    ),
    wake_messages.WakeLook: lambda waking, command, body: wake_lifecycle.look_again(
        waking, body, command.at, wake_policy(command.policy)
    ),
    wake_messages.WakeEnd: lambda waking, command, body: wake_lifecycle.end_wake(
        waking, body, command.at, wake_policy(command.policy)
    ),
}


def _decider(rule: Rule) -> Decider:
    def decide(attention: Attention, command: Command, body: Any) -> Iterator[Event]:
        return rule(attention.waking, command, body)

    return decide


def _evolver(change: Callable[..., Waking]) -> Evolver:
    def evolve(attention: Attention, event: Any, record: Record) -> Attention:
        return replace(attention, waking=change(attention.waking, event, record))

    return evolve


DECIDE: Deciders = {body: _decider(rule) for body, rule in RULES.items()}
EVOLVE: Evolvers = {event: _evolver(change) for event, change in wake_lifecycle.EVOLVE.items()}
