"""The state of one agent's attention: its cursors, one per thread, and its wakes."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

import msgspec

from accord.core.attention.waking.state import Waking
from accord.core.kernel.messages import Instant

STREAM_PREFIX = "attention/"


class Cursor(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How far an agent has read a thread, and how many messages up to there are its own."""

    last_read_seq: int
    last_acked_message_id: str
    updated_at: Instant
    own: int = 0


class Attention(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about the attention of one agent in one workspace."""

    workspace: str
    agent: str
    cursors: Mapping[str, Cursor] = {}
    waking: Waking = Waking()


class Seat(NamedTuple):
    """An agent in a workspace."""

    workspace: str
    agent: str


@lru_cache(4096)
def stream_of(workspace: str, agent: str) -> str:
    """The stream of an agent; ids may contain slashes, so the workspace is quoted."""
    return f"{STREAM_PREFIX}{quote(workspace, safe='')}/{agent}"


def seat_of(stream: str) -> Seat:
    """Whose stream this is."""
    workspace, _, agent = stream.removeprefix(STREAM_PREFIX).partition("/")
    return Seat(unquote(workspace), agent)


def initial_state(stream: str) -> Attention:
    """An agent that has read nothing."""
    return Attention(*seat_of(stream))
