"""Grants: leave to run exactly this proposal, once, until it expires."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import rfc8785
from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.kernel.ids import derived
from accord.core.kernel.log import Ask, Body, Event, Evolvers, Instant, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND, iso
from accord.core.room.fields import Id
from accord.core.room.past import past_key, remember
from accord.core.room.state import Grant, Room, Tool, without


class ToolExecute(Body, frozen=True, omit_defaults=True, gc=False):
    """Run a proposal. The server says it once; the agent may confirm that it begins."""

    type = "tool.execute"
    needs = May.ACT
    scoped = True

    tool_proposal: Id
    approved_by: tuple[Id, ...]
    grant: Grant | None = None

    def repeats(self, said: Body) -> bool:
        """`approved_by` is the server's to set, so it does not tell two asks apart."""
        return isinstance(said, ToolExecute) and self == replace(said, approved_by=self.approved_by)


class ToolCleared(Event, frozen=True, kw_only=True, gc=False):
    """A proposal may run: approved, or no approval was needed."""

    name = "tool.cleared"

    said: ToolExecute
    expires_at: Instant


def digest(tool: Tool, session: str, expires_at: str) -> str:
    """SHA-256 over the canonical form of what was approved; other arguments give another."""
    return sha256(canonical(tool.name, tool.arguments, session, tool.id, expires_at)).hexdigest()


def canonical(
    name: str, arguments: dict[str, Any], session: str, proposal: str, expires_at: str
) -> bytes:
    """RFC 8785; refuses arguments that have no exact form, such as integers past 2^53."""
    whole: Any = {
        "tool_name": name,
        "arguments": arguments,
        "session": session,
        "proposal": proposal,
        "expires_at": expires_at,
    }
    try:
        return rfc8785.dumps(whole)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeError) as error:
        detail = f"arguments have no canonical form: {error}; send large numbers as strings"
        raise Refused(Why.MALFORMED, detail) from error


def clear(room: Room, ask: Ask, tool: Tool, approved_by: tuple[str, ...]) -> Iterator[Event]:
    """The one grant for this proposal."""
    expires_at = ask.at + ask.house.grant_seconds * SECOND
    until = iso(expires_at)
    grant = Grant(
        id=derived(ask.at, room.id, tool.id, "grant"),
        digest=digest(tool, room.id, until),
        expires_at=until,
    )
    said = ToolExecute(tool_proposal=tool.id, approved_by=approved_by, grant=grant)
    yield ToolCleared(said=said, expires_at=expires_at, ref=tool.id, fork=tool.fork)


def on_cleared(room: Room, event: ToolCleared, record: Record) -> Room:
    """The tool holds its grant."""
    tool = room.tools.get(event.said.tool_proposal)
    if tool is None:
        return room
    tool = replace(tool, grant=event.said.grant, expires_at=event.expires_at)
    return replace(room, tools={**room.tools, tool.id: tool})


def over(room: Room, ended: str, *ids: str) -> Room:
    """These proposals are history."""
    dead = {past_key(room.tools[id].fork, id): ended for id in ids if id in room.tools}
    return replace(room, tools=without(room.tools, *ids), past=remember(room.past, dead))


EVOLVE: Evolvers = {ToolCleared: on_cleared}
