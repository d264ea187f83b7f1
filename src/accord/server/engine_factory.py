"""An engine with every context and the system's clock; and token administration on top of one."""

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from accord.core import room
from accord.core.attention import context as attention
from accord.core.dialects import stored_records
from accord.core.kernel.ulid import ulid_generator
from accord.core.people import context
from accord.core.provenance import commit_links
from accord.core.room import threads
from accord.core.room.room_settings import ServerPolicy
from accord.core.work import mirror
from accord.data_dir import KEYS_DIR_NAME, store_url_of
from accord.engine.engine import Engine
from accord.engine.ports import EnginePorts, EventLog
from accord.engine.scheduling import SystemClock, WallClock
from accord.identity.token_service import TokenService
from accord.identity.token_signing import Keyring
from accord.server.decision_kernel import LazyDecisionKernel
from accord.stores import open_log
from accord.transports.http.session_index import SessionIndex

CONTEXTS = (
    room.CONTEXT,
    threads.CONTEXT,
    attention.CONTEXT,
    context.CONTEXT,
    commit_links.CONTEXT,
    mirror.CONTEXT,
)


def make_engine(events: EventLog, policy: ServerPolicy | None = None, **options: Any) -> Engine:
    """An engine on this log, with all contexts."""
    clock = options.pop("clock", None) or SystemClock()
    rules = msgspec.structs.replace(policy or ServerPolicy(), decision_kernel=LazyDecisionKernel())
    world = EnginePorts(stored_records, clock, ulid_generator(clock.now, os.urandom), rules)
    return Engine(events, CONTEXTS, world, **options)


@contextlib.asynccontextmanager
async def open_local_token_service(
    home: Path, store: str | None = None
) -> AsyncIterator[TokenService]:
    """Tokens and keys without a running server, on the same files."""
    events = await open_log(store_url_of(home, store))
    try:
        engine = make_engine(events)
        keyring = Keyring.open(home / KEYS_DIR_NAME)
        yield TokenService(engine, keyring, WallClock(), SessionIndex(engine).sessions_of)
        await engine.wait_until_idle()
    finally:
        await events.close()
