"""What a tool is: a row of the table that the fast path and the SDK's server share."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from accord.transports.http.auth import Caller


async def stay_connected() -> None:
    """For callers whose disconnecting is not watched."""
    await asyncio.Event().wait()


class ToolCall(NamedTuple):
    """Who calls a tool, and what the handler may know about the connection."""

    caller: Caller
    # Makes the id by which a refusal can be found in the log.
    new_request_id: Callable[[], str]
    # Returns when the caller has gone.
    disconnected: Callable[[], Awaitable[None]] = stay_connected
    # Whether it carries what the person at the client answered in a form.
    by_form: bool = False


class Annotations(Struct, frozen=True, rename="camel", omit_defaults=True):
    """MCP's hints about a tool; hosts decide by them what to ask their user about."""

    read_only_hint: bool
    destructive_hint: bool = True
    idempotent_hint: bool = False
    open_world_hint: bool = True


READS = Annotations(read_only_hint=True, open_world_hint=False)
# Additive: nothing that was there before is lost.
ADDS = Annotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
ADDS_ONCE = Annotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

# Takes the services it works with, the call, and the decoded arguments.
Handler = Callable[[Any, ToolCall, Any], Awaitable[Struct]]


class Tool(NamedTuple):
    """A tool: name, description for models, types of arguments and result, hints, handler."""

    name: str
    title: str
    description: str
    arguments: type[Struct]
    result: type[Struct]
    annotations: Annotations
    handler: Handler
    # Whether the fast path may serve it; not if it waits for people or asks the client back.
    fast: bool = True
    # The argument with which it asks the client back, which the fast path cannot.
    asks_with: str = ""
    # Optional arguments that models are not told about.
    hidden: frozenset[str] = frozenset()


class ToolAnswer(NamedTuple):
    """A result as JSON; of an error, its envelope."""

    body: bytes
    is_error: bool = False


Tools = Mapping[str, Tool]
encode = msgspec.json.Encoder().encode
