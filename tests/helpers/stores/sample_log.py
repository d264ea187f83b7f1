"""A stored log with rooms, tokens and signed heads, for tests that read or damage it."""

import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from accord.core.kernel.messages import Message
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.data_dir import DATABASE_NAME, KEYS_DIR_NAME, store_url_of
from accord.engine.engine import Engine
from accord.engine.ports import EventLog
from accord.engine.workers import HeadSigner
from accord.identity.token_service import TokenService
from accord.identity.token_signing import Keyring
from accord.server.engine_factory import make_engine
from accord.stores import open_log
from accord.transports.http.session_index import SessionIndex
from tests.helpers.room.scenario import (
    ALICE,
    CLAUDE,
    T0,
    Step,
    create_step,
    join_step,
    prompt_submit,
    script_step,
    tool_propose,
)
from tests.helpers.servers.token_service import token_request

ROOM_IDS = ("r1", "r2")
# Builds a log in a data directory.
LogBuilder = Callable[[Path], Coroutine[Any, Any, None]]


async def build_log(home: Path, *, signed: bool = True, rounds: int = 3) -> None:
    """Write rooms with messages and a token; signed up to the last record."""
    events = await open_log(store_url_of(home))
    engine = make_engine(events)
    keyring = Keyring.open(home / KEYS_DIR_NAME)
    signer = HeadSigner(events, keyring, engine.clock)
    try:
        token_service = TokenService(
            engine, keyring, engine.clock, SessionIndex(engine).sessions_of
        )
        await token_service.record_active_key()
        await token_service.admin_for().issue(token_request("alice", Role.DRIVER))
        for turn in range(rounds):
            for room in ROOM_IDS:
                await send_round(engine, room, turn)
            if signed:
                await sign_all(events, signer)
        await engine.wait_until_idle()
    finally:
        engine.scheduler.stop()
        await events.close()


async def send_round(engine: Engine, room: str, turn: int) -> None:
    """Send the first messages of a session, or further ones."""
    script: tuple[Step, ...] = (
        script_step(ALICE, prompt_submit(content=f"Number {turn}"), id=f"prompt-{turn}"),
        script_step(CLAUDE, tool_propose(arguments={"turn": turn}), id=f"proposal-{turn}"),
    )
    if turn == 0:
        script = (create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER), *script)
    for nth, (actor, body, id, ref, *_) in enumerate(script):
        name = id or f"begin-{nth}"
        message = Message(f"{room}-{name}", to_iso(T0), room, actor.principal, body, ref)
        await engine.handle(message, actor)


async def sign_all(events: EventLog, signer: HeadSigner) -> None:
    """Sign the newest record of every stream."""
    for stream, version in (await events.streams()).items():
        (row,) = await events.read(stream, version - 1)
        await signer.sign(row)


def copy_home(home: Path, to: Path) -> Path:
    """Copy the log and keys; returns the copied database."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(home, to)
    return to / DATABASE_NAME
